/* SPDX-License-Identifier: Apache-2.0 */
#include "common/walk/rows/incoming.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct incoming {
	uint32_t *rule_numbers;	     /* indexed by the sender's number of a rule */
	struct block_entry *blocks;  /* the unfinished index, block_count entries */
	uint32_t block_count, block; /* block: the one that is being filled */
	uint32_t placed;	     /* blocks that have been copied to the tables */
	uint32_t rules_wanted, rules_seen;
	uint64_t rows_wanted, rows_seen, span;
	uint32_t last_offset;
	uint16_t rule;	/* the rule in force at the end of pack */
	uint32_t *pack; /* words of complete blocks, then of the unfinished one */
	size_t pack_len, pack_cap;
	size_t block_start; /* the beginning of the unfinished block in pack */
};

int incoming_new(uint64_t span, uint64_t rows, uint64_t rules, struct incoming **ret)
{
	if (span == 0 || span > UNWIND_MAX_SPAN || rows == 0 || rows > UNWIND_MAX_ROWS ||
	    rules == 0 || rules > UNWIND_MAX_RULES)
		return INCOMING_BAD;

	struct incoming *in = calloc(1, sizeof(*in));
	if (!in)
		return -ENOMEM;
	in->span = span;
	in->block_count = (uint32_t)((span + (1u << TABLES_BLOCK_SHIFT) - 1) >> TABLES_BLOCK_SHIFT);
	in->rows_wanted = rows;
	in->rules_wanted = (uint32_t)rules;
	in->rule = TABLES_RULE_GAP;
	in->rule_numbers = calloc(rules, sizeof(*in->rule_numbers));
	in->blocks = calloc(in->block_count, sizeof(*in->blocks));
	if (!in->rule_numbers || !in->blocks) {
		incoming_free(in);
		return -ENOMEM;
	}
	*ret = in;
	return 0;
}

void incoming_free(struct incoming *in)
{
	if (!in)
		return;
	free(in->rule_numbers);
	free(in->blocks);
	free(in->pack);
	free(in);
}

uint32_t incoming_rules_left(const struct incoming *in)
{
	return in->rules_wanted - in->rules_seen;
}

void incoming_rule(struct incoming *in, uint32_t number)
{
	in->rule_numbers[in->rules_seen++] = number;
}

static int pack_word(struct incoming *in, uint32_t word)
{
	if (in->pack_len == in->pack_cap) {
		size_t cap = in->pack_cap ? in->pack_cap * 2 : 8192;
		uint32_t *p = reallocarray(in->pack, cap, sizeof(*p));

		if (!p)
			return -ENOMEM;
		in->pack = p;
		in->pack_cap = cap;
	}
	in->pack[in->pack_len++] = word;
	return 0;
}

/* Completes the block that is being filled. The position in its entry is still relative to pack. */
static void close_block(struct incoming *in)
{
	in->blocks[in->block].rows = (uint32_t)in->block_start;
	in->blocks[in->block].count = (uint16_t)(in->pack_len - in->block_start);
	in->block_start = in->pack_len;
	in->block++;
}

/* Completes blocks up to `block`. Each block begins with the rule in force. */
static int advance_to(struct incoming *in, uint32_t block)
{
	while (in->block < block) {
		if (in->pack_len == in->block_start) {
			int r = pack_word(in, in->rule);

			if (r)
				return r;
		}
		close_block(in);
	}
	return 0;
}

int incoming_rows(struct incoming *in, const struct unwind_row_wire *rows, size_t n)
{
	if (in->rules_seen != in->rules_wanted || n > in->rows_wanted - in->rows_seen)
		return INCOMING_BAD;
	for (size_t i = 0; i < n; i++) {
		struct unwind_row_wire row;

		memcpy(&row, &rows[i], sizeof(row));
		if (row.rule >= in->rules_wanted || row.offset >= in->span ||
		    (in->rows_seen && row.offset <= in->last_offset))
			return INCOMING_BAD;
		in->rows_seen++;
		in->last_offset = row.offset;
		int r = advance_to(in, row.offset >> TABLES_BLOCK_SHIFT);
		uint32_t in_block = row.offset & ((1u << TABLES_BLOCK_SHIFT) - 1);
		if (!r && in_block && in->pack_len == in->block_start)
			r = pack_word(in, in->rule);
		in->rule = (uint16_t)in->rule_numbers[row.rule];
		if (!r)
			r = pack_word(in, in_block << 16 | in->rule);
		if (r)
			return r;
	}
	return 0;
}

int incoming_end(struct incoming *in, uint64_t *ret_rows)
{
	if (in->rows_seen != in->rows_wanted)
		return INCOMING_BAD;
	int r = advance_to(in, in->block_count);
	if (!r)
		*ret_rows = in->rows_seen;
	return r;
}

uint32_t incoming_peek(const struct incoming *in, uint32_t max, const uint32_t **ret)
{
	uint32_t words = 0;

	for (uint32_t i = in->placed; i < in->block && words + in->blocks[i].count <= max; i++)
		words += in->blocks[i].count;
	if (words)
		*ret = in->pack + in->blocks[in->placed].rows;
	return words;
}

void incoming_placed(struct incoming *in, uint32_t words, uint32_t position)
{
	uint32_t from = in->blocks[in->placed].rows;

	while (words) {
		struct block_entry *b = &in->blocks[in->placed++];

		words -= b->count;
		b->rows += position - from;
	}
	if (in->placed < in->block)
		return;
	/* Only the unfinished block is left. */
	memmove(in->pack, in->pack + in->block_start,
		(in->pack_len - in->block_start) * sizeof(*in->pack));
	in->pack_len -= in->block_start;
	in->block_start = 0;
}

const struct block_entry *incoming_index(const struct incoming *in, uint32_t *ret_blocks)
{
	*ret_blocks = in->block_count;
	return in->blocks;
}
