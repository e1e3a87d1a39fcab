/* SPDX-License-Identifier: Apache-2.0 */
#include "common/names/program/gosym.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include "common/go/gopclntab.h"

struct gosym {
	const struct symfile *file;
	struct gopclntab *table;
};

static int64_t read_symfile(void *ctx, uint64_t offset, void *into, size_t n)
{
	const struct symfile *f = ctx;
	uint64_t size = symfile_size(f);
	int r;

	if (offset >= size)
		return 0;
	n = n < size - offset ? n : (size_t)(size - offset);
	r = symfile_read(f, offset, into, n);
	return r < 0 ? r : r ? 0 : (int64_t)n; /* a file that shrank ends here */
}

int gosym_open(const struct symfile *f, struct gosym **ret)
{
	struct gopclntab_reader reader = { .read = read_symfile,
					   .ctx = (void *)f,
					   .size = symfile_size(f) };
	struct gosym *g = calloc(1, sizeof(*g));
	int r;

	if (!g)
		return -ENOMEM;
	g->file = f;
	r = gopclntab_open(&reader, &g->table);
	if (r) {
		free(g);
		return r < 0 ? r : r == GOPCLNTAB_MALFORMED ? SYMFILE_MALFORMED : SYMFILE_NONE;
	}
	*ret = g;
	return 0;
}

void gosym_free(struct gosym *g)
{
	if (!g)
		return;
	gopclntab_free(g->table);
	free(g);
}

/* Replaces type arguments by `[...]`, from the first bracket to the last, as Go's
 * runtime.funcNameForPrint does. The linkers of Go 1.18 and 1.19 have already done so. In older
 * versions brackets belong to arrays. */
static void set_name(const struct gosym *g, struct names *n, struct names_call *c, const char *name)
{
	const char *open = strchr(name, '['), *close = strrchr(name, ']');
	char shown[NAMES_TEXT + 8];
	int len;

	c->system_name = names_keep(n, name, strlen(name));
	c->name = c->system_name;
	if (!open || !close || close < open || gopclntab_format(g->table) < GOPCLNTAB_1_20)
		return;
	len = snprintf(shown, sizeof(shown), "%.*s[...]%s", (int)(open - name), name, close + 1);
	if (len > 0 && strcmp(shown, name) != 0)
		c->name = names_keep(n, shown, strlen(shown));
}

static int find(struct gosym *g, uint64_t address, struct gopclntab_func *ret)
{
	uint32_t index;
	int r = gopclntab_find(g->table, address, &index);

	if (r == 0)
		r = gopclntab_func(g->table, index, ret);
	return r <= 0 ? r : SYMFILE_NONE;
}

int gosym_lookup(struct gosym *g, uint64_t address, struct names *ret)
{
	struct gopclntab_call calls[NAMES_MAX];
	char text[SYMFILE_NAME];
	struct gopclntab_func f;
	int count, r;

	names_reset(ret);
	r = find(g, address, &f);
	if (r)
		return r;
	if (!f.pcfile || !f.pcln)
		return SYMFILE_NONE;
	count = gopclntab_calls(g->table, &f, address, calls, NAMES_MAX);
	if (count < 0)
		return count;
	for (int i = 0; i < count; i++) {
		struct names_call *c = &ret->calls[ret->count];

		*c = (struct names_call){ .line = calls[i].line,
					  .start_line = calls[i].start_line };
		r = gopclntab_name(g->table, calls[i].name, text, sizeof(text));
		if (r < 0)
			return r;
		if (r)
			continue; /* without a name the call is of no use */
		set_name(g, ret, c, text);
		r = gopclntab_file(g->table, &f, calls[i].file, text, sizeof(text));
		if (r < 0)
			return r;
		if (r == 0)
			c->source = names_keep(ret, text, strlen(text));
		ret->count++;
	}
	if (ret->count == 1 && !ret->calls[0].line && !ret->calls[0].source.len)
		ret->count = 0; /* in Go 1.2 to 1.4, C functions have empty tables */
	return ret->count ? 0 : SYMFILE_NONE;
}

int gosym_lookup_name(struct gosym *g, uint64_t address, struct names *ret)
{
	char text[SYMFILE_NAME];
	struct gopclntab_func f;
	int r;

	names_reset(ret);
	r = find(g, address, &f);
	if (r == 0)
		r = gopclntab_name(g->table, f.name, text, sizeof(text));
	if (r)
		return r < 0 ? r : SYMFILE_NONE;
	ret->calls[0] = (struct names_call){ 0 };
	set_name(g, ret, &ret->calls[0], text);
	ret->count = 1;
	return 0;
}

size_t gosym_bytes(const struct gosym *g)
{
	return sizeof(*g) + gopclntab_bytes(g->table);
}
