// SPDX-License-Identifier: Apache-2.0
/*
 * The table of kernel symbols. While it is read, it takes 12 bytes per symbol, sorted by distance
 * from the lowest text address, and one pool of names. Then zlib packs it, PACK_SYMBOLS at a time,
 * to a fifth: a name is needed only once per epoch.
 *
 * A second, small table holds what BPF puts into the kernel; side-band records change it. If an
 * address has several names, the plainest is kept.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "bpf/ksyms.h"
#include "ksyms.skel.h"
#include "tools/prof-bpf/kernel/kallsyms.h"
#include "tools/prof-bpf/kernel/sideband.h"

#define LOOKED_AT (64 << 10) /* bytes searched for an address other than zero */
/* Bytes read at once, and initial sizes; a fuzz target has small ones, so that it reaches the
 * ends. */
#ifndef KALLSYMS_CHUNK
#define KALLSYMS_CHUNK (256u << 10)
#define FIRST_SYMBOLS (96u << 10)
#define FIRST_POOL (2u << 20)
#endif
#define NAME_MAX_BYTES 1023u
#define MODULES_MAX 4096u
#define DYNAMIC_MAX 65536u
#define REACH (2u << 20) /* no function is larger: an address further on is in a gap */

struct symbol {
	uint32_t offset; /* from base */
	uint32_t name;	 /* in the pool: a length of two bytes, then the name */
	uint16_t module; /* 0: the kernel proper */
	uint8_t rank;	 /* the lower, the plainer the name */
	uint8_t zero;
};

#define PACK_SYMBOLS 256u

#define PACK_EACH 8u

/* Some symbols, packed: the distance of each from the previous one (4 bytes), then modules and
 * lengths of names (2 bytes each), then the names. */
struct pack {
	uint32_t offset; /* of the first, as in struct symbol */
	uint32_t at;	 /* bytes in packed */
	uint32_t plain;	 /* bytes unpacked */
};

struct dynamic {
	uint64_t start, length; /* length 0: unknown */
	char *name;
};

/* The result of one reading. */
struct table {
	uint64_t base;
	struct symbol *at;
	size_t len, cap;
	char *pool;
	size_t pool_len, pool_cap;
	struct pack *packs; /* replaces the fields above when complete; the last one is empty */
	size_t pack_count;
	char *packed, *unpacked;      /* unpacked: room for the largest pack */
	size_t unpacked_bytes, shown; /* shown: the pack in it; SIZE_MAX: none yet */
	char **modules;
	unsigned module_count;
	struct dynamic *dynamic;
	size_t dynamic_len, dynamic_cap;
	bool any; /* some address is not zero */
};

struct kallsyms {
	struct table table;
	uint64_t checked_ns, check_ns, modules_hash;
	bool stale; /* the last reading failed */
	uint64_t failures;
	bool by_iterator;
	uint64_t reads;
	int file, modules;	    /* -1: not open */
	struct ksyms_bpf *iterator; /* NULL: not needed, or not available */
	struct bpf_link *link;
};

static void table_done(struct table *t)
{
	for (unsigned i = 0; i < t->module_count; i++)
		free(t->modules[i]);
	for (size_t i = 0; i < t->dynamic_len; i++)
		free(t->dynamic[i].name);
	free(t->modules);
	free(t->dynamic);
	free(t->at);
	free(t->pool);
	free(t->packs);
	free(t->packed);
	free(t->unpacked);
	*t = (struct table){ 0 };
}

/* --- symbols of BPF --- */

