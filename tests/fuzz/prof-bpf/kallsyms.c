/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Input: the kernel's names. It begins with a byte of flags and the size of the pieces, followed by
 * these parts, each but the last ended by SEPARATOR:
 * - /proc/modules
 * - /proc/kallsyms
 * - what side-band records add
 * - the records of the BPF iterator, for text without addresses
 *
 * If the flags say so, everything is read again after the modules have changed.
 *
 * A found name does not exceed the maximum length, and is also found at its start address.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <bpf/libbpf.h>
#include "tests/fuzz/must.h"
#include "tools/prof-bpf/kernel/kallsyms.h"
#include "tools/prof-bpf/kernel/sideband.h"

#define SEPARATOR 0xff
#define NAME_BYTES 1023
#define FAR_FD 1000000 /* a descriptor number that is not open, nor is any above */

enum part { MODULES, TEXT, EVENTS, RECORDS, PARTS };
enum flags { NO_ITERATOR = 2, AGAIN = 4 };

static struct {
	struct span part[PARTS];
	size_t at[PARTS], piece;
	unsigned open;
} input;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* --- files --- */

static int open_part(enum part p)
{
	input.open++;
	input.at[p] = 0;
	return FAR_FD + (int)p;
}

int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
	return open_part(strcmp(path, "modules") == 0 ? MODULES : TEXT);
}

int __wrap_close(int fd);
int __wrap_close(int fd)
{
	must(fd >= FAR_FD && input.open--);
	return 0;
}

static ssize_t give(struct span from, size_t at, void *to, size_t n)
{
	if (at >= from.len)
		return 0;
	n = n < from.len - at ? n : from.len - at;
	memcpy(to, from.data + at, n);
	return (ssize_t)n;
}

ssize_t __wrap_read(int fd, void *to, size_t n);
ssize_t __wrap_read(int fd, void *to, size_t n)
{
	const int p = fd - FAR_FD;
	const ssize_t got = give(input.part[p], input.at[p], to, n < input.piece ? n : input.piece);

	input.at[p] += (size_t)got;
	return got;
}

ssize_t __wrap___read_chk(int fd, void *to, size_t n, size_t size);
ssize_t __wrap___read_chk(int fd, void *to, size_t n, size_t size)
{
	must(n <= size);
	return __wrap_read(fd, to, n);
}

ssize_t __wrap_pread(int fd, void *to, size_t n, off_t at);
ssize_t __wrap_pread(int fd, void *to, size_t n, off_t at)
{
	return give(input.part[fd - FAR_FD], (size_t)at, to, n);
}

ssize_t __wrap___pread_chk(int fd, void *to, size_t n, off_t at, size_t size);
ssize_t __wrap___pread_chk(int fd, void *to, size_t n, off_t at, size_t size)
{
	must(n <= size);
	return __wrap_pread(fd, to, n, at);
}

off_t __wrap_lseek(int fd, off_t at, int whence);
off_t __wrap_lseek(int fd, off_t at, int whence)
{
	input.at[fd - FAR_FD] = (size_t)at;
	return at;
}

int __wrap_fcntl(int fd, int command, ...);
int __wrap_fcntl(int fd, int command, ...)
{
	input.open++;
	return fd;
}

FILE *__wrap_fdopen(int fd, const char *mode);
FILE *__wrap_fdopen(int fd, const char *mode)
{
	const struct span s = input.part[fd - FAR_FD];
	FILE *f = s.len ? fmemopen((void *)(uintptr_t)s.data, s.len, mode) : NULL;

	input.open -= f != NULL;
	return f;
}

/* --- the BPF iterator --- */

int __wrap_bpf_object__open_skeleton(struct bpf_object_skeleton *s,
				     const struct bpf_object_open_opts *o);
int __wrap_bpf_object__open_skeleton(struct bpf_object_skeleton *s,
				     const struct bpf_object_open_opts *o)
{
	return 0;
}

int __wrap_bpf_object__load_skeleton(struct bpf_object_skeleton *s);
int __wrap_bpf_object__load_skeleton(struct bpf_object_skeleton *s)
{
	return 0;
}

void __wrap_bpf_object__destroy_skeleton(struct bpf_object_skeleton *s);
void __wrap_bpf_object__destroy_skeleton(struct bpf_object_skeleton *s)
{
	if (s) {
		free(s->maps);
		free(s->progs);
	}
	free(s);
}

struct bpf_link *__wrap_bpf_program__attach_iter(const struct bpf_program *p,
						 const struct bpf_iter_attach_opts *o);
