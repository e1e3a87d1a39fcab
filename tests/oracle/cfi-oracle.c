/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prof-deltas --registers FILE | cfi-oracle [-n EVERY] FILE
 *
 * Asks libdw for the unwind state at every one of its own row boundaries inside each row that
 * prof-deltas printed (or each EVERY-th), prints it in prof-deltas' form, and compares: CFA, RBP,
 * return address, RBX, and RSP if that is not the CFA. If prof-deltas prints `end` because a
 * rule cannot be expressed, libdw must know one that cannot be either; those are counted. If a
 * row is derived from code or from Go's tables, libdw should know nothing, or the same CFA; others
 * are counted, since prof-deltas knows more of Go's switches of stacks than Go's own .debug_frame.
 * Exit 1 on any disagreement.
 */
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <gelf.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PADDING 15
#define SHOWN 10

static const char *const regs[] = {
	"rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp",
	"r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15",
};

struct row {
	uint64_t address;
	char text[112];
	bool derived;
};

struct oracle {
	Dwarf_CFI *cfi[2]; /* .eh_frame, .debug_frame */
	uint64_t states, unsupported, disagreements;
	bool invalid; /* of the state that was requested last */
	uint64_t derived, overruled;
	uint64_t refused; /* states of functions that libdw finds invalid and others do not: a
			     register named after an expression, whose offset is the one from before
			     it */
	uint64_t unknown; /* rows of .debug_frame where libdw finds nothing: elfutils 0.188
			     overlooks functions there that readelf shows */
};

/* reg + off, by either operation. */
static bool is_breg(const Dwarf_Op *op, unsigned *reg, int64_t *off)
{
	if (op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg15) {
		*reg = op->atom - DW_OP_breg0;
		*off = (int64_t)op->number;
		return true;
	}
	*reg = (unsigned)op->number;
	*off = (int64_t)op->number2;
	return op->atom == DW_OP_bregx && op->number < 16;
}

static bool is_plt(const Dwarf_Op *ops, size_t n)
{
	return n == 9 && ops[0].atom == DW_OP_breg7 && ops[0].number == 8 &&
	       ops[1].atom == DW_OP_breg16 && ops[2].atom == DW_OP_lit15 &&
	       ops[3].atom == DW_OP_and && ops[4].atom >= DW_OP_lit0 &&
	       ops[4].atom <= DW_OP_lit15 && ops[5].atom == DW_OP_ge && ops[6].atom == DW_OP_lit3 &&
	       ops[7].atom == DW_OP_shl && ops[8].atom == DW_OP_plus;
}

enum kind { POOR, SAME, UNDEFINED, AT_CFA, IS_CFA, AT_REG, IS_REG, DEREF, INDEXED, TWICE, PLT };

/* The place of a value, or the value; POOR if prof-deltas has no words for it. */
struct place {
	enum kind kind;
	unsigned reg;
	int64_t off, add;
	unsigned index;	 /* INDEXED: *(reg + 8 * index + off) + add */
	int64_t between; /* TWICE: *(*(reg + off) + between) + add */
};

/* OpenSSL's expression: breg, breg index, lit8, mul, plus, deref, plus_uconst. */
static bool is_indexed(const Dwarf_Op *ops, size_t n, struct place *p)
{
	int64_t index_off = 0;

	return n == 7 && is_breg(&ops[1], &p->index, &index_off) && index_off == 0 &&
	       ops[2].atom == DW_OP_lit8 && ops[3].atom == DW_OP_mul && ops[4].atom == DW_OP_plus &&
	       ops[5].atom == DW_OP_deref && ops[6].atom == DW_OP_plus_uconst;
}

/* OCaml's expression: breg, deref, plus_uconst, deref, plus_uconst. */
static bool is_twice(const Dwarf_Op *ops, size_t n)
{
	return n == 5 && ops[1].atom == DW_OP_deref && ops[2].atom == DW_OP_plus_uconst &&
	       ops[3].atom == DW_OP_deref && ops[4].atom == DW_OP_plus_uconst;
}

