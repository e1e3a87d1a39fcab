/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How libiberty's output is bounded:
 *
 *  - C++ and Rust have a callback interface, which prints in pieces and cannot be told to stop. So
 *    the callback leaves by longjmp once it has seen far more than is kept. For C++ this leaks
 *    nothing. For a Rust name with a punycode identifier it may leak some bytes. So after
 *    MAX_RUST_LEFT such names, Rust's names are no longer demangled.
 *  - D has no such interface. libiberty builds D's names in heap memory through its xmalloc, which
 *    ends the process if malloc fails. So we replace xmalloc and its like: ours count, and leave by
 *    longjmp if a name takes too much. This leaks what was allocated until then. So after
 *    MAX_D_LEFT such names, D's names are no longer demangled.
 */
#include "common/names/demangle.h"

#include <libiberty/demangle.h>
#include <libiberty/libiberty.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PRINT_LIMIT (64u << 10) /* bytes printed by libiberty for one name */
#define MAX_RUST_LEFT 256u
#define MAX_D_LEFT 32u
#define D_BYTES (64u << 10) /* that one name of D may allocate */
#define D_ALLOCATIONS 4096u

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
		return; /* piece may be NULL if the length is 0 */
	memcpy(p->out + p->len, piece, n < room ? n : room);
	p->len += n < room ? n : room;
	p->seen += n;
	if (p->seen > PRINT_LIMIT)
		longjmp(p->leave, 1);
}

/* The last position at or before n that does not split a UTF-8 sequence. */
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

/* --- D --- */

static struct {
	size_t bytes, allocations; /* allowance left for the current name */
	jmp_buf leave;
} d;

static void *count_d(void *from, size_t n)
{
	if (n > d.bytes || d.allocations == 0)
		longjmp(d.leave, 1);
	d.bytes -= n;
	d.allocations--;
	from = realloc(from, n ? n : 1);
	if (!from)
		longjmp(d.leave, 1);
	return from;
}

void *xmalloc(size_t n)
{
	return count_d(NULL, n);
}

void *xcalloc(size_t n, size_t size)
{
	size_t bytes;
	void *p;

	if (__builtin_mul_overflow(n, size, &bytes))
		bytes = SIZE_MAX;
	p = count_d(NULL, bytes);
	memset(p, 0, bytes);
	return p;
}

void *xrealloc(void *from, size_t n)
{
	return count_d(from, n);
}

/* Whether this is a name of D: `_Dmain`, or `_D` and the length of the first part. */
static bool is_d(const char *name)
{
	return name[0] == '_' && name[1] == 'D' &&
	       ((name[2] >= '1' && name[2] <= '9') || strncmp(name + 2, "main", 4) == 0);
}

/* Demangles a name of D. A suffix that a compiler added after a dot is not part of the name. */
static bool demangle_d(const char *name, char *out, size_t cap, size_t *ret)
{
	static unsigned left;
	char plain[DEMANGLE_MAX + 1];
	const size_t n = strcspn(name, ".");
	char *volatile shown = NULL;
	int len;

	if (left >= MAX_D_LEFT || n > DEMANGLE_MAX)
		return false;
	memcpy(plain, name, n);
	plain[n] = '\0';
	d.bytes = D_BYTES;
	d.allocations = D_ALLOCATIONS;
	if (setjmp(d.leave) == 0)
		shown = dlang_demangle(plain, DMGL_PARAMS);
	else
		left++;
	if (!shown)
		return false;
	len = name[n] ? snprintf(out, cap, "%s [clone %s]", shown, name + n)
		      : snprintf(out, cap, "%s", shown);
	free(shown);
	if (len <= 0)
		return false;
	*ret = (size_t)len < cap ? (size_t)len : cut_at(out, cap - 1);
	out[*ret] = '\0';
	return true;
}

static bool is_cxx(const char *name)
{
	return name[0] == '_' && name[1] == 'Z';
}

static bool is_rust_v0(const char *name)
{
	return name[0] == '_' && name[1] == 'R';
}

/* Returns the length of a symbol version at the end of a name: `@@GLIBC_2.14`. An @ may also be
 * part of the name: Crystal uses it for types and places. */
static size_t version_length(const char *name)
{
	static const char word[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_$.";
	const size_t n = strspn(name, word);
	const char *version = name + n;

	if (!n || *version != '@')
		return 0;
	version += version[1] == '@' ? 2 : 1;
	return *version && version[strspn(version, word)] == '\0' ? strlen(name + n) : 0;
}

size_t demangle(const char *name, char *out, size_t cap)
{
	static unsigned rust_left;
	struct printer p = { .out = out, .cap = cap };
	struct printer *volatile printer = &p;
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
	if (is_d(name) && demangle_d(name, out, cap, &len))
		return len;
	len = strlen(name) - version_length(name);
	if (len > cap - 1)
		len = cut_at(name, cap - 1);
	memcpy(out, name, len);
	out[len] = '\0';
	return len;
}
