/* SPDX-License-Identifier: Apache-2.0 */
/* Reads kallsyms and keeps them up to date. The table is in ksymbols.c. */
#include "tools/prof-bpf/kernel/kallsyms.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "bpf/ksyms.h"
#include "common/base/bytes/hash.h"
#include "common/base/text/hex.h"
#include "ksyms.skel.h"
#include "tools/prof-bpf/kernel/ksymbols.h"
#include "tools/prof-bpf/kernel/sideband.h"

#define LOOKED_AT (64 << 10) /* bytes that are searched for an address other than zero */
/* Bytes read at once; small in a fuzz target, so that it reaches the boundaries. */
#ifndef KALLSYMS_CHUNK
#define KALLSYMS_CHUNK (256u << 10)
#endif

struct kallsyms {
	struct ksymbols table;
	uint64_t checked_ns, check_ns, modules_hash;
	bool stale; /* the last reading failed */
	uint64_t failures;
	bool by_iterator;
	uint64_t reads;
	int file, modules;	    /* -1: not open */
	struct ksyms_bpf *iterator; /* NULL: not needed, or not available */
	struct bpf_link *link;
};

/* --- /proc/kallsyms --- */

/* Takes a line: "ffffffff81000000 T _text" or "… t name\t[module]". */
static int take_line(struct ksymbols *t, const char *line, size_t len)
{
	uint64_t address = 0;
	size_t i = 0;

	for (; i < len && i < 16; i++) {
		const int digit = hex_lower(line[i]);

		if (digit < 0)
			break;
		address = address << 4 | (uint64_t)digit;
	}
	if (!i || len < i + 4 || line[i] != ' ' || line[i + 2] != ' ')
		return 0;
	char type = line[i + 1];
	struct str name = { .data = line + i + 3, .len = (uint32_t)(len - i - 3) }, module = { 0 };
	const char *tab = memchr(name.data, '\t', name.len);
	if (tab) {
		size_t left = (size_t)(line + len - tab);

		name.len = (uint32_t)(tab - name.data);
		if (left > 3 && tab[1] == '[' && tab[left - 1] == ']')
			module = (struct str){ .data = tab + 2, .len = (uint32_t)left - 3 };
	}
	return ksymbols_add(t, address, type, name, module);
}

static int read_file(int fd, struct ksymbols *t)
{
	char *chunk = malloc(KALLSYMS_CHUNK);
	size_t have = 0;
	int r = 0;

	if (!chunk)
		return -ENOMEM;
	if (lseek(fd, 0, SEEK_SET) < 0)
		r = -errno;
	while (!r) {
		ssize_t n = read(fd, chunk + have, KALLSYMS_CHUNK - have);

		if (n <= 0) {
			r = n < 0 ? -errno : 0;
			break;
		}
		have += (size_t)n;
		size_t at = 0;
		while (!r) {
			const char *nl = memchr(chunk + at, '\n', have - at);

			if (!nl)
				break;
			r = take_line(t, chunk + at, (size_t)(nl - (chunk + at)));
			at = (size_t)(nl + 1 - chunk);
		}
		memmove(chunk, chunk + at, have - at);
		have -= at;
		if (have == KALLSYMS_CHUNK)
			have = 0;
		/* Without the right to see addresses all are zero: stop here. */
		if (!t->any && at > 4096)
			break;
	}
	free(chunk);
	return r;
}

/* --- the iterator --- */

/* Takes whole records from the front of data. Returns how many bytes they have, or -errno. */
static ssize_t take_records(struct ksymbols *t, const char *data, size_t len)
{
	size_t at = 0;

	while (len - at >= sizeof(struct ksym_record)) {
		struct ksym_record k;

		memcpy(&k, data + at, sizeof(k));
		if (k.name >= KSYM_NAME_MAX || k.module >= KSYM_MODULE_MAX)
			return -EBADMSG;
		if (len - at - sizeof(k) < (size_t)k.name + k.module)
			break;
		const char *text = data + at + sizeof(k);
		int r = ksymbols_add(t, k.address, (char)k.type,
				     (struct str){ .data = text, .len = k.name },
				     (struct str){ .data = text + k.name, .len = k.module });
		if (r)
			return r;
		at += sizeof(k) + k.name + k.module;
	}
	return (ssize_t)at;
}

