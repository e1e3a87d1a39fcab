/* SPDX-License-Identifier: Apache-2.0 */
#include "common/names/elf/codestarts.h"

#include <Zydis/Zydis.h>
#include <errno.h>
#include <stdlib.h>
#include "common/base/bytes/numbers.h"

#define CALL 0xe8
#define LEA 0x8d

void codestarts_done(struct codestarts *s)
{
	free(s->at);
	*s = (struct codestarts){ 0 };
}

static int by_value(const void *left, const void *right)
{
	const uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

	return a < b ? -1 : a > b;
}

void codestarts_sort(struct codestarts *s)
{
	size_t kept = 0;

	if (s->len)
		qsort(s->at, s->len, sizeof(*s->at), by_value);
	for (size_t i = 0; i < s->len; i++)
		if (!kept || s->at[kept - 1] != s->at[i])
			s->at[kept++] = s->at[i];
	s->len = kept;
}

/* Makes space for more starts. Most functions are called from several places, so dropping
 * duplicates may be enough; otherwise the array grows. */
static int make_room(struct codestarts *s)
{
	codestarts_sort(s);
	if (s->cap && s->len <= s->cap / 2)
		return 0;
	if (s->cap >= CODESTARTS_MAX) {
		s->full = s->len == s->cap;
		return 0;
	}
	const size_t cap = s->cap ? s->cap * 2 : 1024;
	uint32_t *at = realloc(s->at, cap * sizeof(*at));

	if (!at)
		return -ENOMEM;
	s->at = at;
	s->cap = cap;
	return 0;
}

int codestarts_add(struct codestarts *s, uint64_t address)
{
	if (address < s->low || address >= s->high || s->full)
		return 0;
	if (s->len == s->cap) {
		int r = make_room(s);

		if (r || s->full)
			return r;
	}
	s->at[s->len++] = (uint32_t)(address - s->low);
	return 0;
}

bool codestarts_behind(struct span before)
{
	const uint8_t *end = before.data + before.len;

	if (before.len >= 1 &&
	    (end[-1] == 0xc3 || end[-1] == 0xcc || end[-1] == 0x90 || end[-1] == 0xf4))
		return true; /* ret, int3, nop, hlt */
	if (before.len >= 2 && (end[-2] == 0xeb || (end[-2] == 0x0f && end[-1] == 0x0b)))
		return true; /* jmp, ud2 */
	/* zeros, or the end of a long nop */
	if (before.len >= 2 && end[-1] == 0 && (end[-2] == 0 || end[-2] == 0x1f || end[-2] == 0x40))
		return true;
	return before.len >= 5 && (end[-5] == 0xe9 || end[-5] == CALL);
}

/* Gives the address that the instruction at p refers to; n bytes are left. *ret_sure: it is the
 * target of a call; otherwise it may also be a label. Returns false if there is none. */
static bool leads_to(const uint8_t *p, size_t n, uint64_t address, uint64_t *ret, bool *ret_sure)
{
	int32_t distance;
	uint32_t value;

	if (*p == CALL && n >= 5) {
		memcpy(&distance, p + 1, sizeof(distance));
		*ret = address + 5 + (uint64_t)(int64_t)distance;
		*ret_sure = true;
		return true;
	}
	*ret_sure = false;
	/* lea distance(%rip), register */
	if (*p == LEA && n >= 6 && (p[1] & 0xc7) == 0x05) {
		memcpy(&distance, p + 2, sizeof(distance));
		*ret = address + 6 + (uint64_t)(int64_t)distance;
		return true;
	}
	/* mov $address, register; push $address */
	if (((*p & 0xf8) == 0xb8 || *p == 0x68) && n >= 5) {
		memcpy(&value, p + 1, sizeof(value));
		*ret = value;
		return true;
	}
	if (*p == 0xc7 && n >= 6 && (p[1] & 0xf8) == 0xc0) {
		memcpy(&value, p + 2, sizeof(value));
		*ret = value;
		return true;
	}
	return false;
}

int codestarts_code(struct codestarts *s, struct span code, uint64_t address,
		    bool (*begins)(void *ctx, uint64_t address), void *ctx)
{
	int r = 0;

	for (size_t i = 0; !r && i < code.len; i++) {
		uint64_t to;
		bool sure;

		if (!leads_to(code.data + i, code.len - i, address + i, &to, &sure))
			continue;
		if (to >= s->low && to < s->high && (sure || begins(ctx, to)))
			r = codestarts_add(s, to);
	}
	return r;
}

