/* SPDX-License-Identifier: Apache-2.0 */
#include "common/names/jit/jitdump.h"

#include <assert.h>
#include <elf.h>
#include <errno.h>
#include "common/base/bytes/numbers.h"

#define MAGIC 0x4a695444u /* "JiTD" read as a number */
#define ARCH_TIMESTAMP 1u
#define HEADER_MAX 4096u
/* perf puts an ELF header before the code. Some runtimes add its size to the addresses of lines. */
#define ELF_HEADER 64u
#define NAME_REST (CODEMAP_NAME + 1)

enum record_id { LOAD, MOVE, DEBUG_INFO, CLOSE, UNWINDING_INFO };

struct header {
	uint32_t magic, version, size, machine, pad, pid;
	uint64_t time, flags;
};
struct prefix {
	uint32_t id, size;
	uint64_t time;
};
struct load {
	uint32_t pid, tid;
	uint64_t vma, address, size, index;
};
struct move {
	uint32_t pid, tid;
	uint64_t vma, from, to, size, index;
};
struct debug_info {
	uint64_t address, count;
};
struct debug_entry {
	uint64_t address;
	uint32_t line, discriminator;
};
static_assert(sizeof(struct header) == 40 && sizeof(struct prefix) == 16, "as in the file");
static_assert(sizeof(struct load) == 40 && sizeof(struct move) == 48, "as in the file");

void jitdump_init(struct jitdump *j, size_t max)
{
	*j = (struct jitdump){ .pending = BUF_INIT(2 * JITDUMP_RECORD),
			       .last_name = BUF_INIT(CODEMAP_NAME),
			       .table = BUF_INIT(JITDUMP_RECORD) };
	codemap_init(&j->code, max);
}

void jitdump_done(struct jitdump *j)
{
	codemap_done(&j->code);
	buf_done(&j->pending);
	buf_done(&j->last_name);
	buf_done(&j->table);
}

/* Takes a NUL-terminated string, or the rest if the string was cut. */
static struct str take_name(struct span *s)
{
	const uint8_t *nul = s->len ? memchr(s->data, 0, s->len) : NULL;
	size_t n = nul ? (size_t)(nul - s->data) : s->len;
	struct span part = { 0 };

	span_take(s, nul ? n + 1 : n, &part);
	return (struct str){ .data = (const char *)part.data, .len = (uint32_t)n };
}

static int take_header(struct jitdump *j, struct span s, uint64_t *ret_size)
{
	struct header h;

	if (!span_read(&s, &h, sizeof(h)))
		return 0;
	if (h.magic == __builtin_bswap32(MAGIC))
		return JITDUMP_FOREIGN;
	if (h.magic != MAGIC)
		return JITDUMP_MALFORMED;
	if (h.machine != EM_X86_64 || h.version != 1)
		return JITDUMP_FOREIGN;
	if (h.size < sizeof(h) || h.size > HEADER_MAX)
		return JITDUMP_MALFORMED;
	j->times = !(h.flags & ARCH_TIMESTAMP);
	j->header = true;
	*ret_size = h.size;
	return 0;
}

static int take_load(struct jitdump *j, const struct prefix *p, struct span s)
{
	struct load l;
	uint32_t lines;

	if (!span_read(&s, &l, sizeof(l))) {
		j->bad_records++;
		return 0;
	}
	lines = j->lines_for == l.address ? j->lines : 0;
	j->lines = 0;
	return codemap_add(&j->code, l.address, l.size, j->times ? p->time : 0, take_name(&s),
			   lines);
}

static int take_move(struct jitdump *j, const struct prefix *p, struct span s)
{
	struct codemap_hit hit;
	struct move m;
	int r;

	if (!span_read(&s, &m, sizeof(m))) {
		j->bad_records++;
		return 0;
	}
	r = codemap_find(&j->code, m.from, j->times ? p->time : 0, &hit);
	if (r == CODEMAP_NONE || (r == 0 && hit.start != m.from))
		return CODEMAP_IMPOSSIBLE;
	return r ? r : codemap_move(&j->code, hit.record, m.to, m.size, j->times ? p->time : 0);
}

/* Adds the source file of a line. A name of one byte 0xff means the previous one. */
static int take_file(struct jitdump *j, struct str name, uint32_t *ret_file)
{
	struct str last = { .data = (const char *)j->last_name.data,
			    .len = (uint32_t)j->last_name.len };
	int r;

	name = str_cut(name, CODEMAP_NAME);
	if (name.len == 0) {
		*ret_file = 0;
		return 0;
	}
	if ((name.len == 1 && (uint8_t)name.data[0] == 0xff) ||
	    (j->last_file && str_eq(name, last))) {
		*ret_file = j->last_file;
		return 0;
	}
	r = codemap_file(&j->code, name, ret_file);
	if (r)
		return r;
	j->last_file = *ret_file;
	buf_reset(&j->last_name);
	return buf_append(&j->last_name, name.data, name.len);
}

