// SPDX-License-Identifier: Apache-2.0
/*
 * prof-deltas FILE | cfi-oracle [-n EVERY] FILE
 *
 * Asks libdw for the unwind state at every one of its own row boundaries inside each row that
 * prof-deltas printed (or each EVERY-th), writes it in prof-deltas' words,
 * and compares. Where prof-deltas says `end` because a rule cannot be expressed, libdw must know
 * one that indeed cannot be; those are counted. Exit 1 on any disagreement.
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
	char text[88];
};

struct oracle {
	Dwarf_CFI *cfi[2]; /* .eh_frame, .debug_frame */
	uint64_t entry;
	uint64_t states, unsupported, disagreements;
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

/* "?" for what prof-deltas has no words for. */
static void print_cfa(Dwarf_Frame *frame, char *out, size_t size)
{
	Dwarf_Op *ops;
	size_t n;
	unsigned reg;
	int64_t off;

	snprintf(out, size, "?");
	if (dwarf_frame_cfa(frame, &ops, &n) != 0 || !n)
		return;
	if (is_plt(ops, n)) {
		snprintf(out, size, "plt");
		return;
	}
	if (!is_breg(&ops[0], &reg, &off))
		return;
	if (n == 1)
		snprintf(out, size, "%s%+" PRId64, regs[reg], off);
	else if (n == 2 && ops[1].atom == DW_OP_deref)
		snprintf(out, size, "*(%s%+" PRId64 ")+0", regs[reg], off);
	else if (n == 3 && ops[1].atom == DW_OP_deref && ops[2].atom == DW_OP_plus_uconst)
		snprintf(out, size, "*(%s%+" PRId64 ")%+" PRId64, regs[reg], off,
			 (int64_t)ops[2].number);
}

static void print_reg(Dwarf_Frame *frame, int regno, char *out, size_t size)
{
	Dwarf_Op mem[3], *ops;
	size_t n;
	unsigned reg;
	int64_t off;

	snprintf(out, size, "?");
	if (dwarf_frame_register(frame, regno, mem, &ops, &n) != 0)
		return;
	if (n == 0)
		snprintf(out, size, ops ? "undefined" : "same");
	else if (ops[0].atom == DW_OP_call_frame_cfa && n == 1)
		snprintf(out, size, "cfa+0");
	else if (ops[0].atom == DW_OP_call_frame_cfa && n == 2 && ops[1].atom == DW_OP_plus_uconst)
		snprintf(out, size, "cfa%+" PRId64, (int64_t)ops[1].number);
	else if (ops[0].atom == DW_OP_regx && n == 1 && ops[0].number < 16)
		snprintf(out, size, "%s", regs[ops[0].number]);
	else if (ops[0].atom >= DW_OP_reg0 && ops[0].atom <= DW_OP_reg15 && n == 1)
		snprintf(out, size, "%s", regs[ops[0].atom - DW_OP_reg0]);
	else if (n == 2 && ops[0].atom == DW_OP_call_frame_cfa && is_breg(&ops[1], &reg, &off))
		/* libdw puts the CFA before every expression, as the standard has it; this one does
		 * not use it. */
		snprintf(out, size, "%s%+" PRId64, regs[reg], off);
}

/* What libdw says at pc, in prof-deltas' words. False where it knows nothing. *ret_poor: it knows
 * more than prof-deltas has words for. */
static bool ask(struct oracle *o, uint64_t pc, char *out, size_t size, uint64_t *ret_end,
		bool *ret_poor)
{
	Dwarf_Frame *frame = NULL;
	Dwarf_Addr start, end;
	bool is_signal;

	for (unsigned i = 0; i < 2 && !frame; i++) {
		if (o->cfi[i] && dwarf_cfi_addrframe(o->cfi[i], pc, &frame) != 0)
			frame = NULL;
	}
	if (!frame)
		return false;

	char cfa[40], rbp[20], ra[20];
	int ra_reg = dwarf_frame_info(frame, &start, &end, &is_signal);

	print_cfa(frame, cfa, sizeof(cfa));
	print_reg(frame, 6, rbp, sizeof(rbp));
	print_reg(frame, ra_reg, ra, sizeof(ra));
	free(frame);
	*ret_end = end > pc ? end : pc + 1;
	*ret_poor = false;
	/* The signal form is the kernel's; what else says 'S' is an ordinary frame to prof-deltas.
	 * */
	is_signal = is_signal && strcmp(cfa, "*(rsp+160)+0") == 0 && strcmp(ra, "rsp+168") == 0;
	if (strcmp(ra, "same") == 0 && ra_reg < 16)
		snprintf(ra, sizeof(ra), "%s", regs[ra_reg]);
	if (cfa[0] == '?' || ra[0] == '?' || strcmp(ra, "same") == 0 ||
	    (strncmp(ra, "cfa", 3) != 0 && strchr(ra, '+') && !is_signal)) {
		*ret_poor = true;
		snprintf(out, size, "end undefined undefined");
		return true;
	}
	if (rbp[0] == '?' || (rbp[0] == 'r' && !strpbrk(rbp, "+-"))) {
		*ret_poor = true;
		snprintf(rbp, sizeof(rbp), "undefined");
	}
	snprintf(out, size, "%s %s %s%s", cfa, rbp, ra, is_signal ? " signal" : "");
	return true;
}

static void disagree(struct oracle *o, uint64_t pc, const char *ours, const char *theirs)
{
	if (o->disagreements++ < SHOWN)
		printf("at 0x%" PRIx64 ": prof-deltas `%s', libdw `%s'\n", pc, ours, theirs);
}

/* A row without a rule: libdw must know nothing there, or nothing that can be said. */
static void check_end(struct oracle *o, const struct row *row, uint64_t end)
{
	char text[128];
	uint64_t next;
	bool poor;
	uint64_t step = (end - row->address) / 16 + 1;

	for (uint64_t pc = row->address; pc < end; pc += step) {
		o->states++;
		if (!ask(o, pc, text, sizeof(text), &next, &poor))
			continue;
		if (poor)
			o->unsupported++;
		else
			disagree(o, pc, row->text, text);
	}
}

static void check_row(struct oracle *o, const struct row *row, uint64_t end)
{
	char text[128];
	uint64_t next, silent = 0;
	bool poor;

	if (strncmp(row->text, "end", 3) == 0) {
		check_end(o, row, end);
		return;
	}
	for (uint64_t pc = row->address; pc < end; pc = next) {
		o->states++;
		if (!ask(o, pc, text, sizeof(text), &next, &poor)) {
			next = pc + 1;
			/* The entry point is said to be the root even if nothing describes it; and
			 * functions stretch over padding. */
			if (pc - o->entry < 64 && strcmp(row->text, "rsp+8 same undefined") == 0)
				continue;
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
		if (strcmp(text, row->text) != 0)
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
		fprintf(stderr, "usage: prof-deltas FILE | cfi-oracle [-n EVERY] FILE\n");
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
	o.entry = header.e_entry;
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
	printf("%s: rows=%" PRIu64 " states=%" PRIu64 " unsupported=%" PRIu64 " unknown=%" PRIu64
	       " disagreements=%" PRIu64 "\n",
	       argv[optind], rows, o.states, o.unsupported, o.unknown, o.disagreements);
	dwarf_end(dwarf);
	if (o.cfi[0])
		dwarf_cfi_end(o.cfi[0]);
	elf_end(elf);
	close(fd);
	return o.disagreements || !rows ? 1 : 0;
}