/* False where libdw finds the rule invalid. */
static bool cfa_of(Dwarf_Frame *frame, struct place *ret)
{
	struct place p = { POOR };
	Dwarf_Op *ops;
	size_t n;

	if (dwarf_frame_cfa(frame, &ops, &n) != 0 || !n)
		return false;
	if (is_plt(ops, n))
		p.kind = PLT;
	else if (is_breg(&ops[0], &p.reg, &p.off))
		p.kind = n == 1						 ? IS_REG
			 : is_indexed(ops, n, &p)			 ? INDEXED
			 : is_twice(ops, n)				 ? TWICE
			 : n >= 2 && ops[1].atom == DW_OP_deref && n < 4 ? DEREF
									 : POOR;
	if (p.kind == DEREF && n == 3) {
		p.add = (int64_t)ops[2].number;
		if (ops[2].atom != DW_OP_plus_uconst)
			p.kind = POOR;
	}
	if (p.kind == INDEXED || p.kind == TWICE)
		p.add = (int64_t)ops[n - 1].number;
	if (p.kind == TWICE)
		p.between = (int64_t)ops[2].number;
	*ret = p;
	return true;
}

static struct place register_of(Dwarf_Frame *frame, int regno)
{
	struct place p = { POOR };
	Dwarf_Op mem[3], *ops;
	size_t n;
	bool value;

	if (dwarf_frame_register(frame, regno, mem, &ops, &n) != 0)
		return p;
	if (n == 0) {
		p.kind = ops ? UNDEFINED : SAME;
		return p;
	}
	value = ops[n - 1].atom == DW_OP_stack_value;
	n -= value;
	if (ops[0].atom == DW_OP_call_frame_cfa && n == 1) {
		p.kind = value ? IS_CFA : AT_CFA;
	} else if (ops[0].atom == DW_OP_call_frame_cfa && n == 2 &&
		   ops[1].atom == DW_OP_plus_uconst) {
		p.kind = value ? IS_CFA : AT_CFA;
		p.off = (int64_t)ops[1].number;
	} else if (ops[0].atom == DW_OP_regx && n == 1 && ops[0].number < 16) {
		p.kind = IS_REG;
		p.reg = (unsigned)ops[0].number;
	} else if (ops[0].atom >= DW_OP_reg0 && ops[0].atom <= DW_OP_reg15 && n == 1) {
		p.kind = IS_REG;
		p.reg = ops[0].atom - DW_OP_reg0;
	} else if (n == 2 && ops[0].atom == DW_OP_call_frame_cfa &&
		   is_breg(&ops[1], &p.reg, &p.off)) {
		/* libdw puts the CFA before every expression, as the standard demands; this
		 * expression does not use it. */
		p.kind = value ? IS_REG : AT_REG;
	}
	return p;
}

static void print_place(const struct place *p, char *out, size_t size)
{
	if (p->kind == SAME)
		snprintf(out, size, "same");
	else if (p->kind == AT_CFA)
		snprintf(out, size, "cfa%+" PRId64, p->off);
	else if (p->kind == AT_REG)
		snprintf(out, size, "%s%+" PRId64, regs[p->reg], p->off);
	else if (p->kind == IS_REG)
		snprintf(out, size, "%s", regs[p->reg]);
	else
		snprintf(out, size, "undefined");
}

/* If the caller's RSP is not the CFA, the caller's RSP becomes the CFA. False if that cannot be
 * expressed. */
static bool move_cfa(const struct place *sp, struct place *cfa, struct place *rbp,
		     struct place *rbx, struct place *ra)
{
	bool relative = rbp->kind == AT_CFA || ra->kind == AT_CFA;

	switch (sp->kind) {
	case UNDEFINED:
		return true;
	case IS_CFA:
		if (!sp->off)
			return true;
		*(cfa->kind == IS_REG ? &cfa->off : &cfa->add) += sp->off;
		rbp->off -= rbp->kind == AT_CFA ? sp->off : 0;
		rbx->off -= rbx->kind == AT_CFA ? sp->off : 0;
		ra->off -= ra->kind == AT_CFA ? sp->off : 0;
		return cfa->kind == IS_REG || cfa->kind == DEREF || cfa->kind == INDEXED ||
		       cfa->kind == TWICE;
	case AT_REG:
		if (cfa->kind == DEREF && cfa->reg == sp->reg && cfa->off == sp->off && !cfa->add)
			return true;
		*cfa = (struct place){ .kind = DEREF, .reg = sp->reg, .off = sp->off };
		break;
	case AT_CFA:
		if (cfa->kind != IS_REG)
			return false;
		*cfa = (struct place){ .kind = DEREF, .reg = cfa->reg, .off = cfa->off + sp->off };
		break;
	case SAME:
	case IS_REG:
		*cfa = (struct place){ .kind = IS_REG,
				       .reg = sp->kind == SAME ? 7 : sp->reg,
				       .off = sp->off };
		break;
	default:
		return false;
	}
	rbx->kind = SAME;
	return !relative;
}