/* The index of the first with a start above addr. */
static size_t dynamic_search(const struct table *t, uint64_t addr)
{
	size_t lo = 0, hi = t->dynamic_len;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (t->dynamic[mid].start > addr)
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

static void dynamic_remove(struct table *t, uint64_t start)
{
	size_t i = dynamic_search(t, start);

	if (!i || t->dynamic[i - 1].start != start)
		return;
	free(t->dynamic[i - 1].name);
	memmove(&t->dynamic[i - 1], &t->dynamic[i], (t->dynamic_len - i) * sizeof(*t->dynamic));
	t->dynamic_len--;
}

static int dynamic_add(struct table *t, uint64_t start, uint64_t length, struct str name)
{
	/* It is stored as a string, and an empty name is none. */
	name.len = (uint32_t)strnlen(name.data, name.len);
	if (!start || !name.len || t->dynamic_len >= DYNAMIC_MAX)
		return 0;
	dynamic_remove(t, start);
	if (t->dynamic_len == t->dynamic_cap) {
		size_t cap = t->dynamic_cap ? t->dynamic_cap * 2 : 64;
		struct dynamic *p = reallocarray(t->dynamic, cap, sizeof(*p));

		if (!p)
			return -ENOMEM;
		t->dynamic = p;
		t->dynamic_cap = cap;
	}
	char *copy = strndup(name.data, name.len);
	if (!copy)
		return -ENOMEM;
	size_t i = dynamic_search(t, start);
	memmove(&t->dynamic[i + 1], &t->dynamic[i], (t->dynamic_len - i) * sizeof(*t->dynamic));
	t->dynamic[i] = (struct dynamic){ .start = start, .length = length, .name = copy };
	t->dynamic_len++;
	t->any = true;
	return 0;
}

/* --- filling the table --- */

static bool is_dynamic(struct str module)
{
	return str_eq(module, STR_LIT("bpf")) ||
	       (module.len > 9 && memcmp(module.data, "__builtin", 9) == 0);
}

/* The module's number; 0 for the kernel proper, and if there are too many. */
static int module_number(struct table *t, struct str module, uint16_t *ret)
{
	*ret = 0;
	if (!module.len)
		return 0;
	/* A module's symbols are adjacent, so search from the end. */
	for (unsigned i = t->module_count; i-- > 0;) {
		if (str_eq(str_from(t->modules[i]), module)) {
			*ret = (uint16_t)(i + 1);
			return 0;
		}
	}
	if (t->module_count >= MODULES_MAX)
		return 0;
	if (!(t->module_count & 63)) {
		char **p = reallocarray(t->modules, t->module_count + 64, sizeof(*p));

		if (!p)
			return -ENOMEM;
		t->modules = p;
	}
	t->modules[t->module_count] = strndup(module.data, module.len);
	if (!t->modules[t->module_count])
		return -ENOMEM;
	*ret = (uint16_t)++t->module_count;
	return 0;
}

static int pool_add(struct table *t, struct str name, uint32_t *ret)
{
	uint16_t len = (uint16_t)name.len;

	if (t->pool_cap - t->pool_len < sizeof(len) + len) {
		size_t cap = t->pool_cap ? t->pool_cap + t->pool_cap / 4 : FIRST_POOL;
		char *p = cap <= UINT32_MAX ? realloc(t->pool, cap) : NULL;

		if (!p)
			return -ENOMEM;
		t->pool = p;
		t->pool_cap = cap;
	}
	*ret = (uint32_t)t->pool_len;
	memcpy(t->pool + t->pool_len, &len, sizeof(len));
	memcpy(t->pool + t->pool_len + sizeof(len), name.data, len);
	t->pool_len += sizeof(len) + len;
	return 0;
}

static struct str pool_get(const struct table *t, uint32_t at)
{
	uint16_t len;

	memcpy(&len, t->pool + at, sizeof(len));
	return (struct str){ .data = t->pool + at + sizeof(len), .len = len };
}

/* Whether text ends at this symbol: addresses behind it belong to no function. */
static bool is_end(struct str name)
{
	return str_eq(name, STR_LIT("_etext")) || str_eq(name, STR_LIT("_einittext")) ||
	       str_eq(name, STR_LIT("__end_rodata"));
}

static uint8_t rank_of(char type, struct str name)
{
	uint8_t underscores = 0;

	while (underscores < name.len && underscores < 31 && name.data[underscores] == '_')
		underscores++;
	return (uint8_t)(underscores * 4 + (type == 'T' ? 0 : type == 't' ? 1 : 2));
}

static int table_add(struct table *t, uint64_t address, char type, struct str name,
		     struct str module)
{
	struct symbol s = { .rank = rank_of(type, name) };

	if (!address || !name.len || (type != 'T' && type != 't' && type != 'W' && type != 'w'))
		return 0;
	if (name.len > NAME_MAX_BYTES)
		name.len = NAME_MAX_BYTES;
	if (is_dynamic(module))
		return dynamic_add(t, address, 0, name);
	if (!t->any || !t->len)
		t->base = address;
	t->any = true;
	if (address < t->base) {
		/* The first symbol is not always the lowest: move the base, once or twice. */
		uint64_t by = t->base - address;

		for (size_t i = 0; i < t->len; i++) {
			if (t->at[i].offset > UINT32_MAX - by)
				return 0;
		}
		for (size_t i = 0; i < t->len; i++)
			t->at[i].offset += (uint32_t)by;
		t->base = address;
	}
	if (address - t->base > UINT32_MAX || t->len >= KALLSYMS_MAX)
		return 0;
	s.offset = (uint32_t)(address - t->base);
	if (t->len == t->cap) {
		size_t cap = t->cap ? t->cap + t->cap / 4 : FIRST_SYMBOLS;
		struct symbol *p = reallocarray(t->at, cap, sizeof(*p));

		if (!p)
			return -ENOMEM;
		t->at = p;
		t->cap = cap;
	}
	/* The file is sorted by address except for modules, so most duplicates are neighbours. */
	struct symbol *last = t->len ? &t->at[t->len - 1] : NULL;
	if (last && last->offset == s.offset && last->rank <= s.rank)
		return 0;
	int r = module_number(t, module, &s.module);
	if (!r)
		r = pool_add(t, is_end(name) ? (struct str){ .data = "", .len = 0 } : name,
			     &s.name);
	if (r)
		return r;
	if (last && last->offset == s.offset)
		*last = s;
	else
		t->at[t->len++] = s;
	return 0;
}

static int symbol_order(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;

	if (x->offset != y->offset)
		return x->offset < y->offset ? -1 : 1;
	return x->rank < y->rank ? -1 : x->rank > y->rank;
}

/* Lays out symbols [from, to) for packing, in `into` unless that is NULL. Returns the bytes. */
static uint32_t gather(const struct table *t, size_t from, size_t to, char *into)
{
	size_t count = to - from, at = count * PACK_EACH;

	for (size_t i = 0; i < count; i++) {
		const struct symbol *s = &t->at[from + i];
		struct str name = pool_get(t, s->name);
		uint32_t distance = i ? s->offset - s[-1].offset : 0;
		uint16_t len = (uint16_t)name.len;

		if (into) {
			memcpy(into + i * 4, &distance, 4);
			memcpy(into + count * 4 + i * 2, &s->module, 2);
			memcpy(into + count * 6 + i * 2, &len, 2);
			memcpy(into + at, name.data, len);
		}
		at += len;
	}
	return (uint32_t)at;
}

/* Packs the symbols, and frees what was read. */
static int table_pack(struct table *t)
{
	size_t count = (t->len + PACK_SYMBOLS - 1) / PACK_SYMBOLS, largest = 0;
	uLong bound = 0;
	uint32_t at = 0;

	t->shown = SIZE_MAX;
	t->packs = calloc(count + 1, sizeof(*t->packs));
	if (!t->packs)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		size_t from = i * PACK_SYMBOLS, to = from + PACK_SYMBOLS;

		t->packs[i].plain = gather(t, from, to < t->len ? to : t->len, NULL);
		t->packs[i].offset = t->at[from].offset;
		largest = t->packs[i].plain > largest ? t->packs[i].plain : largest;
		bound += compressBound(t->packs[i].plain);
	}
	if (bound > UINT32_MAX)
		return -ENOMEM;
	t->unpacked = malloc(largest + 1);
	t->packed = malloc(bound + 1);
	if (!t->unpacked || !t->packed)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		size_t from = i * PACK_SYMBOLS, to = from + PACK_SYMBOLS;
		uLongf n = bound - at;

		gather(t, from, to < t->len ? to : t->len, t->unpacked);
		if (compress2((Bytef *)t->packed + at, &n, (const Bytef *)t->unpacked,
			      t->packs[i].plain, Z_BEST_SPEED) != Z_OK)
			return -ENOMEM;
		t->packs[i].at = at;
		at += (uint32_t)n;
	}
	t->packs[count].at = at;
	t->pack_count = count;
	t->unpacked_bytes = largest;
	char *fit = realloc(t->packed, at + 1);
	if (fit)
		t->packed = fit;
	free(t->at);
	free(t->pool);
	t->at = NULL;
	t->pool = NULL;
	t->cap = t->pool_cap = 0;
	return 0;
}

