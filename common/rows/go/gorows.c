/* SPDX-License-Identifier: Apache-2.0 */
#include "common/rows/go/gorows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/bytes/numbers.h"
#include "common/base/files/fd.h"
#include "common/go/gopclntab.h"
#include "common/rows/elf/elf.h"
#include "common/rows/x86/go/goasm.h"

#define CACHE (256u << 10)    /* bytes; filling a larger cache costs more than it saves */
#define MAX_STEPS 65536u      /* changes of the stack pointer in one function */
#define MAX_NAME 64u	      /* length of the longest name that is compared */
#define PAD 0xcc	      /* int3, between functions */
#define STYLE_FUNCTIONS 4096u /* functions read to find out whether the program saves RBP at all */

struct named {
	const char *name;
	uint8_t what;
};
enum {		      /* added to enum goasm_role */
       WHAT_END = 16, /* the outermost function of a stack */
       WHAT_SIGRETURN,
       WHAT_INTERRUPTS, /* a signal handler makes the interrupted code call it */
       /* Marked as outermost, but it has a caller: through the kernel's signal frame. */
       WHAT_NOT_END,
};
static const struct named names[] = {
	{ "runtime.goexit", WHAT_END },
	{ "runtime.mstart", WHAT_END },
	{ "runtime.rt0_go", WHAT_END },
	{ "_rt0_amd64", WHAT_END },
	{ "_rt0_amd64_linux", WHAT_END },
	{ "_rt0_go", WHAT_END },
	{ "runtime.sigreturn", WHAT_SIGRETURN },
	{ "runtime.sigreturn__sigaction", WHAT_SIGRETURN },
	{ "runtime.asyncPreempt", WHAT_INTERRUPTS },
	{ "runtime.sigtramp", WHAT_NOT_END },
	{ "runtime.cgoSigtramp", WHAT_NOT_END },
	{ "runtime.sigprofNonGoWrapper", WHAT_NOT_END },
	{ "runtime.mcall", GOASM_LEAVES },
	{ "runtime.gogo", GOASM_LEAVES },
	{ "gogo", GOASM_LEAVES },
	{ "runtime.clone", GOASM_LEAVES },
	{ "runtime.switchToCrashStack0", GOASM_LEAVES },
	{ "runtime.systemstack", GOASM_RETURNS },
	{ "runtime.morestack", GOASM_MORESTACK },
};

/* How a function saves its caller's RBP. */
enum style {
	STYLE_NONE,
	STYLE_PUSH, /* as the first instruction, from Go 1.21 on */
	STYLE_STORE /* after RSP is lowered, from Go 1.7 on */
};

struct step {
	uint32_t at; /* from the function's entry */
	struct unwind_rule rule;
};

struct gorows {
	int fd;
	bool interrupts;   /* the current function is WHAT_INTERRUPTS */
	struct rows *rows; /* borrowed */
	struct gopclntab *table;
	struct goasm *assembly;
	struct goasm_curg curg;
	bool flags;	/* the table distinguishes assembly from compiled functions */
	bool saves_rbp; /* at least one function saves RBP */

	uint64_t code_offset; /* file offset of code[0] */
	size_t code_len;
	uint8_t code[2 * GOASM_MAX_CODE];

	struct goasm_delta delta[MAX_STEPS];
	struct step step[2 * MAX_STEPS];
	uint32_t deltas, steps;
};

static int64_t read_file(void *ctx, uint64_t offset, void *into, size_t n)
{
	return fd_pread_all(*(const int *)ctx, into, n, offset);
}

/* Gives the code at a file offset. *ret_len is below `want` only at the file's end. */
static int code_at(struct gorows *g, uint64_t offset, size_t want, const uint8_t **ret,
		   size_t *ret_len)
{
	if (offset < g->code_offset || offset + want > g->code_offset + g->code_len) {
		int64_t n = fd_pread_all(g->fd, g->code, sizeof(g->code), offset);

		g->code_len = 0;
		if (n < 0)
			return (int)n;
		g->code_offset = offset;
		g->code_len = (size_t)n;
	}

	size_t left = g->code_len - (size_t)(offset - g->code_offset);

	*ret = g->code + (offset - g->code_offset);
	*ret_len = left < want ? left : want;
	return 0;
}

/* The role of a function, by its name and flags. */
static uint8_t what_is(struct gorows *g, const struct gopclntab_func *f)
{
	char name[MAX_NAME];
	uint8_t what = f->flags & GOPCLNTAB_TOP_FRAME ? WHAT_END : GOASM_PLAIN;

	if (gopclntab_name(g->table, f->name, name, sizeof(name)) != 0)
		return what;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(name, names[i].name) == 0)
			return names[i].what;
	}
	return what;
}