static int read_iterator_fd(int fd, struct ksymbols *t)
{
	char *chunk = malloc(KALLSYMS_CHUNK);
	size_t have = 0;
	int r = chunk ? 0 : -ENOMEM;

	while (!r) {
		ssize_t n = read(fd, chunk + have, KALLSYMS_CHUNK - have);

		if (n < 0 && errno == EAGAIN)
			continue;
		if (n <= 0) {
			r = n < 0 ? -errno : 0;
			break;
		}
		have += (size_t)n;
		ssize_t took = take_records(t, chunk, have);
		if (took < 0) {
			r = (int)took;
			break;
		}
		have -= (size_t)took;
		memmove(chunk, chunk + took, have);
	}
	free(chunk);
	return r;
}

static int quiet(enum libbpf_print_level level, const char *format, va_list args)
{
	return 0;
}

/* Whether the file shows addresses, and not only zeros. It begins with per-cpu symbols, whose
 * offsets begin at zero. */
static bool shows_addresses(int fd)
{
	char *chunk = malloc(KALLSYMS_CHUNK);
	bool shown = false, in_address = true;
	off_t at = 0;
	ssize_t n;

	while (chunk && !shown && at < LOOKED_AT) {
		n = pread(fd, chunk, KALLSYMS_CHUNK, at);
		if (n <= 0)
			break;
		for (ssize_t i = 0; i < n && !shown; i++) {
			if (chunk[i] == '\n' || chunk[i] == ' ')
				in_address = chunk[i] == '\n';
			else
				shown = in_address && chunk[i] != '0';
		}
		at += n;
	}
	free(chunk);
	return shown;
}

/* Loads the iterator over the kernel's symbols, if the kernel has it and allows it. */
static void open_iterator(struct kallsyms *k)
{
	libbpf_print_fn_t print = libbpf_set_print(quiet);

	k->iterator = ksyms_bpf__open_and_load();
	if (k->iterator)
		k->link = bpf_program__attach_iter(k->iterator->progs.on_symbol, NULL);
	libbpf_set_print(print);
}

static int read_iterator(struct kallsyms *k, struct ksymbols *t)
{
	if (!k->link)
		return -EOPNOTSUPP;
	int fd = bpf_iter_create(bpf_link__fd(k->link));
	if (fd < 0)
		return fd;
	int r = read_iterator_fd(fd, t);
	close(fd);
	return r;
}

/* --- the whole --- */

/* Returns a hash of names and addresses in /proc/modules, without its use counts, which change all
 * the time. 0: no modules. */
static uint64_t modules_hash(int fd)
{
	const int copy = fd < 0 || lseek(fd, 0, SEEK_SET) < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 3);
	FILE *f = copy < 0 ? NULL : fdopen(copy, "r");
	char line[512], name[64], address[32];
	uint64_t hash = 0;

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%63s %*s %*s %*s %*s %31s", name, address) != 2)
			continue;
		if (!hash)
			hash = HASH_START;
		hash = hash_bytes(hash, name, strlen(name));
		hash = hash_bytes(hash, address, strlen(address));
	}
	if (f)
		fclose(f);
	else if (copy >= 0)
		close(copy);
	return hash;
}

static int read_all(struct kallsyms *k)
{
	struct ksymbols t = { 0 };
	bool by_iterator = false;
	int r = k->file < 0 ? 0 : read_file(k->file, &t);

	if (!r && !t.any) {
		/* If the kernel is too old for the iterator or refuses it, there are no names. */
		int i = read_iterator(k, &t);

		by_iterator = t.any;
		if (i == -ENOMEM)
			r = i;
	}
	if (!r)
		r = ksymbols_finish(&t);
	if (r) {
		ksymbols_done(&t);
		return r;
	}
	/* Keep the lengths that side-band records reported. */
	ksymbols_keep_lengths(&t, &k->table);
	ksymbols_done(&k->table);
	k->table = t;
	k->by_iterator = by_iterator;
	k->reads++;
	return 0;
}