static int table_finish(struct table *t)
{
	bool sorted = true;
	size_t to = 0;

	for (size_t i = 1; i < t->len && sorted; i++)
		sorted = t->at[i - 1].offset < t->at[i].offset;
	if (!sorted) {
		qsort(t->at, t->len, sizeof(*t->at), symbol_order);
		for (size_t i = 0; i < t->len; i++) {
			if (!to || t->at[to - 1].offset != t->at[i].offset)
				t->at[to++] = t->at[i];
		}
		t->len = to;
	}
	return t->len ? table_pack(t) : 0;
}

/* Unpacks the symbols around an offset. Returns their number, 0 without memory. */
static size_t table_unpack(struct table *t, uint32_t offset, uint32_t *ret_first)
{
	size_t lo = 0, hi = t->pack_count;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (t->packs[mid].offset > offset)
			hi = mid;
		else
			lo = mid + 1;
	}
	/* The base is the lowest symbol's address, so such a pack exists. */
	size_t i = lo - 1;
	uLongf n = t->packs[i].plain;
	if (i != t->shown) {
		t->shown = SIZE_MAX;
		if (uncompress((Bytef *)t->unpacked, &n, (const Bytef *)t->packed + t->packs[i].at,
			       t->packs[i + 1].at - t->packs[i].at) != Z_OK)
			return 0;
		t->shown = i;
	}
	*ret_first = t->packs[i].offset;
	return i + 1 < t->pack_count ? PACK_SYMBOLS : t->len - i * PACK_SYMBOLS;
}