/* mov eax, 15 (rt_sigreturn); syscall. */
static bool is_sigreturn(const uint8_t *code, size_t len)
{
	static const uint8_t wide[] = { 0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05 };
	static const uint8_t narrow[] = { 0xb8, 15, 0, 0, 0, 0x0f, 0x05 };

	return (len >= sizeof(wide) && memcmp(code, wide, sizeof(wide)) == 0) ||
	       (len >= sizeof(narrow) && memcmp(code, narrow, sizeof(narrow)) == 0);
}

/* Whether these bytes may set RSP in a way that the table does not show: `and` with a constant, or
 * `mov` from a register or memory. With `unsaid`, also `sub` of a constant where the table has no
 * change. Used for old versions, whose table has no flag for this. May be wrong. */
static bool sets_rsp(const uint8_t *code, size_t len, bool unsaid)
{
	for (size_t i = 0; i + 3 < len; i++) {
		uint8_t op = code[i + 1], operands = code[i + 2];

		if ((code[i] & 0xf8) != 0x48)
			continue;
		if ((op == 0x83 || op == 0x81) &&
		    (operands == 0xe4 || (unsaid && operands == 0xec)))
			return true;
		if (op == 0x89 && (operands & 0xc7) == 0xc4)
			return true;
		if (op == 0x8b && (operands & 0x38) == 0x20 && !(code[i] & 4))
			return true;
	}
	return false;
}

/* --- steps of compiled functions --- */

/* Reads the stack depths of f. Returns 0, MSG_ROWS_MALFORMED or -errno. */
static int read_deltas(struct gorows *g, const struct gopclntab_func *f)
{
	struct gopclntab_values v;
	uint64_t start, end;
	int32_t value;
	int r;

	g->deltas = 0;
	gopclntab_values(g->table, f, f->pcsp, &v);
	for (r = gopclntab_next(&v, &start, &end, &value); r == 0;
	     r = gopclntab_next(&v, &start, &end, &value)) {
		if (value < -8 || value > INT32_MAX - 16 || g->deltas == MAX_STEPS)
			return MSG_ROWS_MALFORMED;
		g->delta[g->deltas++] = (struct goasm_delta){ .at = (uint32_t)(start - f->entry),
							      .delta = value };
	}
	return r < 0 ? r : r == GOPCLNTAB_NONE && g->deltas ? 0 : MSG_ROWS_MALFORMED;
}

/* Returns how RBP is saved where RSP first goes down, at d. *ret_len is the length of the
 * instruction that stores it. */
static enum style style_of(const uint8_t *code, size_t len, const struct goasm_delta *d,
			   uint32_t *ret_len)
{
	static const uint8_t store8[] = { 0x48, 0x89, 0x6c, 0x24 };
	static const uint8_t store32[] = { 0x48, 0x89, 0xac, 0x24 };
	int32_t off;

	*ret_len = 0;
	if (d->at >= 1 && d->at <= len && d->delta == 8 && code[d->at - 1] == 0x55)
		return STYLE_PUSH;
	if (d->at > len || len - d->at < 8)
		return STYLE_NONE;
	code += d->at;
	if (memcmp(code, store8, sizeof(store8)) == 0 && (int8_t)code[4] == d->delta - 8) {
		*ret_len = 5;
		return STYLE_STORE;
	}
	memcpy(&off, code + 4, sizeof(off));
	if (memcmp(code, store32, sizeof(store32)) == 0 && off == d->delta - 8) {
		*ret_len = 8;
		return STYLE_STORE;
	}
	return STYLE_NONE;
}

static void step_add(struct gorows *g, uint32_t at, int32_t delta, bool saved, bool known)
{
	const struct unwind_rule none = { .cfa = UNWIND_CFA_END,
					  .cfa_add = UNWIND_END_UNSUPPORTED };
	struct unwind_rule rule = {
		.cfa = UNWIND_CFA_REG,
		.cfa_reg = UNWIND_REG_RSP,
		.cfa_off = delta + 8,
		.flags = UNWIND_DERIVED,
		.rbp = saved   ? UNWIND_RBP_CFA
		       : known ? UNWIND_RBP_SAME
			       : UNWIND_RBP_UNDEFINED,
		.rbp_off = saved ? -16 : 0,
	};

	/* A negative depth: the return address was popped, as around vfork. */
	g->step[g->steps++] = (struct step){ .at = at, .rule = delta < 0 ? none : rule };
}

/* Turns depths into steps. Returns how RBP is saved, and STYLE_PUSH if no step depends on it. */
static enum style make_steps(struct gorows *g, const uint8_t *code, size_t len)
{
	enum style style = STYLE_NONE;
	bool framed = false, odd = false;

