/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of all files, each once: the array of them that the walker reads by number, and how
 * many files use each. A rule that a number can say whole (RULE_SHORT, bpf/tables.h) stands nowhere
 * and is not counted.
 */
#ifndef PROFPIPE_RULES_H
#define PROFPIPE_RULES_H

#include <stdbool.h>
#include <stdint.h>
#include "bpf/tables.h"
#include "common/walk/array.h"

enum rules_verdict { RULES_FULL = 1 /* TABLES_MAX_RULES are in use */ };

struct rule_count;

struct rules {
	struct array array;	    /* RULE_STRIDE apart */
	struct rule_count *by_rule; /* a hash */
	struct rule_count **by_number;
	uint32_t *unused; /* numbers */
	uint32_t unused_count, next;
	uint64_t count; /* in use, but for RULE_GAP */
};

/* fd: of the map, borrowed, or -1. 0, -ENOMEM, -errno. To be ended with rules_done in any case. */
int rules_init(struct rules *r, int fd);
void rules_done(struct rules *r);
/* A number for a rule of one more file. 0, RULES_FULL, -ENOMEM, -errno. */
int rules_take(struct rules *r, const struct unwind_rule *rule, uint32_t *ret_number);
/* One file less. True: it was the last, and the number is the caller's to give back by rules_reuse,
 * when no walk can be reading it any more. */
bool rules_drop(struct rules *r, uint32_t number);
void rules_reuse(struct rules *r, uint32_t number);

#endif