/* --- /proc/kallsyms --- */

/* "ffffffff81000000 T _text" or "… t name\t[module]". */
static int take_line(struct table *t, const char *line, size_t len)
{
	uint64_t address = 0;
	size_t i = 0;

	for (; i < len && i < 16; i++) {
		char c = line[i];

		if (c >= '0' && c <= '9')
			address = address << 4 | (uint64_t)(c - '0');
		else if (c >= 'a' && c <= 'f')
			address = address << 4 | (uint64_t)(c - 'a' + 10);
		else
			break;
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
	return table_add(t, address, type, name, module);
}

static int read_file(int fd, struct table *t)
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

/* Takes whole records from the front of data. Returns their bytes, or -errno. */
static ssize_t take_records(struct table *t, const char *data, size_t len)
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
		int r = table_add(t, k.address, (char)k.type,
				  (struct str){ .data = text, .len = k.name },
				  (struct str){ .data = text + k.name, .len = k.module });
		if (r)
			return r;
		at += sizeof(k) + k.name + k.module;
	}
	return (ssize_t)at;
}

static int read_iterator_fd(int fd, struct table *t)
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

/* Whether the file shows us addresses, and not only zeros. It begins with per-cpu symbols, whose
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

static int read_iterator(struct kallsyms *k, struct table *t)
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

/* FNV-1a over names and addresses in /proc/modules, without its use counts, which change all the
 * time. 0: no modules. */
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
			hash = 0xcbf29ce484222325ull;
		for (const char *c = name; *c; c++)
			hash = (hash ^ (uint8_t)*c) * 0x100000001b3ull;
		for (const char *c = address; *c; c++)
			hash = (hash ^ (uint8_t)*c) * 0x100000001b3ull;
	}
	if (f)
		fclose(f);
	else if (copy >= 0)
		close(copy);
	return hash;
}

