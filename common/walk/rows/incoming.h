/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of one file as they arrive from an extractor, packed into blocks as the walker reads
 * them (bpf/tables.h). The extractor may have been taken over, so sizes and order are checked here.
 * Pure.
 *
 * All numbers of rules come first, then all rows, in order. The caller takes out each block once it
 * is complete, so that even a large file needs little memory. After an error or a verdict, call
 * incoming_free.
 */
#ifndef COMMON_WALK_ROWS_INCOMING_H
#define COMMON_WALK_ROWS_INCOMING_H

#include <stddef.h>
#include <stdint.h>
#include "bpf/tables.h"

struct incoming;

enum incoming_verdict { INCOMING_BAD = 1 /* unsorted, out of span, unknown rule, wrong sizes */ };

/* Begins a file. span, rows, rules: the announced sizes, span in bytes; each is at least 1. Returns
 * 0, INCOMING_BAD or -ENOMEM. */
int incoming_new(uint64_t span, uint64_t rows, uint64_t rules, struct incoming **ret);
void incoming_free(struct incoming *in);
/* Returns how many more rules may come. */
uint32_t incoming_rules_left(const struct incoming *in);
/* Sets the number, in the walker's tables, of the sender's next rule. At least one rule must be
 * left. */
void incoming_rule(struct incoming *in, uint32_t number);
/* Adds rows. Returns 0, INCOMING_BAD or -ENOMEM. */
int incoming_rows(struct incoming *in, const struct unwind_row_wire *rows, size_t n);
/* Completes the last blocks. Call it after all rows. *ret_rows is the number of rows. Returns 0,
 * INCOMING_BAD or -ENOMEM. */
int incoming_end(struct incoming *in, uint64_t *ret_rows);

/* Returns how many words the next complete blocks have, at most `max` (a block is never larger); 0
 * if there are none. *ret points to the words, borrowed until incoming_placed. */
uint32_t incoming_peek(const struct incoming *in, uint32_t max, const uint32_t **ret);
/* Tells that the words of these blocks were copied to this position. */
void incoming_placed(struct incoming *in, uint32_t words, uint32_t position);
/* Returns the index entries of all blocks, borrowed. They are complete after incoming_end, once all
 * blocks have been placed. */
const struct block_entry *incoming_index(const struct incoming *in, uint32_t *ret_blocks);

#endif