bool codestarts_find(const struct codestarts *s, uint64_t address, uint64_t *ret)
{
	size_t low = 0, high = s->len;

	if (address < s->low || s->full)
		return false;
	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (s->at[middle] <= address - s->low)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low)
		return false;
	*ret = s->low + s->at[low - 1];
	return true;
}

/* Returns the length of a nop at the front, in bytes; 0: none. */
static size_t nop(struct span b)
{
	size_t i = 0;

	if (b.len && (b.data[0] == 0xcc || b.data[0] == 0))
		return 1;
	while (i < b.len && (b.data[i] == 0x66 || b.data[i] == 0x2e))
		i++;
	if (i < b.len && b.data[i] == 0x90)
		return i + 1;
	if (b.len - i < 3 || b.data[i] != 0x0f || b.data[i + 1] != 0x1f)
		return 0;
	switch (b.data[i + 2]) {
	case 0x00: /* (%rax) */
		return i + 3;
	case 0x40: /* 0x0(%rax) */
		return i + 4;
	case 0x44: /* 0x0(%rax,%rax) */
		return i + 5;
	case 0x80:
		return i + 7;
	case 0x84:
		return i + 8;
	}
	return 0;
}

size_t codestarts_padding(struct span bytes)
{
	const size_t all = bytes.len;

	while (bytes.len) {
		const size_t n = nop(bytes);

		if (!n || n > bytes.len)
			break;
		bytes.data += n;
		bytes.len -= n;
	}
	return all - bytes.len;
}

/* --- following code --- */

#define CHUNK 4096u
#define LONGEST 15 /* bytes of an instruction */

/* The ways in which control leaves an instruction. */
enum codestarts_flow { FLOW_ON, FLOW_BRANCH, FLOW_JUMP, FLOW_END, FLOW_TABLE };

static enum codestarts_flow flow_of(const ZydisDecodedInstruction *in)
{
	const bool plain = in->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT;

	if (in->opcode_map == ZYDIS_OPCODE_MAP_0F)
		return (in->opcode & 0xf0) == 0x80 ? FLOW_BRANCH
		       : in->opcode == 0x0b	   ? FLOW_END
						   : FLOW_ON;
	if (!plain)
		return FLOW_ON;
	if ((in->opcode & 0xf0) == 0x70 || (in->opcode & 0xfc) == 0xe0)
		return FLOW_BRANCH;
	switch (in->opcode) {
	case 0xe9:
	case 0xeb:
		return FLOW_JUMP;
	case 0xc2:
	case 0xc3:
	case 0xcc:
	case 0xf4:
		return FLOW_END;
	case 0xff:
		if (in->raw.modrm.reg != 4)
			return FLOW_ON;
		/* A jump through a register or an index is a switch, whose cases follow. */
		return in->raw.modrm.mod == 3 || in->raw.modrm.rm == 4 ? FLOW_TABLE : FLOW_END;
	}
	return FLOW_ON;
}

static bool is_call(const ZydisDecodedInstruction *in)
{
	return in->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT &&
	       (in->opcode == CALL || (in->opcode == 0xff && in->raw.modrm.reg == 2));
}

/* Whether the instruction removes the frame: pop, leave, or an addition to RSP. */
static bool is_epilogue(const ZydisDecodedInstruction *in)
{
	if (in->opcode_map != ZYDIS_OPCODE_MAP_DEFAULT)
		return false;
	return (in->opcode & 0xf8) == 0x58 || in->opcode == 0xc9 ||
	       ((in->opcode == 0x81 || in->opcode == 0x83) && in->raw.modrm.mod == 3 &&
		in->raw.modrm.reg == 0 && in->raw.modrm.rm == 4);
}

/* Whether code sets up a frame: endbr64, a push of a callee-saved register, a subtraction from RSP.
 */
static bool is_prologue(struct span b)
{
	static const uint8_t endbr[] = { 0xf3, 0x0f, 0x1e, 0xfa };

	if (b.len < 4)
		return false;
	return memcmp(b.data, endbr, sizeof(endbr)) == 0 || b.data[0] == 0x53 ||
	       b.data[0] == 0x55 || (b.data[0] == 0x41 && (b.data[1] & 0xfc) == 0x54) ||
	       (b.data[0] == 0x48 && (b.data[1] == 0x83 || b.data[1] == 0x81) && b.data[2] == 0xec);
}