/* Prints libdw's rules at pc, in prof-deltas' words. False where it knows none. *ret_poor: it knows
 * more than prof-deltas has words for. */
static bool ask(struct oracle *o, uint64_t pc, char *out, size_t size, uint64_t *ret_end,
		bool *ret_poor)
{
	Dwarf_Frame *frame = NULL;
	Dwarf_Addr start, end;
	bool is_signal;

	for (unsigned i = 0; i < 2 && !frame; i++) {
		if (o->cfi[i] && dwarf_cfi_addrframe(o->cfi[i], pc, &frame) != 0) {
			frame = NULL;
			o->invalid |= strstr(dwarf_errmsg(-1), "no matching") == NULL;
		}
	}
	if (!frame)
		return false;

	char cfa_text[64] = "plt", rbp_text[24], ra_text[24], rbx_text[24] = "";
	int ra_reg = dwarf_frame_info(frame, &start, &end, &is_signal);
	struct place cfa = { POOR }, rbp = register_of(frame, 6), rbx = register_of(frame, 3),
		     sp = register_of(frame, 7), ra = register_of(frame, ra_reg);

	o->invalid |= !cfa_of(frame, &cfa);
	free(frame);
	if (o->invalid)
		return false;
	*ret_end = end > pc ? end : pc + 1;
	*ret_poor = false;
	/* The signal form is the kernel's; for prof-deltas, other frames marked 'S' are ordinary
	 * ones. */
	is_signal = is_signal && cfa.kind == DEREF && cfa.reg == 7 && cfa.off == 160 && !cfa.add &&
		    ra.kind == AT_REG && ra.reg == 7 && ra.off == 168;
	if (ra.kind == SAME && ra_reg < 16)
		ra = (struct place){ .kind = IS_REG, .reg = (unsigned)ra_reg };
	if (cfa.kind == POOR || !move_cfa(&sp, &cfa, &rbp, &rbx, &ra) || ra.kind == POOR ||
	    ra.kind == SAME || ra.kind == IS_CFA || (ra.kind == AT_REG && !is_signal) ||
	    (ra.kind == AT_CFA && ra.off != -8 && cfa.kind != IS_REG)) {
		*ret_poor = true;
		snprintf(out, size, "end undefined undefined");
		return true;
	}
	if (rbp.kind == POOR || rbp.kind == IS_REG || rbp.kind == IS_CFA) {
		*ret_poor = true;
		rbp.kind = UNDEFINED;
	}
	if (cfa.kind == IS_REG)
		snprintf(cfa_text, sizeof(cfa_text), "%s%+" PRId64, regs[cfa.reg], cfa.off);
	else if (cfa.kind == DEREF)
		snprintf(cfa_text, sizeof(cfa_text), "*(%s%+" PRId64 ")%+" PRId64, regs[cfa.reg],
			 cfa.off, cfa.add);
	else if (cfa.kind == INDEXED)
		snprintf(cfa_text, sizeof(cfa_text), "*(%s+8*%s%+" PRId64 ")%+" PRId64,
			 regs[cfa.reg], regs[cfa.index], cfa.off, cfa.add);
	else if (cfa.kind == TWICE)
		snprintf(cfa_text, sizeof(cfa_text), "*(*(%s%+" PRId64 ")%+" PRId64 ")%+" PRId64,
			 regs[cfa.reg], cfa.off, cfa.between, cfa.add);
	print_place(&rbp, rbp_text, sizeof(rbp_text));
	print_place(&ra, ra_text, sizeof(ra_text));
	if (rbx.kind == AT_CFA && rbx.off <= -8 && rbx.off >= -2040 && rbx.off % 8 == 0 &&
	    !is_signal)
		snprintf(rbx_text, sizeof(rbx_text), " rbx=cfa%" PRId64, rbx.off);
	snprintf(out, size, "%s %s %s%s%s", cfa_text, rbp_text, ra_text, is_signal ? " signal" : "",
		 rbx_text);
	return true;
}

static void disagree(struct oracle *o, uint64_t pc, const char *ours, const char *theirs)
{
	if (o->disagreements++ < SHOWN)
		printf("at 0x%" PRIx64 ": prof-deltas `%s', libdw `%s'\n", pc, ours, theirs);
}

