/* SPDX-License-Identifier: Apache-2.0 */
#include "common/rows/elf/dynamic.h"

#include <elf.h>
#include "common/base/bytes/numbers.h"
#include "common/base/files/fd.h"

#define MAX_DYNAMIC 256

/* The file offset of an ELF address. */
static bool locate(const struct elf_file *f, uint64_t vaddr, uint64_t *ret)
{
	for (unsigned i = 0; i < f->loads; i++) {
		const struct elf_load *l = &f->load[i];

		if (vaddr < l->vaddr || vaddr - l->vaddr >= l->filesz)
			continue;
		*ret = l->offset + (vaddr - l->vaddr);
		return true;
	}
	return false;
}

int dynamic_read(int fd, const struct elf_file *f, struct dynamic *ret)
{
	Elf64_Dyn dynamic[MAX_DYNAMIC];
	Elf64_Phdr p[ELF_MAX_LOADS];
	uint64_t symbols = 0, names = 0;
	Elf64_Ehdr e;
	int64_t n = fd_pread_all(fd, &e, sizeof(e), 0);

	*ret = (struct dynamic){ 0 };
	if (n < (int64_t)sizeof(e) || e.e_phentsize != sizeof(p[0]))
		return n < 0 ? (int)n : 0;
	n = fd_pread_all(fd, p, numbers_smaller(e.e_phnum, ELF_MAX_LOADS) * sizeof(p[0]),
			 e.e_phoff);
	if (n < 0)
		return (int)n;

	size_t count = (size_t)n / sizeof(p[0]), i = 0;

	while (i < count && p[i].p_type != PT_DYNAMIC)
		i++;
	if (i == count)
		return 0;
	n = fd_pread_all(fd, dynamic, numbers_smaller(p[i].p_filesz, sizeof(dynamic)),
			 p[i].p_offset);
	if (n < 0)
		return (int)n;
	count = (size_t)n / sizeof(dynamic[0]);
	for (i = 0; i < count && dynamic[i].d_tag != DT_NULL; i++) {
		if (dynamic[i].d_tag == DT_STRTAB)
			names = dynamic[i].d_un.d_ptr;
		else if (dynamic[i].d_tag == DT_STRSZ)
			ret->names_size = dynamic[i].d_un.d_val;
		else if (dynamic[i].d_tag == DT_SYMTAB)
			symbols = dynamic[i].d_un.d_ptr;
		else if (dynamic[i].d_tag == DT_SONAME)
			ret->soname = dynamic[i].d_un.d_val;
		else if (dynamic[i].d_tag == DT_NEEDED)
			ret->needs = true;
	}
	if (!locate(f, names, &ret->names)) {
		*ret = (struct dynamic){ 0 };
		return 0;
	}
	if (locate(f, symbols, &ret->symbols) && ret->symbols < ret->names)
		ret->symbols_end = ret->names;
	else
		ret->symbols = 0;
	return 0;
}