	g->steps = 0;
	for (uint32_t i = 0; i < g->deltas; i++) {
		const struct goasm_delta *d = &g->delta[i];
		uint32_t store = 0;

		if (d->delta > 0 && !framed) {
			framed = true;
			style = style_of(code, len, d, &store);
			if (style == STYLE_STORE) {
				step_add(g, d->at, d->delta, false, true);
				if (i + 1 < g->deltas && g->delta[i + 1].at <= d->at + store)
					continue;
				step_add(g, d->at + store, d->delta, true, true);
				continue;
			}
		}
		odd = odd || d->delta < 0;
		step_add(g, d->at, d->delta, d->delta > 0 && style != STYLE_NONE, g->saves_rbp);
	}
	return odd ? STYLE_NONE : framed ? style : STYLE_PUSH;
}

/* --- functions --- */

static int add_rule(struct gorows *g, uint32_t at, const struct unwind_rule *rule)
{
	struct unwind_rule put = *rule;
	uint16_t number;

	put.flags |= g->interrupts ? UNWIND_INTERRUPTS : 0;

	int r = rows_rules_put(&g->rows->rules, &put, &number);

	if (r == MSG_ROWS_TOO_LARGE) {
		g->rows->skipped[ROWS_SKIP_RULE_LIMIT]++;
		number = ROWS_RULE_GAP;
		r = 0;
	}
	return r ? r : rows_add(g->rows, at, number);
}

/* Adds a function with one rule. */
static int add_one(struct gorows *g, uint32_t at, uint32_t end, const struct unwind_rule *rule)
{
	int r = rows_open(g->rows, at, end);

	if (r == 0)
		r = add_rule(g, at, rule);
	if (r == 0)
		rows_close(g->rows);
	return r == MSG_ROWS_NONE ? 0 : r;
}

static int add_steps(struct gorows *g, uint32_t at, uint32_t end)
{
	int r = rows_open(g->rows, at, end);

	for (uint32_t i = 0; i < g->steps && r == 0; i++)
		r = add_rule(g, at + g->step[i].at, &g->step[i].rule);
	if (r == 0)
		rows_close(g->rows);
	return r == MSG_ROWS_NONE ? 0 : r;
}

/* Adds an assembly function, with the rules that its instructions give. */
static int add_assembly(struct gorows *g, uint32_t at, uint32_t end, const uint8_t *code,
			enum goasm_role role)
{
	const struct goasm_row *row;
	uint32_t n, step = 0;
	int r = goasm_rows(g->assembly, code, end - at, g->rows->base + at, g->delta, g->deltas,
			   role, &g->curg, &row, &n);

	if (r == GOASM_GIVEN_UP)
		return add_steps(g, at, end);
	r = rows_open(g->rows, at, end);
	for (uint32_t i = 0; i < n && r == 0; i++) {
		while (step + 1 < g->steps && g->step[step + 1].at <= row[i].at)
			step++;
		r = add_rule(g, at + row[i].at, row[i].known ? &row[i].rule : &g->step[step].rule);
	}
	if (r == 0)
		rows_close(g->rows);
	return r == MSG_ROWS_NONE ? 0 : r;
}

/* Adds the rows of f. Returns 0; MSG_ROWS_MALFORMED: not a valid function; MSG_ROWS_TOO_LARGE;
 * -errno. */
static int add_function(struct gorows *g, const struct gopclntab_func *f)
{
	const struct unwind_rule over = { .cfa = UNWIND_CFA_REG,
					  .cfa_reg = UNWIND_REG_RSP,
					  .cfa_off = 8,
					  .ra = UNWIND_RA_UNDEFINED,
					  .flags = UNWIND_DERIVED };
	const struct unwind_rule signal = { .cfa = UNWIND_CFA_REG,
					    .cfa_reg = UNWIND_REG_RSP,
					    .flags = UNWIND_SIGNAL_FRAME | UNWIND_DERIVED };
	bool looked = !g->flags || f->flags;
	uint8_t what = looked ? what_is(g, f) : (uint8_t)GOASM_PLAIN;
	uint64_t left, size = f->end - f->entry;
	const uint8_t *code;
	uint32_t at, end;
	size_t len;
	int r;

	/* Go's linker adds the C functions of cgo without tables. */
	if (f->pcsp == 0 || size == 0)
		return 0;
	if (!rows_locate(g->rows, f->entry, &at, &left) || left < size)
		return MSG_ROWS_MALFORMED;
	end = at + (uint32_t)size;
	r = code_at(g, g->rows->base + at, numbers_smaller(size, GOASM_MAX_CODE), &code, &len);
	if (r)
		return r;
	/* The walker looks up the byte before a return address. For the signal trampoline, this is
	 * the byte before its first one, and must also belong to the trampoline. So the last byte
	 * of padding is left out of any other function. */
	if (len == size && size > 1 && code[len - 1] == PAD)
		end--;
	if (what == WHAT_END)
		return add_one(g, at, end, &over);
	if (what == WHAT_SIGRETURN && is_sigreturn(code, len))
		return add_one(g, at ? at - 1 : at, end, &signal);
	r = read_deltas(g, f);
	if (r)
		return r;
	g->interrupts = what == WHAT_INTERRUPTS;

	bool plain = make_steps(g, code, len) != STYLE_NONE &&
		     !(g->flags ? f->flags & (GOPCLNTAB_ASM | GOPCLNTAB_SP_WRITE)
				: sets_rsp(code, len, g->deltas == 1));

	if (plain || len != size)
		return add_steps(g, at, end);
	return add_assembly(g, at, end, code,
			    what < WHAT_END ? (enum goasm_role)what : GOASM_PLAIN);
}

