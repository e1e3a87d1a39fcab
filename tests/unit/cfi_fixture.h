/* SPDX-License-Identifier: Apache-2.0 */
/* Sections of call frame information that tests build byte by byte, and the rows that come of them,
 * as prof-deltas prints them. */
#ifndef TESTS_UNIT_CFI_FIXTURE_H
#define TESTS_UNIT_CFI_FIXTURE_H

#include <criterion/criterion.h>
#include <dwarf.h>
#include <stdlib.h>
#include <string.h>
#include "common/rows/cfi/cfi.h"
#include "common/rows/print.h"

#define TEXT 0x401000
#define SECTION 0x500000 /* its ELF address */

struct section {
	uint8_t byte[16384];
	size_t n;
	size_t open; /* where the open entry begins */
	bool wide;
};

static struct section s;
static struct rows rows;
static bool eh;

static inline void setup(void)
{
	s = (struct section){ 0 };
	eh = true;
	rows_init(&rows);
	rows_segment_add(&rows, TEXT, 0x1000, 0x10000);
	cr_assert_eq(rows_layout(&rows), 0);
}

static inline void teardown(void)
{
	rows_done(&rows);
}

static inline void put(const void *bytes, size_t n)
{
	memcpy(s.byte + s.n, bytes, n);
	s.n += n;
}

static inline void u8(uint8_t v)
{
	put(&v, 1);
}

static inline void u32(uint32_t v)
{
	put(&v, 4);
}

static inline void u64(uint64_t v)
{
	put(&v, 8);
}

static inline void begin(void)
{
	s.open = s.n;
	if (s.wide)
		u32(UINT32_MAX), u64(0);
	else
		u32(0);
}

static inline void end(void)
{
	uint64_t len;

	while (s.n & 7)
		u8(DW_CFA_nop);
	len = s.n - s.open - (s.wide ? 12 : 4);
	memcpy(s.byte + s.open + (s.wide ? 4 : 0), &len, s.wide ? 8 : 4);
}

#define BYTES(...) put((const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }))

/* Adds a CIE of version 1 with code factor 1, data factor -8, return address column 16, and the
 * given augmentation with its data. The CFA is rsp+8, the return address at cfa-8. */
static inline size_t cie_full(uint8_t version, const char *augmentation, const uint8_t *data,
			      size_t n, uint8_t column)
{
	begin();
	if (eh)
		u32(0);
	else if (s.wide)
		u64(UINT64_MAX);
	else
		u32(UINT32_MAX);
	u8(version);
	put(augmentation, strlen(augmentation) + 1);
	if (strncmp(augmentation, "eh", 2) == 0)
		u64(0x1234);
	if (version == 4)
		BYTES(8, 0);
	BYTES(1, 0x78, column);
	if (augmentation[0] == 'z')
		u8((uint8_t)n), put(data, n);
	BYTES(DW_CFA_def_cfa, 7, 8);
	if (column == 16)
		BYTES(DW_CFA_offset | 16, 1);
	size_t at = s.open;
	end();
	return at;
}

static inline size_t cie(void)
{
	return cie_full(1, "", NULL, 0, 16);
}

static inline void fde_head(size_t of_cie)
{
	begin();
	if (eh)
		u32((uint32_t)(s.n - of_cie));
	else if (s.wide)
		u64(of_cie);
	else
		u32((uint32_t)of_cie);
}

/* Begins an FDE with absolute pointers over [TEXT + start, TEXT + start + size). Instructions
 * follow, then end(). */
static inline void fde(size_t of_cie, uint64_t start, uint64_t size)
{
	fde_head(of_cie);
	u64(TEXT + start);
	u64(size);
}

static struct ehreturn spoils;
static unsigned asked;

static inline bool spoiled(void *ctx, uint64_t address, uint64_t size, struct ehreturn *ret)
{
	asked++;
	*ret = spoils;
	return spoils.to != 0;
}

static struct stackcheck check;
static unsigned asked_check;

static inline bool checked(void *ctx, uint64_t address, uint64_t size, struct stackcheck *ret)
{
	asked_check++;
	*ret = check;
	return check.slow != 0;
}

static bool moves;
static unsigned asked_moved;

static inline bool moved(void *ctx, uint64_t address, uint64_t size)
{
	asked_moved++;
	return moves;
}

/* Feeds the section in pieces of `piece` bytes, as far as its entries allow. */
static inline void run(size_t piece)
{
	struct cfi c;
	size_t at = 0, have = 0, used;
	uint64_t want = 0;

	cfi_init(&c, &rows, eh, SECTION, &(struct ehpointer_bases){ 0 });
	c.spoiled = spoiled;
	c.checked = checked;
	c.moved = moved;
	while (!c.ended && at + have <= s.n) {
		have += piece > want ? piece : (size_t)want;
		if (have > s.n - at)
			have = s.n - at;

		bool last = at + have == s.n;

		cr_assert_eq(cfi_feed(&c, (struct span){ .data = s.byte + at, .len = have }, last,
				      &used, &want),
			     0);
		at += used;
		have -= used;
		if (last)
			break;
	}
	cfi_done(&c);
	cr_assert_eq(rows_finish(&rows), 0);
}

static inline void gives_with(bool registers, const char *want)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	cr_assert_eq(print_rows(f, &rows, registers), 0);
	fclose(f);
	cr_assert_str_eq(text, want);
	free(text);
}

static inline void gives(const char *want)
{
	gives_with(false, want);
}

#endif
