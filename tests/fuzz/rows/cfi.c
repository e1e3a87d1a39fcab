/* SPDX-License-Identifier: Apache-2.0 */
/* Input: a section of call frame information. The first byte selects its kind and how it is cut
 * into pieces. */
#include "tests/fuzz/rows_hold.h"
#include "common/rows/cfi/cfi.h"

#define TEXT 0x400000
#define TEXT_SIZE 0x4000000
#define SECTION 0x500000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void feed(struct cfi *c, const uint8_t *data, size_t size, size_t piece)
{
	size_t at = 0, have = 0, used;
	uint64_t want = 0;

	while (!c->ended) {
		have += want > piece ? (want < size ? (size_t)want : size) : piece;
		if (have > size - at)
			have = size - at;

		bool last = at + have == size;

		/* Memory of the exact size, so that a sanitizer sees a read beyond it. */
		uint8_t *copy = malloc(have ? have : 1);

		must(copy);
		if (have)
			memcpy(copy, data + at, have);

		int r = cfi_feed(c, (struct span){ .data = copy, .len = have }, last, &used, &want);

		free(copy);
		must(used <= have && (r == 0 || r == MSG_ROWS_TOO_LARGE));
		at += used;
		have -= used;
		if (r || last)
			break;
	}
}

/* Any result that ehreturn_find may give, selected by the function's address. */
static bool spoiled(void *ctx, uint64_t address, uint64_t size, struct ehreturn *ret)
{
	if (size < 2)
		return false;
	ret->from = (uint32_t)(address % (size - 1));
	ret->to = ret->from + 1 + (uint32_t)(address / size % (size - 1 - ret->from));
	ret->ra_to = ret->from + 1 + (uint32_t)(address / 3 % (ret->to - ret->from));
	ret->ra = address & 2 ? -(int32_t)(address >> 2 & 0xffff) : 0;
	return address & 1;
}

/* The same for stackcheck_find. */
static bool checked(void *ctx, uint64_t address, uint64_t size, struct stackcheck *ret)
{
	if (size < 4)
		return false;
	ret->jump = 3 + (uint32_t)(address % (size - 3));
	ret->call = 2 + (uint32_t)(address / 3 % (ret->jump - 2));
	ret->slow = 1 + (uint32_t)(address / 5 % (ret->call - 1));
	ret->back = (uint32_t)(address / 7 % ret->slow);
	return address & 4;
}

/* The same for stackmove_find. */
static bool moved(void *ctx, uint64_t address, uint64_t size)
{
	return address & 8;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ehpointer_bases bases = {
		.has_text = true, .text = TEXT, .has_data = true, .data = SECTION
	};
	struct rows rows;
	struct cfi c;

	if (!size)
		return 0;
	rows_init(&rows);
	must(rows_segment_add(&rows, TEXT, 0, TEXT_SIZE / 2) == 0);
	must(rows_segment_add(&rows, TEXT + TEXT_SIZE, TEXT_SIZE / 2, TEXT_SIZE / 2) == 0);
	must(rows_layout(&rows) == 0);
	cfi_init(&c, &rows, data[0] & 1, SECTION, &bases);
	c.stop_at_zero = data[0] & 2;
	c.spoiled = spoiled;
	c.checked = checked;
	c.moved = moved;
	feed(&c, data + 1, size - 1, data[0] & 4 ? 7 : size);
	cfi_done(&c);
	must(rows_finish(&rows) == 0);
	rows_hold(&rows);

	/* The same again to fill gaps, like .debug_frame. */
	rows_fill(&rows);
	cfi_init(&c, &rows, data[0] & 1, SECTION, &bases);
	feed(&c, data + 1, size - 1, size);
	cfi_done(&c);
	must(rows_finish(&rows) == 0);
	rows_hold(&rows);
	rows_done(&rows);
	return 0;
}
