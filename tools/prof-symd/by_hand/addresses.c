/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-symd/by_hand/addresses.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include "common/base/command/log.h"
#include "common/names/program/finder.h"

bool addresses_parse(const char *s, uint64_t *ret)
{
	unsigned long long value;
	char *end;

	if (s[0] == '0' && (s[1] == 'x' || s[1] == 'X'))
		s += 2;
	if (!isxdigit((unsigned char)s[0]))
		return false;
	errno = 0;
	value = strtoull(s, &end, 16);
	if (errno || *end)
		return false;
	*ret = value;
	return true;
}

static int print_call(const struct addresses *a, const struct names_call *c, struct buf *into)
{
	struct str source = c->source;
	int r;

	if (a->basenames)
		for (uint32_t i = source.len; i > 0; i--)
			if (source.data[i - 1] == '/') {
				source = (struct str){ .data = source.data + i,
						       .len = source.len - i };
				break;
			}
	r = c->name.len ? log_escape(into, c->name, NAMES_TEXT) : buf_append_str(into, "??");
	if (r == 0)
		r = buf_append_str(into, " at ");
	if (r == 0)
		r = source.len ? log_escape(into, source, NAMES_TEXT) : buf_append_str(into, "??");
	if (r == 0)
		r = c->line || !source.len ? buf_printf(into, ":%" PRIu64 "\n", c->line)
					   : buf_append_str(into, ":?\n");
	return r;
}

int addresses_print(struct addresses *a, struct program *p, const char *path, uint64_t address,
		    struct buf *into)
{
	int r = program_lookup(p, address, &a->names), status = 0;

	while (r == VERDICT_AGAIN) {
		finder_complete(p, path);
		r = program_lookup(p, address, &a->names);
	}
	if (r < 0)
		return r;
	if (a->show_address)
		status = buf_printf(into, "0x%016" PRIx64 ": ", address);
	if (status == 0 && r != 0)
		return buf_append_str(into, "?? ??:0\n");
	for (unsigned i = 0; status == 0 && i < a->names.count; i++) {
		if (i > 0)
			status = buf_append_str(into, " (inlined by) ");
		if (status == 0)
			status = print_call(a, &a->names.calls[i], into);
	}
	return status;
}
