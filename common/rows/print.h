/* SPDX-License-Identifier: Apache-2.0 */
/* Rows and their figures as text, in the form that docs/prof-deltas.1 describes. */
#ifndef PROFPIPE_PRINT_H
#define PROFPIPE_PRINT_H

#include <stdio.h>
#include "common/rows/rows.h"

#define PRINT_RULE_SIZE 192
/* The columns of a rule after the address, NUL-terminated. registers: and where RBX is saved. */
void print_rule(const struct unwind_rule *rule, bool registers, char ret[PRINT_RULE_SIZE]);
/* One line a row, addresses as ELF addresses; neighbours that read the same are one. 0, -ENOMEM, or
 * -errno of writing. */
int print_rows(FILE *out, const struct rows *r, bool registers);

/* What --stats shows of a file, and of all of them. */
struct print_stats {
	uint64_t files, rows, rules, fdes, cies;
	uint64_t time_ns, memory; /* memory in bytes, at its peak */
	uint64_t skipped[ROWS_SKIP_COUNT];
};
/* One line: `NAME: rows=… rules=… …`. */
void print_stats(FILE *out, const char *name, const struct print_stats *s);

#endif
