/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libiberty's callback interfaces print in pieces and cannot be told to stop, so the callback
 * leaves by longjmp once it has seen far more than is kept. The C++ one holds no heap memory while
 * it prints. The Rust one may, for a punycode identifier, so that leaving it can leak some bytes:
 * after MAX_RUST_LEFT such names Rust's are shown as they are.
 */
#include <libiberty/demangle.h>
#include <setjmp.h>
#include <string.h>
#include "tools/prof-symd/demangle.h"

#define PRINT_LIMIT (64u << 10) /* bytes printed by libiberty for one name */
#define MAX_RUST_LEFT 256u

struct printer {
	char *out;
	size_t cap, len, seen;
	jmp_buf leave;
};

static void print_piece(const char *piece, size_t n, void *ctx)
{
	struct printer *p = ctx;
	size_t room = p->cap - 1 - p->len;

	if (n == 0)
		return; /* with piece NULL, sometimes */
	memcpy(p->out + p->len, piece, n < room ? n : room);
	p->len += n < room ? n : room;
	p->seen += n;
	if (p->seen > PRINT_LIMIT)
		longjmp(p->leave, 1);
}

/* Where to cut at or before n, so that no UTF-8 sequence is broken. */
static size_t cut_at(const char *s, size_t n)
{
	size_t cut = n;

	while (cut > 0 && n - cut < 4 && ((unsigned char)s[cut - 1] & 0xc0) == 0x80)
		cut--;
	if (cut > 0 && (unsigned char)s[cut - 1] >= 0xc0) {
		unsigned char lead = (unsigned char)s[cut - 1];
		size_t want = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;

		return n - cut + 1 >= want ? n : cut - 1;
	}
	return n;
}

static bool is_cxx(const char *name)
{
	return name[0] == '_' && name[1] == 'Z';
}

static bool is_rust_v0(const char *name)
{
	return name[0] == '_' && name[1] == 'R';
}

size_t demangle(const char *name, char *out, size_t cap)
{
	static unsigned rust_left;
	struct printer p = { .out = out, .cap = cap };
	struct printer *volatile printer = &p;
	const char *version;
	size_t len;

	if ((is_cxx(name) || is_rust_v0(name)) && strnlen(name, DEMANGLE_MAX + 1) <= DEMANGLE_MAX) {
		const int options = DMGL_PARAMS | DMGL_ANSI;
		volatile bool rust = false;
		volatile int done = 0;

		if (setjmp(p.leave) == 0) {
			if (rust_left < MAX_RUST_LEFT) {
				rust = true;
				done = rust_demangle_callback(name, options, print_piece, &p);
			}
			if (!done && is_cxx(name)) {
				rust = false;
				printer->len = printer->seen = 0;
				done = cplus_demangle_v3_callback(name, options, print_piece, &p);
			}
		} else {
			rust_left += rust;
			done = 1;
		}
		if (done && printer->len > 0) {
			len = printer->seen > printer->len ? cut_at(out, printer->len)
							   : printer->len;
			out[len] = '\0';
			return len;
		}
	}
	version = strchr(name, '@');
	len = version && version != name ? (size_t)(version - name) : strlen(name);
	if (len > cap - 1)
		len = cut_at(name, cap - 1);
	memcpy(out, name, len);
	out[len] = '\0';
	return len;
}
