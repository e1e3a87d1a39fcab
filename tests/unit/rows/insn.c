/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the cached decoder with what Zydis returns for each instruction. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <link.h>
#include <string.h>
#include "tests/random.h"
#include "common/rows/x86/insn.h"

static uint64_t seed = 1;

static uint64_t any(void)
{
	return random_next(&seed);
}

static bool same(const struct insn *x, const struct insn *y)
{
	return x->imm == y->imm && x->clobbers == y->clobbers && x->len == y->len &&
	       x->op == y->op && x->next == y->next && x->dst == y->dst && x->src == y->src &&
	       x->width == y->width && x->zero == y->zero && x->filler == y->filler &&
	       x->relative == y->relative && x->plain == y->plain && x->memory == y->memory;
}

static void check(const uint8_t *code, uint32_t n)
{
	struct insn now, anew;
	bool is = insn_decode(code, n, &now), was = insn_decode_anew(code, n, &anew);

	cr_assert(is == was && (!is || same(&now, &anew)),
		  "%02x %02x %02x %02x %02x %02x %02x %02x %02x %02x %02x of %u bytes", code[0],
		  code[1], code[2], code[3], code[4], code[5], code[6], code[7], code[8], code[9],
		  code[10], n);
}

/* Checks `head` with random bytes after it, several times: the first check may fill the cache. */
static void check_head(const uint8_t *head, unsigned len)
{
	for (unsigned turn = 0; turn < 2; turn++) {
		uint64_t tail[3] = { any(), any(), any() };
		uint8_t code[24];

		memcpy(code, tail, sizeof(code));
		memcpy(code, head, len);
		check(code, 15);
	}
}

static int check_text(struct dl_phdr_info *info, size_t size, void *ctx)
{
	(void)size;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type != PT_LOAD || !(p->p_flags & PF_X) || p->p_memsz < 64 ||
		    !strstr(info->dlpi_name, "libc.so"))
			continue;

		const uint8_t *text = (const uint8_t *)(info->dlpi_addr + p->p_vaddr);

		for (size_t at = 0; at + 16 < p->p_memsz; at++)
			check(text + at, 16);
		*(size_t *)ctx += p->p_memsz;
	}
	return 0;
}

Test(insn, libc_reads_the_same_from_every_byte_on)
{
	size_t bytes = 0;

	dl_iterate_phdr(check_text, &bytes);
	cr_assert(gt(sz, bytes, 500000));
}

Test(insn, every_opcode_with_every_operand_is_remembered_as_it_is)
{
	static const char *const prefixes[] = { "",	"\x66",	    "\xf2", "\xf3",
						"\x48", "\x66\x41", "\x64" };
	static const char *const maps[] = { "", "\x0f", "\x0f\x38", "\x0f\x3a" };

	for (unsigned p = 0; p < sizeof(prefixes) / sizeof(prefixes[0]); p++) {
		for (unsigned m = 0; m < 4 * 65536; m++) {
			uint8_t head[8];
			unsigned n = (unsigned)strlen(prefixes[p]);
			unsigned k = (unsigned)strlen(maps[m >> 16]);

			memcpy(head, prefixes[p], n);
			memcpy(head + n, maps[m >> 16], k);
			n += k;
			head[n++] = (uint8_t)(m >> 8);
			head[n++] = (uint8_t)m;
			check_head(head, n);
		}
	}
}

Test(insn, vector_instructions_are_remembered_as_they_are)
{
	static const uint8_t leads[] = { 0xc5, 0xc4, 0x62, 0x8f };

	for (unsigned i = 0; i < 1000000; i++) {
		uint64_t bytes = any();
		uint8_t head[8];

		memcpy(head, &bytes, 8);
		head[0] = leads[i & 3];
		/* An existing map, and half of the time no vvvv, as most instructions need it. */
		if (head[0] != 0xc5)
			head[1] = (head[1] & 0xf0) | (head[1] & 3);
		if (bytes >> 63)
			head[head[0] == 0xc5 ? 1 : 2] |= 0x78;
		check_head(head, 7);
	}
}

Test(insn, the_smallest_immediate_is_told_apart)
{
	static const uint8_t sub[] = { 0x48, 0x81, 0xec, 0, 1, 0, 0, 0x90, 0x90, 0x90, 0x90 };
	static const uint8_t least[] = { 0x48, 0x81, 0xec, 0, 0, 0, 0x80, 0x90, 0x90, 0x90, 0x90 };
	struct insn d;

	for (unsigned turn = 0; turn < 2; turn++) {
		check(least, sizeof(least));
		check(sub, sizeof(sub));
		cr_assert(insn_decode(sub, sizeof(sub), &d));
		cr_assert(eq(int, d.op, INSN_OP_LEA));
		cr_assert(eq(int, d.dst, INSN_RSP));
		cr_assert(eq(int, d.imm, -256));
	}
}

Test(insn, bytes_behind_the_end_are_not_read)
{
	static const uint8_t sub[] = { 0x48, 0x81, 0xec, 0, 1, 0, 0, 0x90, 0x90, 0x90, 0x90 };
	struct insn d;

	cr_assert(insn_decode(sub, sizeof(sub), &d));
	for (uint32_t n = 0; n < 7; n++)
		cr_assert(not(insn_decode(sub, n, &d)), "%u bytes", n);
}
