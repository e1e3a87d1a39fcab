/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of one file as they come from an extractor, packed into blocks of code as the walker
 * reads them (bpf/tables.h). The extractor may have been taken over: sizes and order are
 * checked here. Pure.
 *
 * First all numbers of rules, then all rows, in order; whole blocks are taken out as they come
 * about, so that little is kept of a large file. After an error or a verdict: incoming_free.
 */
#ifndef PROFPIPE_INCOMING_H
#define PROFPIPE_INCOMING_H

#include <stddef.h>
#include <stdint.h>
#include "bpf/tables.h"

struct incoming;

enum incoming_verdict { INCOMING_BAD = 1 /* unsorted, out of span, unknown rule, wrong sizes */ };

/* What is announced: span in bytes, at least one of each. 0, INCOMING_BAD, -ENOMEM. */
int incoming_new(uint64_t span, uint64_t rows, uint64_t rules, struct incoming **ret);
void incoming_free(struct incoming *in);
/* How many more rules may come. */
uint32_t incoming_rules_left(const struct incoming *in);
/* The number in the walker's tables of the next rule of the sender's; one is left. */
void incoming_rule(struct incoming *in, uint32_t number);
/* 0, INCOMING_BAD, -ENOMEM. */
int incoming_rows(struct incoming *in, const struct unwind_row_wire *rows, size_t n);
/* No more come: the last blocks are whole. *ret_rows: how many came. 0, INCOMING_BAD, -ENOMEM. */
int incoming_end(struct incoming *in, uint64_t *ret_rows);

/* The words of the next whole blocks, as many as `max` words hold (a block is never larger): how
 * many, and 0 when there are none. Borrowed until incoming_placed. */
uint32_t incoming_peek(const struct incoming *in, uint32_t max, const uint32_t **ret);
/* They stand at this position now. */
void incoming_placed(struct incoming *in, uint32_t words, uint32_t position);
/* Their entries, which are complete after incoming_end, when all blocks have been placed. Borrowed.
 */
const struct block_entry *incoming_index(const struct incoming *in, uint32_t *ret_blocks);

#endif
