/* SPDX-License-Identifier: Apache-2.0 */
/* Prints rows and their statistics as text, in the form that docs/prof-deltas.1 describes. */
#ifndef COMMON_ROWS_PRINT_H
#define COMMON_ROWS_PRINT_H

#include <stdio.h>
#include "common/rows/rows.h"

#define PRINT_RULE_SIZE 192
/* Formats the columns after the address, NUL-terminated. `registers` adds the place of the saved
 * RBX. */
void print_rule(const struct unwind_rule *rule, bool registers, char ret[PRINT_RULE_SIZE]);
/* Prints one line for each row, with ELF addresses; merges neighbours with equal text. Returns 0,
 * -ENOMEM, or -errno of writing. */
int print_rows(FILE *out, const struct rows *r, bool registers);

/* The figures that --stats prints for one file, and for all together. */
struct print_stats {
	uint64_t files, rows, rules, fdes, cies;
	uint64_t time_ns, memory; /* memory: peak, in bytes */
	uint64_t skipped[ROWS_SKIP_COUNT];
};
/* Prints one line: `NAME: rows=… rules=… …`. */
void print_stats(FILE *out, const char *name, const struct print_stats *s);

#endif