int kallsyms_open(const struct kallsyms_config *c, struct kallsyms **ret)
{
	struct kallsyms *k = calloc(1, sizeof(*k));
	int r = 0;

	if (!k)
		return -ENOMEM;
	k->file = k->modules = -1;
	k->stale = true; /* until it is read */
	if (!c->only_iterator) {
		k->file = open(c->path ? c->path : "/proc/kallsyms", O_RDONLY | O_CLOEXEC);
		r = k->file < 0 ? -errno : 0;
	}
	if (r) {
		kallsyms_free(k);
		return r;
	}
	k->modules = open(c->modules ? c->modules : "/proc/modules", O_RDONLY | O_CLOEXEC);
	if (!c->no_iterator && (k->file < 0 || !shows_addresses(k->file)))
		open_iterator(k);
	*ret = k;
	return 0;
}

int kallsyms_read(struct kallsyms *k)
{
	const uint64_t hash = modules_hash(k->modules);
	const int r = read_all(k);

	malloc_trim(0); /* gives back what the growing table left behind */
	k->stale = r != 0;
	k->failures += k->stale;
	/* Wait longer: a reading that fails for lack of memory may cost more each time. */
	k->check_ns = !r ? KALLSYMS_CHECK_NS : k->check_ns ? k->check_ns * 2 : KALLSYMS_CHECK_NS;
	if (k->check_ns > KALLSYMS_LONGEST_NS)
		k->check_ns = KALLSYMS_LONGEST_NS;
	if (!r)
		k->modules_hash = hash;
	return r;
}

int kallsyms_new(const struct kallsyms_config *c, struct kallsyms **ret)
{
	struct kallsyms *k = NULL;
	int r = kallsyms_open(c, &k);

	if (!r)
		r = kallsyms_read(k);
	if (r) {
		kallsyms_free(k);
		return r;
	}
	*ret = k;
	return 0;
}

void kallsyms_free(struct kallsyms *k)
{
	if (!k)
		return;
	ksymbols_done(&k->table);
	bpf_link__destroy(k->link);
	ksyms_bpf__destroy(k->iterator);
	if (k->file >= 0)
		close(k->file);
	if (k->modules >= 0)
		close(k->modules);
	free(k);
}

bool kallsyms_available(const struct kallsyms *k)
{
	return k->table.any;
}

bool kallsyms_lookup(struct kallsyms *k, uint64_t addr, struct str *ret_name,
		     struct str *ret_module, uint64_t *ret_start)
{
	return ksymbols_find(&k->table, addr, ret_name, ret_module, ret_start);
}

void kallsyms_event(struct kallsyms *k, const struct sideband_event *e)
{
	if (e->type != SIDEBAND_KSYMBOL)
		return;
	if (e->unregister)
		ksymbols_remove_bpf(&k->table, e->addr);
	else
		(void)ksymbols_add_bpf(&k->table, e->addr, e->length, e->name);
}

int kallsyms_tick(struct kallsyms *k, uint64_t now_ns)
{
	/* After a failed reading, the wait for the next one begins with the first tick. */
	if (k->stale && !k->checked_ns)
		k->checked_ns = now_ns;
	if (now_ns < k->checked_ns + k->check_ns)
		return 0;
	k->checked_ns = now_ns;
	return k->stale || modules_hash(k->modules) != k->modules_hash ? kallsyms_read(k) : 0;
}

void kallsyms_figures(const struct kallsyms *k, struct kallsyms_figures *ret)
{
	const struct ksymbols *t = &k->table;

	*ret = (struct kallsyms_figures){
		.symbols = t->len,
		.dynamic = t->dynamic_len,
		.by_iterator = k->by_iterator,
		.reads = k->reads,
		.failures = k->failures,
		.bytes = ksymbols_bytes(t),
	};
}