/* Finds out whether functions save RBP. Before Go 1.7 they do not, and any function may change
 * RBP. */
static int look_for_rbp(struct gorows *g)
{
	uint32_t n = gopclntab_count(g->table), framed = 0;

	for (uint32_t i = 0; i < n && framed < STYLE_FUNCTIONS && !g->saves_rbp; i++) {
		struct gopclntab_func f;
		const uint8_t *code;
		uint64_t left;
		uint32_t at;
		size_t len;
		int r = gopclntab_func(g->table, i, &f);

		if (r < 0)
			return r;
		if (r || !f.pcsp || !rows_locate(g->rows, f.entry, &at, &left))
			continue;
		r = read_deltas(g, &f);
		if (r < 0)
			return r;
		if (r)
			continue;
		r = code_at(g, g->rows->base + at, 256, &code, &len);
		if (r)
			return r;
		if (make_steps(g, code, len) == STYLE_NONE)
			framed++;
		else if (g->steps > 1)
			g->saves_rbp = true;
	}
	return 0;
}

static int add_functions(struct gorows *g)
{
	uint32_t n = gopclntab_count(g->table), last = UINT32_MAX;
	int r = 0;

	for (uint32_t i = 0; i <= n; i++) {
		struct gopclntab_func f;
		uint32_t at = i;

		if (i == n) {
			/* morestack needs data from systemstack, so it comes last. */
			if (last == UINT32_MAX)
				break;
			at = last;
		}
		if (rows_stopped(g->rows))
			return MSG_ROWS_LATER;
		r = gopclntab_func(g->table, at, &f);
		if (r == 0 && i < n && last == UINT32_MAX && !g->curg.known &&
		    (!g->flags || f.flags) && what_is(g, &f) == GOASM_MORESTACK) {
			last = i;
			continue;
		}
		if (r == 0)
			r = add_function(g, &f);
		if (r < 0 || r == MSG_ROWS_TOO_LARGE)
			return r;
		if (r)
			g->rows->skipped[ROWS_SKIP_GO]++;
	}
	return 0;
}

static int read_table(struct gorows *g)
{
	int r = 0;

	g->flags = gopclntab_format(g->table) >= GOPCLNTAB_1_18;
	g->saves_rbp = gopclntab_format(g->table) >= GOPCLNTAB_1_16;
	if (!g->saves_rbp)
		r = look_for_rbp(g);
	if (r < 0)
		return r;
	rows_fill(g->rows);
	r = add_functions(g);
	return r ? r : rows_finish(g->rows);
}

int gorows_read(int fd, uint64_t size, struct rows *rows)
{
	struct gopclntab_reader reader = {
		.read = read_file, .ctx = &fd, .size = size, .cache_size = CACHE
	};
	struct gopclntab *table;
	int r = gopclntab_open(&reader, &table);

	/* The rows may leave too little memory for the cache. Reading without a cache is slower. */
	if (r == -ENOMEM) {
		reader.cache_size = 0;
		r = gopclntab_open(&reader, &table);
	}
	if (r == GOPCLNTAB_MALFORMED)
		rows->skipped[ROWS_SKIP_GO]++;
	if (r)
		return r < 0 ? r : 0;

	/* The state is large, so it is allocated only for Go programs. */
	struct gorows *g = calloc(1, sizeof(*g));

	r = g ? 0 : -ENOMEM;
	if (g) {
		g->fd = fd;
		g->rows = rows;
		g->table = table;
		r = goasm_new(&g->assembly);
		if (r == 0)
			r = read_table(g);
		else if (r > 0)
			r = 0;
		goasm_free(g->assembly);
	}
	gopclntab_free(table);
	free(g);
	return r;
}