struct bpf_link *__wrap_bpf_program__attach_iter(const struct bpf_program *p,
						 const struct bpf_iter_attach_opts *o)
{
	return (struct bpf_link *)&input;
}

int __wrap_bpf_link__destroy(struct bpf_link *l);
int __wrap_bpf_link__destroy(struct bpf_link *l)
{
	return 0;
}

int __wrap_bpf_link__fd(const struct bpf_link *l);
int __wrap_bpf_link__fd(const struct bpf_link *l)
{
	return 0;
}

int __wrap_bpf_iter_create(int link);
int __wrap_bpf_iter_create(int link)
{
	return open_part(RECORDS);
}

libbpf_print_fn_t __wrap_libbpf_set_print(libbpf_print_fn_t f);
libbpf_print_fn_t __wrap_libbpf_set_print(libbpf_print_fn_t f)
{
	return NULL;
}

/* --- lookups --- */

static void look_up(struct kallsyms *k, uint64_t address)
{
	struct str name, module, again, its;
	uint64_t start, same;

	if (!kallsyms_lookup(k, address, &name, &module, &start))
		return;
	must((start <= address || start - address < 64) && name.len && name.len <= NAME_BYTES);
	for (uint32_t i = 0; i < name.len + module.len; i++)
		must(i < name.len ? name.data[i] || 1 : module.data[i - name.len] || 1);
	const uint32_t len = name.len;

	must(kallsyms_lookup(k, start, &again, &its, &same) && same <= start);
	/* Names of BPF programs come first. */
	if (!str_eq(its, STR_LIT("bpf")))
		must(same == start && again.len == len);
}

/* Looks up the addresses in the text, and some near them. */
static void look_up_all(struct kallsyms *k, struct span text)
{
	uint64_t address = 0;
	unsigned digits = 0, n = 0;

	for (size_t i = 0; i < text.len && n < 32; i++) {
		const char c = (char)text.data[i];
		const bool digit = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');

		if (digit && digits < 16) {
			address = address << 4 | (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
			digits++;
			continue;
		}
		if (digits > 1) {
			look_up(k, address);
			look_up(k, address + 5);
			look_up(k, address - 1);
			n++;
		}
		address = digits = 0;
	}
}

static void add_events(struct kallsyms *k, struct span s)
{
	struct {
		uint16_t address, length;
		uint8_t flags, name;
	} e;

	while (span_read(&s, &e, sizeof(e))) {
		struct span name = { 0 };

		(void)span_take(&s, e.name % 32 < s.len ? e.name % 32 : s.len, &name);
		const struct sideband_event event = { .type = SIDEBAND_KSYMBOL,
						      .unregister = e.flags & 1,
						      .addr = e.address,
						      .length = e.length,
						      .name = { .data = (const char *)name.data,
								.len = (uint32_t)name.len } };

		kallsyms_event(k, &event);
		look_up(k, e.address);
		look_up(k, (uint64_t)e.address + e.length);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct kallsyms_config c = { .path = "kallsyms",
					   .modules = "modules",
					   .no_iterator = size && data[0] & NO_ITERATOR };
	struct span rest = { .data = data + 2, .len = size - 2 };
	struct kallsyms_figures figures;
	struct kallsyms *k;

	if (size < 2)
		return 0;
	input.open = 0;
	input.piece = data[1] ? data[1] * 16u : SIZE_MAX;
	for (int i = 0; i < PARTS; i++) {
		const uint8_t *end = rest.len && i != RECORDS
					     ? memchr(rest.data, SEPARATOR, rest.len)
					     : NULL;
		const size_t n = end ? (size_t)(end - rest.data) : rest.len;

		(void)span_take(&rest, n, &input.part[i]);
		(void)span_take(&rest, end ? 1 : 0, &(struct span){ 0 });
	}
	if (kallsyms_new(&c, &k) == 0) {
		look_up_all(k, input.part[TEXT]);
		add_events(k, input.part[EVENTS]);
		(void)kallsyms_tick(k, 1);
		if (data[0] & AGAIN) {
			/* The modules change: their old text replaces /proc/kallsyms. */
			input.part[TEXT] = input.part[MODULES];
			input.part[MODULES].len /= 2;
			(void)kallsyms_tick(k, 3 * KALLSYMS_CHECK_NS);
			look_up_all(k, input.part[TEXT]);
		}
		kallsyms_figures(k, &figures);
		must(figures.symbols + figures.dynamic <= size);
		kallsyms_free(k);
	}
	must(input.open == 0);
	return 0;
}
