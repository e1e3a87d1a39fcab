/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libdw-rows FILE...
 *
 * Goes through every row of files' .eh_frame as libdw gives them, for the bench: prints how many
 * there are. Functions are found by the table of .eh_frame_hdr; a file without one is left out.
 */
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <gelf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Every row from `start` on and before `end`. */
static uint64_t count_rows(Dwarf_CFI *cfi, uint64_t start, uint64_t end)
{
	uint64_t rows = 0;

	for (uint64_t pc = start; pc < end; rows++) {
		Dwarf_Addr row_start, row_end;
		Dwarf_Frame *frame;
		bool is_signal;

		if (dwarf_cfi_addrframe(cfi, pc, &frame) != 0)
			break;
		dwarf_frame_info(frame, &row_start, &row_end, &is_signal);
		free(frame);
		if (row_end <= pc)
			break;
		pc = row_end;
	}
	return rows;
}

/* The section of a name. NULL without one. */
static Elf_Data *section(Elf *elf, const char *name, uint64_t *ret_addr)
{
	Elf_Scn *scn = NULL;
	size_t strings;

	if (elf_getshdrstrndx(elf, &strings) != 0)
		return NULL;
	while ((scn = elf_nextscn(elf, scn)) != NULL) {
		GElf_Shdr h;
		const char *have;

		if (!gelf_getshdr(scn, &h) || h.sh_type == SHT_NOBITS)
			continue;
		have = elf_strptr(elf, strings, h.sh_name);
		if (have && strcmp(have, name) == 0) {
			*ret_addr = h.sh_addr;
			return elf_rawdata(scn, NULL);
		}
	}
	return NULL;
}

static uint64_t file_rows(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	Elf *elf = fd < 0 ? NULL : elf_begin(fd, ELF_C_READ_MMAP, NULL);
	uint64_t addr = 0, rows = 0;
	Elf_Data *hdr = elf ? section(elf, ".eh_frame_hdr", &addr) : NULL;
	Dwarf_CFI *cfi = hdr ? dwarf_getcfi_elf(elf) : NULL;

	/* The only form that exists: version 1, count as udata4, pairs of sdata4 relative to the
	 * section. */
	if (cfi && hdr->d_size >= 12 && memcmp(hdr->d_buf, "\1\x1b\3\x3b", 4) == 0) {
		const int32_t *word = hdr->d_buf;
		size_t n = (uint32_t)word[2], fit = (hdr->d_size - 12) / 8;

		for (size_t i = 0; i < n && i < fit; i++) {
			uint64_t start = addr + (uint64_t)(int64_t)word[3 + 2 * i],
				 end = i + 1 < n && i + 1 < fit
					       ? addr + (uint64_t)(int64_t)word[5 + 2 * i]
					       : UINT64_MAX;

			rows += count_rows(cfi, start, end);
		}
	}
	if (cfi)
		dwarf_cfi_end(cfi);
	elf_end(elf);
	if (fd >= 0)
		close(fd);
	return rows;
}

int main(int argc, char **argv)
{
	uint64_t rows = 0;

	elf_version(EV_CURRENT);
	for (int i = 1; i < argc; i++)
		rows += file_rows(argv[i]);
	printf("%" PRIu64 " rows\n", rows);
	return 0;
}