static int read_all(struct kallsyms *k)
{
	struct table t = { 0 };
	bool by_iterator = false;
	int r = k->file < 0 ? 0 : read_file(k->file, &t);

	if (!r && !t.any) {
		/* The kernel is too old for the iterator or refuses it: then there are no names. */
		int i = read_iterator(k, &t);

		by_iterator = t.any;
		if (i == -ENOMEM)
			r = i;
	}
	if (!r)
		r = table_finish(&t);
	if (r) {
		table_done(&t);
		return r;
	}
	/* Keep the lengths from side-band records. */
	for (size_t i = 0; i < t.dynamic_len; i++) {
		size_t old = dynamic_search(&k->table, t.dynamic[i].start);

		if (old && k->table.dynamic[old - 1].start == t.dynamic[i].start)
			t.dynamic[i].length = k->table.dynamic[old - 1].length;
	}
	table_done(&k->table);
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

	k->stale = r != 0;
	k->failures += k->stale;
	/* A reading that fails for lack of memory may cost more each time. */
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
	table_done(&k->table);
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
	struct table *t = &k->table;
	size_t i = dynamic_search(t, addr);

	if (i) {
		const struct dynamic *d = &t->dynamic[i - 1];

		/* If the length is unknown, up to a page, which is more than most have. */
		if (d->length ? addr - d->start < d->length : addr - d->start < 4096) {
			*ret_name = str_from(d->name);
			*ret_module = STR_LIT("bpf");
			*ret_start = d->start;
			return true;
		}
	}
	if (!t->len || addr < t->base || addr - t->base > UINT32_MAX)
		return false;
	uint32_t offset = (uint32_t)(addr - t->base), start = 0;
	size_t count = table_unpack(t, offset, &start), name = count * PACK_EACH;
	uint16_t module, len = 0;
	for (size_t j = 0; j < count; j++) {
		uint32_t distance;

		memcpy(&distance, t->unpacked + j * 4, 4);
		if (distance > offset - start)
			break;
		start += distance;
		name += len;
		memcpy(&module, t->unpacked + count * 4 + j * 2, 2);
		memcpy(&len, t->unpacked + count * 6 + j * 2, 2);
	}
	if (!len || offset - start >= REACH)
		return false;
	*ret_name = (struct str){ .data = t->unpacked + name, .len = len };
	*ret_module = module ? str_from(t->modules[module - 1])
			     : (struct str){ .data = "", .len = 0 };
	*ret_start = t->base + start;
	return true;
}

void kallsyms_event(struct kallsyms *k, const struct sideband_event *e)
{
	if (e->type != SIDEBAND_KSYMBOL)
		return;
	if (e->unregister)
		dynamic_remove(&k->table, e->addr);
	else
		(void)dynamic_add(&k->table, e->addr, e->length, e->name);
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
	const struct table *t = &k->table;

	*ret = (struct kallsyms_figures){
		.symbols = t->len,
		.dynamic = t->dynamic_len,
		.by_iterator = k->by_iterator,
		.reads = k->reads,
		.failures = k->failures,
		.bytes = (t->pack_count ? (t->pack_count + 1) * sizeof(*t->packs) +
						  t->packs[t->pack_count].at + t->unpacked_bytes
					: 0) +
			 t->dynamic_cap * sizeof(*t->dynamic),
	};
}
