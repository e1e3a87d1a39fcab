/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The distinct rules of all files: an array that the walker reads by number, with a count of the
 * files that use each rule. Some numbers encode a whole rule (TABLES_RULE_SHORT, bpf/tables.h).
 * Such rules take no element and are not counted.
 */
#ifndef COMMON_WALK_ROWS_RULES_H
#define COMMON_WALK_ROWS_RULES_H

#include <stdbool.h>
#include <stdint.h>
#include "bpf/tables.h"
#include "common/walk/rows/array.h"

enum rules_verdict { RULES_FULL = 1 /* TABLES_MAX_RULES are in use */ };

struct rule_count;

struct rules {
	struct array array;	    /* elements are TABLES_RULE_STRIDE apart */
	struct rule_count *by_rule; /* a hash */
	struct rule_count **by_number;
	uint32_t *unused; /* free numbers */
	uint32_t unused_count, next;
	uint64_t count; /* in use, without TABLES_RULE_GAP */
};

/* fd: that of the map, borrowed, or -1. Returns 0, -ENOMEM or -errno. Call rules_done even after an
 * error. */
int rules_init(struct rules *r, int fd);
void rules_done(struct rules *r);
/* Takes a reference of one file to a rule, and gives the rule's number. owner: who is charged for
 * the rule if no file used it before. *ret_new: whether no file used it before. Returns 0,
 * RULES_FULL, -ENOMEM or -errno. */
int rules_take(struct rules *r, const struct unwind_rule *rule, uint32_t owner,
	       uint32_t *ret_number, bool *ret_new);
/* Drops one file's reference. Returns true if it was the last one. Then the caller passes the
 * number to rules_reuse once no walk can be reading the rule any more. *ret_owner: who was charged
 * for the rule. */
bool rules_drop(struct rules *r, uint32_t number, uint32_t *ret_owner);
/* Returns how many numbers can be taken now. */
uint32_t rules_free(const struct rules *r);
/* Makes a number free that rules_drop returned true for. */
void rules_reuse(struct rules *r, uint32_t number);

#endif
