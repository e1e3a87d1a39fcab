/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libdw-lines FILE...
 *
 * Compares the files and lines that dwarflines.h finds with those of libdw, at every row of every
 * unit and one byte further. Prints how many places there were, and each difference. Fails if there
 * was one. Leaves out units of which the linker dropped code. Debug sections must not be packed.
 */
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/names/dwarf/dwarflines.h"

#define SHOWN 20

static uint64_t places, differences, left_out;

static struct span section(Elf *elf, const char *name)
{
	Elf_Scn *scn = NULL;
	size_t strings;

	if (elf_getshdrstrndx(elf, &strings) != 0)
		return (struct span){ 0 };
	while ((scn = elf_nextscn(elf, scn)) != NULL) {
		const Elf64_Shdr *h = elf64_getshdr(scn);
		const char *have = h ? elf_strptr(elf, strings, h->sh_name) : NULL;

		if (have && strcmp(have, name) == 0) {
			const Elf_Data *d = elf_rawdata(scn, NULL);

			return d ? (struct span){ .data = d->d_buf, .len = d->d_size }
				 : (struct span){ 0 };
		}
	}
	return (struct span){ 0 };
}

/* Whether a sequence ends where this line begins. For one address libdw has ends first, so that a
 * row at the very end belongs to the code behind it. */
static bool at_an_end(Dwarf_Lines *lines, size_t n, Dwarf_Line *line)
{
	Dwarf_Addr address, other;
	bool end = false;

	(void)dwarf_lineaddr(line, &address);
	for (size_t i = 0; i < n && !end; i++)
		if (dwarf_lineaddr(dwarf_onesrcline(lines, i), &other) == 0 && other == address)
			(void)dwarf_lineendsequence(dwarf_onesrcline(lines, i), &end);
	return end;
}

/* Whether libdw's path, which begins with the unit's folder, equals ours. */
static bool same_path(const char *theirs, const char *ours)
{
	const size_t n = strlen(theirs), m = strlen(ours);

	return n >= m && strcmp(theirs + n - m, ours) == 0 &&
	       (n == m || (ours[0] != '/' && theirs[n - m - 1] == '/'));
}

static void compare(const struct dwarflines_sections *s, const struct dwarflines *l, Dwarf_Die *cu,
		    Dwarf_Lines *lines, size_t n, uint64_t address)
{
	Dwarf_Line *line = dwarf_getsrc_die(cu, address);
	const char *path = line ? dwarf_linesrc(line, NULL, NULL) : NULL;
	uint64_t file = 0, number = 0;
	char ours[4096] = "";
	bool end = true;
	int theirs = 0;

	if (line && (dwarf_lineendsequence(line, &end) != 0 || end))
		line = NULL;
	if (line)
		(void)dwarf_lineno(line, &theirs);
	const bool found = dwarflines_find(s, l, address, &file, &number);

	if (found && !dwarflines_path(s, l, file, ours, sizeof(ours)))
		snprintf(ours, sizeof(ours), "???");
	places++;
	if (found == !!line &&
	    (!line || (number == (uint64_t)theirs && path && same_path(path, ours))))
		return;
	if (!found && line && at_an_end(lines, n, line))
		return;
	if (differences++ < SHOWN)
		printf("%" PRIx64 ": %s:%d, ours %s:%" PRIu64 "\n", address, path ? path : "none",
		       theirs, found ? ours : "none", number);
}

static void compare_unit(const struct dwarflines_sections *s, Dwarf_Die *cu)
{
	Dwarf_Attribute a;
	Dwarf_Word at;
	Dwarf_Lines *lines;
	struct dwarflines l;
	size_t n;

	if (!dwarf_attr(cu, DW_AT_stmt_list, &a) || dwarf_formudata(&a, &at) != 0 ||
	    dwarf_getsrclines(cu, &lines, &n) != 0)
		return;
	Dwarf_Addr first = 0;

	/* Dropped code lies at 0, and libdw takes its rows for those of other code. */
	if (n && (dwarf_lineaddr(dwarf_onesrcline(lines, 0), &first) != 0 || !first)) {
		left_out++;
		return;
	}
	if (!dwarflines_open(s, at, &l) || dwarflines_index(s, &l, SIZE_MAX) != 0) {
		printf("a unit that libdw reads is not read\n");
		differences++;
		return;
	}
	for (size_t i = 0; i < n; i++) {
		Dwarf_Addr address;

		if (dwarf_lineaddr(dwarf_onesrcline(lines, i), &address) != 0)
			continue;
		compare(s, &l, cu, lines, n, address);
		compare(s, &l, cu, lines, n, address + 1);
	}
	dwarflines_done(&l);
}

int main(int argc, char **argv)
{
	elf_version(EV_CURRENT);
	for (int i = 1; i < argc; i++) {
		const int fd = open(argv[i], O_RDONLY | O_CLOEXEC);
		Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
		Dwarf *dwarf = elf ? dwarf_begin_elf(elf, DWARF_C_READ, NULL) : NULL;
		Dwarf_CU *cu = NULL;
		Dwarf_Die die;

		if (!dwarf) {
			fprintf(stderr, "libdw-lines: %s: not an ELF file with DWARF\n", argv[i]);
			return 1;
		}
		const struct dwarflines_sections s = {
			.line = section(elf, ".debug_line"),
			.line_str = section(elf, ".debug_line_str"),
			.str = section(elf, ".debug_str"),
		};

		while (dwarf_get_units(dwarf, cu, &cu, NULL, NULL, &die, NULL) == 0)
			compare_unit(&s, &die);
		dwarf_end(dwarf);
		elf_end(elf);
		close(fd);
	}
	printf("%" PRIu64 " places, %" PRIu64 " differences, %" PRIu64 " units left out\n", places,
	       differences, left_out);
	return differences ? 1 : 0;
}