static int take_lines(struct jitdump *j, struct span s)
{
	const struct codemap_line *table;
	struct debug_info d;
	uint64_t first = UINT64_MAX, shift = 0;
	size_t count = 0;

	if (!span_read(&s, &d, sizeof(d))) {
		j->bad_records++;
		return 0;
	}
	j->lines = 0;
	/* Check all entries before the first is stored: some versions of V8 write names whose
	 * length differs from what they claim. */
	for (struct span t = s; count < d.count; count++) {
		struct debug_entry e;

		if (!span_read(&t, &e, sizeof(e)) || e.address < d.address ||
		    e.address - d.address > CODEMAP_SIZE)
			return CODEMAP_IMPOSSIBLE;
		take_name(&t);
		first = e.address < first ? e.address : first;
	}
	/* If all addresses lie after an ELF header, the runtime has added its size. */
	if (count && first - d.address >= ELF_HEADER)
		shift = ELF_HEADER;
	buf_reset(&j->table);
	uint32_t before = 0;
	for (size_t i = 0; i < count; i++) {
		struct codemap_line line;
		struct debug_entry e;
		int r;

		if (!span_read(&s, &e, sizeof(e)))
			break;
		r = take_file(j, take_name(&s), &line.file);
		if (r)
			return r;
		line.offset = (uint32_t)(e.address - shift - d.address);
		line.line = e.line;
		if (line.offset < before)
			continue; /* out of order: a search would not find it */
		before = line.offset;
		r = buf_append(&j->table, &line, sizeof(line));
		if (r)
			return r == -ENOBUFS ? CODEMAP_IMPOSSIBLE : r;
	}
	count = j->table.len / sizeof(*table);
	table = (const struct codemap_line *)(const void *)j->table.data;
	int r = count ? codemap_lines(&j->code, table, (uint32_t)count, &j->lines) : 0;
	j->lines_for = d.address;
	return r;
}

/* Returns how many bytes of a record are parsed. */
static size_t wanted(const struct prefix *p)
{
	size_t most = p->id == LOAD	    ? sizeof(*p) + sizeof(struct load) + NAME_REST
		      : p->id == MOVE	    ? sizeof(*p) + sizeof(struct move)
		      : p->id == DEBUG_INFO ? (p->size <= JITDUMP_RECORD ? p->size : sizeof(*p))
					    : sizeof(*p);

	return p->size < most ? p->size : most;
}

static int take_record(struct jitdump *j, const struct prefix *p, struct span body)
{
	int r = 0;

	if (p->id == LOAD)
		r = take_load(j, p, body);
	else if (p->id == MOVE)
		r = take_move(j, p, body);
	else if (p->id == DEBUG_INFO && body.len)
		r = take_lines(j, body);
	if (r == CODEMAP_IMPOSSIBLE) {
		j->bad_records++;
		r = 0;
	}
	return r;
}

/* Takes the header or record at the front of s. *ret_size is its length; 0: more bytes are needed
 * first. */
static int take_one(struct jitdump *j, struct span s, uint64_t *ret_size)
{
	struct span body = s;
	struct prefix p;
	int r;

	*ret_size = 0;
	if (!j->header)
		return take_header(j, s, ret_size);
	if (!span_read(&body, &p, sizeof(p)))
		return 0;
	if (p.size < sizeof(p))
		return JITDUMP_MALFORMED;
	size_t want = wanted(&p);

	if (s.len < want)
		return 0;
	body.len = want - sizeof(p);
	r = take_record(j, &p, body);
	*ret_size = p.size;
	return r;
}

int jitdump_feed(struct jitdump *j, struct span bytes, uint64_t *ret_skip)
{
	int r = j->stopped;

	*ret_skip = 0;
	while (r == 0 && bytes.len) {
		struct span s, part = { 0 };
		uint64_t size;

		if (j->skip) {
			span_take(&bytes, numbers_smaller(bytes.len, j->skip), &part);
			j->skip -= part.len;
			continue;
		}
		/* Parse the caller's bytes directly, unless the beginning of a record is pending.
		 */
		size_t kept = j->pending.len;
		if (kept) {
			size_t room = JITDUMP_RECORD - kept;

			span_take(&bytes, numbers_smaller(bytes.len, room), &part);
			r = buf_append(&j->pending, part.data, part.len);
			if (r)
				break;
			s = buf_span(&j->pending);
		} else {
			s = bytes;
		}
		r = take_one(j, s, &size);
		if (size == 0) {
			if (r == 0 && !kept) {
				r = buf_append(&j->pending, bytes.data, bytes.len);
				bytes.len = 0;
			}
			continue;
		}
		/* Continue with the bytes after this record. */
		uint64_t here = numbers_smaller(size, s.len);

		j->skip = size - here;
		if (kept) {
			size_t back = s.len - (size_t)here;

			bytes.data -= back;
			bytes.len += back;
			buf_reset(&j->pending);
		} else {
			span_take(&bytes, (size_t)here, &part);
		}
	}
	if (r > 0)
		j->stopped = r;
	*ret_skip = j->skip;
	j->skip = 0;
	return r;
}
