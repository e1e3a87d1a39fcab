/* SPDX-License-Identifier: Apache-2.0 */
#include "common/rows/context/greenlet.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/files/fd.h"

#define MAX_NAMES (256u << 10) /* of names; greenlet has 20 KiB */
#define MAX_SYMBOLS 8192

/* greenlet::UserGreenlet::inner_bootstrap(), with any parameters. */
static const char first[] = "_ZN8greenlet12UserGreenlet15inner_bootstrapE";

/* Searches the names for that function; *ret is the offset of the name. Returns 0, 1 (found) or
 * -errno. */
static int find_name(int fd, const struct dynamic *d, uint32_t *ret)
{
	char *names = malloc(d->names_size + 1);
	const char *found;
	int r = 0;

	if (!names)
		return -ENOMEM;
	int64_t n = fd_pread_all(fd, names, d->names_size, d->names);
	if (n < 0) {
		r = (int)n;
	} else {
		found = memmem(names, (size_t)n, first, sizeof(first) - 1);
		r = found && found > names && !found[-1];
		*ret = r ? (uint32_t)(found - names) : 0;
	}
	free(names);
	return r;
}

static int find_symbol(int fd, const struct dynamic *d, uint32_t name, struct rows *rows)
{
	uint64_t size = d->symbols_end - d->symbols;
	Elf64_Sym *all;
	int r = 0;

	if (size > MAX_SYMBOLS * sizeof(*all))
		size = MAX_SYMBOLS * sizeof(*all);
	all = malloc(size + 1);
	if (!all)
		return -ENOMEM;
	int64_t n = fd_pread_all(fd, all, size, d->symbols);
	if (n < 0)
		r = (int)n;
	for (size_t i = 0; n > 0 && i < (size_t)n / sizeof(*all); i++) {
		if (all[i].st_name != name || ELF64_ST_TYPE(all[i].st_info) != STT_FUNC)
			continue;
		r = all[i].st_value ? rows_add_end(rows, all[i].st_value, all[i].st_size) : 0;
		break;
	}
	free(all);
	return r;
}

int greenlet_read(int fd, const struct dynamic *d, struct rows *rows)
{
	uint32_t name = 0;
	int r;

	if (!d->symbols || d->names_size > MAX_NAMES)
		return 0;
	r = find_name(fd, d, &name);
	return r <= 0 ? r : find_symbol(fd, d, name, rows);
}