struct codestarts_follow {
	const struct codestarts *s;
	size_t next;	   /* index in s->at */
	uint64_t furthest; /* the highest target of this function's branches */
	bool open;	   /* the function's end is unknown, since it has code that no visible
			    * branch leads to */
	bool given_back;   /* the frame was removed since the last call or branch */
	bool (*begins)(void *ctx, uint64_t address);
	void *ctx;
};

/* Returns the first known start at or after an address. */
static uint64_t next_start(struct codestarts_follow *f, uint64_t address)
{
	while (f->next < f->s->len && f->s->low + f->s->at[f->next] < address)
		f->next++;
	return f->next < f->s->len ? f->s->low + f->s->at[f->next] : UINT64_MAX;
}

/* Whether the function ends with this instruction, which ends at `behind`. */
static bool ends(struct codestarts_follow *f, const ZydisDecodedInstruction *in, uint64_t behind)
{
	enum codestarts_flow flow = flow_of(in);

	if (flow == FLOW_TABLE && f->given_back)
		flow = FLOW_END; /* a tail call */
	if (is_epilogue(in))
		f->given_back = true;
	else if (flow != FLOW_ON || is_call(in))
		f->given_back = false;
	if (flow == FLOW_ON)
		return false;
	if (flow == FLOW_TABLE)
		f->open = true;
	if (flow == FLOW_BRANCH || flow == FLOW_JUMP) {
		const uint64_t to = behind + (uint64_t)in->raw.imm[0].value.s;

		/* A jump that leads to the likely start of a function may be a tail call. */
		if (to > f->furthest && to >= behind && to < next_start(f, behind) &&
		    (flow == FLOW_BRANCH || to % 16 || !f->begins(f->ctx, to)))
			f->furthest = to;
	}
	return (flow == FLOW_JUMP || flow == FLOW_END) && !f->open && f->furthest < behind;
}

int codestarts_follow(struct codestarts *s, uint64_t from, uint64_t to,
		      size_t (*read)(void *ctx, uint64_t address, uint8_t *into, size_t n),
		      bool (*begins)(void *ctx, uint64_t address), void *ctx)
{
	struct codestarts found = { .low = s->low, .high = s->high };
	struct codestarts_follow f = { .s = s, .begins = begins, .ctx = ctx };
	uint8_t bytes[CHUNK];
	uint64_t at = from, have = 0, have_at = from;
	ZydisDecoder decoder;
	bool behind_end = true, behind_call = false;
	int r = 0;

	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	ZydisDecoderEnableMode(&decoder, ZYDIS_DECODER_MODE_MINIMAL, ZYAN_TRUE);
	while (!r && at < to && !found.full) {
		ZydisDecodedInstruction in;
		size_t length = 1;

		if (at - have_at + LONGEST > have) {
			have_at = at;
			have = read(ctx, at, bytes, numbers_smaller(to - at, CHUNK));
			if (!have)
				break;
		}
		const struct span rest = { .data = bytes + (at - have_at),
					   .len = (size_t)(have - (at - have_at)) };
		const uint64_t next = next_start(&f, at);

		if (at == next) {
			behind_end = true;
		} else if (behind_call && at % 16 && codestarts_padding(rest)) {
			/* A function may end with a call that does not return. */
			const size_t padding = codestarts_padding(rest);

			if ((at + padding) % 16 == 0 && padding < rest.len &&
			    is_prologue((struct span){ .data = rest.data + padding,
						       .len = rest.len - padding }))
				behind_end = true;
		}
		behind_call = false;
		if (at != next && behind_end) {
			const size_t padding = codestarts_padding(rest);

			if (padding) {
				at += numbers_smaller(padding, next - at);
				continue;
			}
			r = codestarts_add(&found, at);
		}
		if (behind_end) {
			f.furthest = 0;
			f.open = f.given_back = false;
			behind_end = false;
		}
		if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoder, NULL, rest.data, rest.len,
								&in))) {
			f.open = true; /* not code */
		} else {
			length = in.length;
			behind_end = ends(&f, &in, at + length);
			behind_call = is_call(&in);
		}
		const uint64_t known = next_start(&f, at + 1);

		/* If a known start lies within an instruction, continue there. */
		at = at + length > known ? known : at + length;
	}
	for (size_t i = 0; !r && i < found.len; i++)
		r = codestarts_add(s, found.low + found.at[i]);
	s->full |= found.full;
	codestarts_done(&found);
	codestarts_sort(s);
	return r;
}