/* A row without a rule: libdw must know no rule there, or one that cannot be expressed. */
static void check_end(struct oracle *o, const struct row *row, uint64_t end)
{
	char text[192];
	uint64_t next;
	bool poor;
	uint64_t step = (end - row->address) / 16 + 1;

	for (uint64_t pc = row->address; pc < end; pc += step) {
		o->states++;
		if (!ask(o, pc, text, sizeof(text), &next, &poor))
			continue;
		if (row->derived)
			o->derived++;
		else if (poor)
			o->unsupported++;
		else
			disagree(o, pc, row->text, text);
	}
}

static void check_row(struct oracle *o, const struct row *row, uint64_t end)
{
	char text[192];
	uint64_t next, silent = 0;
	bool poor;

	if (strncmp(row->text, "end", 3) == 0) {
		check_end(o, row, end);
		return;
	}
	o->derived += row->derived;
	for (uint64_t pc = row->address; pc < end; pc = next) {
		o->states++;
		o->invalid = false;
		if (!ask(o, pc, text, sizeof(text), &next, &poor)) {
			next = pc + 1;
			if (row->derived) {
				next = pc + (end - row->address) / 16 + 1;
				continue;
			}
			if (o->invalid) {
				o->refused++;
				return;
			}
			/* Functions extend over padding. */
			if (++silent > PADDING && o->cfi[1]) {
				o->unknown++;
				return;
			}
			if (silent > PADDING) {
				disagree(o, pc, row->text, "nothing");
				return;
			}
			continue;
		}
		silent = 0;
		o->unsupported += poor;
		if (row->derived)
			o->overruled += strcspn(text, " ") != strcspn(row->text, " ") ||
					memcmp(text, row->text, strcspn(text, " ")) != 0;
		else if (strcmp(text, row->text) != 0)
			disagree(o, pc, row->text, text);
	}
}

static bool read_row(FILE *in, struct row *ret)
{
	char line[256];

	while (fgets(line, sizeof(line), in)) {
		char *rest;

		if (line[0] == '#')
			continue;
		line[strcspn(line, "\n")] = 0;
		ret->address = strtoull(line, &rest, 16);
		snprintf(ret->text, sizeof(ret->text), "%s", rest + (*rest == ' '));

		char *mark = strstr(ret->text, " derived");

		ret->derived = mark;
		if (mark)
			memmove(mark, mark + 8, strlen(mark + 8) + 1);
		return true;
	}
	return false;
}

int main(int argc, char **argv)
{
	struct oracle o = { 0 };
	uint64_t rows = 0, every = 1;
	int c;

	while ((c = getopt(argc, argv, "n:")) != -1) {
		if (c != 'n')
			return 2;
		every = strtoull(optarg, NULL, 10);
	}
	if (optind + 1 != argc || !every) {
		fprintf(stderr,
			"usage: prof-deltas --registers FILE | cfi-oracle [-n EVERY] FILE\n");
		return 2;
	}

	int fd = open(argv[optind], O_RDONLY | O_CLOEXEC);
	GElf_Ehdr header;
	Elf *elf;
	Dwarf *dwarf;

	elf_version(EV_CURRENT);
	elf = fd < 0 ? NULL : elf_begin(fd, ELF_C_READ_MMAP, NULL);
	if (!elf || !gelf_getehdr(elf, &header)) {
		fprintf(stderr, "cfi-oracle: cannot read %s\n", argv[optind]);
		return 2;
	}
	o.cfi[0] = dwarf_getcfi_elf(elf);
	dwarf = dwarf_begin_elf(elf, DWARF_C_READ, NULL);
	o.cfi[1] = dwarf ? dwarf_getcfi(dwarf) : NULL;

	struct row row, next;
	bool more = read_row(stdin, &row);

	for (; more; row = next, rows++) {
		more = read_row(stdin, &next);
		if (rows % every)
			continue;
		if (more && next.address <= row.address)
			disagree(&o, next.address, "addresses that do not rise", row.text);
		check_row(&o, &row, more ? next.address : row.address + 1);
	}
	printf("%s: rows=%" PRIu64 " states=%" PRIu64 " unsupported=%" PRIu64 " refused=%" PRIu64
	       " unknown=%" PRIu64 " derived=%" PRIu64 " overruled=%" PRIu64
	       " disagreements=%" PRIu64 "\n",
	       argv[optind], rows, o.states, o.unsupported, o.refused, o.unknown, o.derived,
	       o.overruled, o.disagreements);
	dwarf_end(dwarf);
	if (o.cfi[0])
		dwarf_cfi_end(o.cfi[0]);
	elf_end(elf);
	close(fd);
	return o.disagreements ? 1 : 0;
}
