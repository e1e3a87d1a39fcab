/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/names/jit/jit.h"
#include "common/names/jit/jitdump.h"
#include "common/names/jit/perfmap.h"
#include "common/wire/lastword.h"

#define CHUNK (64u << 10)
#define TAIL 64u /* last bytes that were read, to notice that the file was rewritten */
#define TICK_NS 20000000ull
/* Later lines of a file replace earlier ones. So a lookup waits so long until the file was read to
 * its end. */
#define CATCH_UP_NS 5000000000ull

enum file_state { FILE_UNASKED, FILE_ASKED, FILE_OPEN, FILE_ABSENT };

struct jit_file {
	enum file_state state;
	int fd; /* -1 unless open */
	uint64_t request, asked_ns, retry_ns, backoff_ns;
	uint64_t offset, read_ns, opened_ns;
	bool behind;	   /* there is more to read */
	int over;	   /* the verdict after which it is not read any further; 0: none */
	struct jitdump *d; /* while open, one of these two is set, by kind */
	struct perfmap *m;
	unsigned tail_len;
	uint8_t tail[TAIL];
};

struct jit_process {
	uint64_t id;
	uint32_t pid;
	bool wanted; /* a lookup found no name since the last new one */
	bool settling, settled;
	uint64_t used_ns, born_ns, settle_ns;
	uint64_t read; /* bytes of its files that were read so far */
	uint64_t version;
	size_t bytes;
	struct jit_file files[JIT_KINDS];
};

int jit_init(struct jit *j, size_t total_max, int (*ask)(void *, const struct jit_request *),
	     void *ctx)
{
	*j = (struct jit){
		.ask = ask, .ctx = ctx, .total_max = total_max, .file_max = total_max / 3 * 2
	};
	return idmap_init(&j->ids, JIT_PROCESSES);
}

static void file_close(struct jit *j, struct jit_file *f)
{
	if (f->fd >= 0) {
		close(f->fd);
		j->open--;
	}
	if (f->d)
		jitdump_done(f->d);
	if (f->m)
		perfmap_done(f->m);
	free(f->d);
	free(f->m);
	*f = (struct jit_file){ .fd = -1 };
}

static void charge(struct jit *j, struct jit_process *p)
{
	j->bytes -= p->bytes;
	p->bytes = sizeof(*p);
	for (unsigned k = 0; k < JIT_KINDS; k++) {
		const struct jit_file *f = &p->files[k];

		if (f->d)
			p->bytes += sizeof(*f->d) + f->d->pending.cap + f->d->table.cap +
				    codemap_bytes(&f->d->code);
		if (f->m)
			p->bytes += sizeof(*f->m) + codemap_bytes(&f->m->code);
	}
	j->bytes += p->bytes;
}

static void close_files(struct jit *j, struct jit_process *p)
{
	for (unsigned k = 0; k < JIT_KINDS; k++)
		file_close(j, &p->files[k]);
	charge(j, p);
}

static bool has_open(const struct jit_process *p)
{
	for (unsigned k = 0; k < JIT_KINDS; k++)
		if (p->files[k].state == FILE_OPEN)
			return true;
	return false;
}

/* Closes the files of the least recently used processes, except `keep`, until all limits hold. */
static void make_room(struct jit *j, const struct jit_process *keep)
{
	while (j->open > JIT_OPEN || j->bytes > j->total_max) {
		struct jit_process *oldest = NULL;

		for (uint32_t i = 0; i < j->len; i++) {
			struct jit_process *p = j->processes[i];

			if (p && p != keep && has_open(p) &&
			    (!oldest || p->used_ns < oldest->used_ns))
				oldest = p;
		}
		if (!oldest)
			return;
		close_files(j, oldest);
	}
}

static struct jit_process *process_get(const struct jit *j, uint64_t id)
{
	uint32_t slot = idmap_get(&j->ids, id);

	return slot == IDMAP_NONE ? NULL : j->processes[slot];
}

/* NULL: too many processes, or no memory. */
static struct jit_process *process_make(struct jit *j, uint64_t id, uint32_t pid, uint64_t now_ns)
{
	struct jit_process *p = process_get(j, id);
	uint32_t slot = j->len;

	if (p)
		return p;
	if (j->free_len == 0 && j->len == j->cap) {
		uint32_t cap = j->cap ? j->cap * 2 : 16;
		struct jit_process **to = reallocarray(j->processes, cap, sizeof(*to));

		j->processes = to ? to : j->processes;
		uint32_t *slots = reallocarray(j->free_slots, cap, sizeof(*slots));
		j->free_slots = slots ? slots : j->free_slots;
		if (!to || !slots)
			return NULL;
		j->cap = cap;
	}
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	if (j->free_len)
		slot = j->free_slots[j->free_len - 1];
	if (idmap_put(&j->ids, id, slot) != 0) {
		free(p);
		return NULL;
	}
	if (j->free_len)
		j->free_len--;
	else
		j->len++;
	j->processes[slot] = p;
	p->id = id;
	p->pid = pid;
	p->born_ns = p->used_ns = now_ns;
	for (unsigned k = 0; k < JIT_KINDS; k++)
		p->files[k].fd = -1;
	charge(j, p);
	return p;
}

void jit_drop(struct jit *j, uint64_t process)
{
	uint32_t slot = idmap_get(&j->ids, process);

	if (slot == IDMAP_NONE)
		return;
	struct jit_process *p = j->processes[slot];

	close_files(j, p);
	j->bytes -= p->bytes;
	free(p);
	j->processes[slot] = NULL;
	j->free_slots[j->free_len++] = slot;
	idmap_remove(&j->ids, process);
}

void jit_drop_all(struct jit *j)
{
	for (uint32_t i = 0; i < j->len; i++)
		if (j->processes[i])
			jit_drop(j, j->processes[i]->id);
}

void jit_done(struct jit *j)
{
	jit_drop_all(j);
	idmap_done(&j->ids);
	free(j->processes);
	free(j->free_slots);
}

/* --- asking --- */

static void absent(struct jit_file *f, uint64_t now_ns)
{
	f->state = FILE_ABSENT;
	f->request = 0;
	f->backoff_ns = !f->backoff_ns			   ? JIT_RETRY_NS
			: f->backoff_ns < JIT_RETRY_MAX_NS ? f->backoff_ns * 2
							   : f->backoff_ns;
	f->retry_ns = now_ns + f->backoff_ns;
}

static void ask(struct jit *j, struct jit_process *p, unsigned kind, uint64_t now_ns)
{
	struct jit_file *f = &p->files[kind];

	f->state = FILE_ASKED;
	f->asked_ns = now_ns;
	f->request = ++j->next_request | JIT_REQUEST;
	if (j->ask(j->ctx, &(struct jit_request){ .id = f->request,
						  .process = p->id,
						  .pid = p->pid,
						  .kind = (enum jit_kind)kind }) != 0)
		absent(f, now_ns);
}

static void ask_due(struct jit *j, struct jit_process *p, uint64_t now_ns)
{
	for (unsigned k = 0; k < JIT_KINDS; k++) {
		struct jit_file *f = &p->files[k];

		if (f->state == FILE_UNASKED || (f->state == FILE_ABSENT && now_ns >= f->retry_ns))
			ask(j, p, k, now_ns);
	}
}

/* --- reading --- */

static int file_begin(struct jit *j, struct jit_file *f, unsigned kind)
{
	f->offset = 0;
	f->tail_len = 0;
	f->over = 0;
	if (kind == JIT_DUMP) {
		if (f->d)
			jitdump_done(f->d);
		else
			f->d = malloc(sizeof(*f->d));
		if (f->d)
			jitdump_init(f->d, j->file_max);
	} else {
		if (f->m)
			perfmap_done(f->m);
		else
			f->m = malloc(sizeof(*f->m));
		if (f->m)
			perfmap_init(f->m, j->file_max);
	}
	return f->d || f->m ? 0 : -ENOMEM;
}

static bool may_read(const struct jit_process *p, uint64_t now_ns)
{
	uint64_t age_ns = now_ns > p->born_ns ? now_ns - p->born_ns : 0;

	return p->read < JIT_BURST + age_ns / 1000000000 * JIT_RATE;
}

/* Whether the bytes that were read last are still there. */
static bool same_tail(const struct jit_file *f)
{
	uint8_t now[TAIL];

	return !f->tail_len || (pread(f->fd, now, f->tail_len, (off_t)(f->offset - f->tail_len)) ==
					(ssize_t)f->tail_len &&
				memcmp(now, f->tail, f->tail_len) == 0);
}

static int feed(struct jit *j, struct jit_file *f, struct span bytes)
{
	uint64_t skip = 0;
	int r;

	f->offset += bytes.len;
	if (f->d) {
		r = jitdump_feed(f->d, bytes, &skip);
		f->offset += skip;
	} else {
		r = perfmap_feed(f->m, bytes);
		f->tail_len = bytes.len < TAIL ? (unsigned)bytes.len : TAIL;
		memcpy(f->tail, bytes.data + bytes.len - f->tail_len, f->tail_len);
	}
	if (r > 0) {
		j->malformed += r != CODEMAP_FULL;
		f->over = r;
		r = 0;
	}
	return r;
}

/* Reads new bytes, at most one piece. Sets f->behind. */
static int file_read(struct jit *j, struct jit_process *p, unsigned kind, uint64_t now_ns)
{
	static uint8_t chunk[CHUNK];
	struct jit_file *f = &p->files[kind];
	size_t done = 0;
	struct stat st;
	int r = 0;

	f->read_ns = now_ns;
	f->behind = false;
	if (fstat(f->fd, &st) < 0)
		return 0;
	/* A jitdump may end within its last record, behind which our offset already is. So only a
	 * perf map that is too short was cut. */
	if (((uint64_t)st.st_size < f->offset && kind == JIT_PERF_MAP) ||
	    ((uint64_t)st.st_size > f->offset && !same_tail(f))) {
		j->truncated++;
		r = file_begin(j, f, kind);
	}

	const uint64_t former = lastword_begin(LASTWORD_PROCESS, p->id);

	while (r == 0 && !f->over && (uint64_t)st.st_size > f->offset) {
		if (done >= JIT_PIECE || !may_read(p, now_ns)) {
			f->behind = true;
			break;
		}
		ssize_t n = pread(f->fd, chunk, sizeof(chunk), (off_t)f->offset);

		if (n <= 0)
			break;
		done += (size_t)n;
		p->read += (size_t)n;
		r = feed(j, f, (struct span){ .data = chunk, .len = (size_t)n });
	}
	lastword_back(former);
	/* An allocation failed within a line or record: read the file again from the beginning. */
	if (r == -ENOMEM && file_begin(j, f, kind) == 0)
		f->behind = true;
	if (done) {
		p->version++;
		j->version++;
		p->wanted = false;
		charge(j, p);
		make_room(j, p);
	}
	return r;
}

bool jit_answer(struct jit *j, uint64_t id, int fd, uint64_t now_ns)
{
	if (!(id & JIT_REQUEST))
		return false;
	for (uint32_t i = 0; i < j->len; i++) {
		struct jit_process *p = j->processes[i];

		for (unsigned k = 0; p && k < JIT_KINDS; k++) {
			struct jit_file *f = &p->files[k];

			if (f->state != FILE_ASKED || f->request != id)
				continue;
			f->request = 0;
			if (fd < 0 || file_begin(j, f, k) != 0) {
				absent(f, now_ns);
				break;
			}
			f->state = FILE_OPEN;
			f->fd = fd;
			f->opened_ns = now_ns;
			j->open++;
			p->used_ns = now_ns;
			make_room(j, p);
			(void)file_read(j, p, k, now_ns);
			return true;
		}
	}
	if (fd >= 0)
		close(fd);
	return true;
}

/* --- looking up --- */

static int find(struct jit_process *p, uint64_t address, uint64_t time_ns, struct codemap_hit *ret)
{
	int r = CODEMAP_NONE;

	/* Prefer the jitdump, which has times and lines. */
	if (p->files[JIT_DUMP].d)
		r = codemap_find(&p->files[JIT_DUMP].d->code, address, time_ns, ret);
	if (r == CODEMAP_NONE && p->files[JIT_PERF_MAP].m)
		r = codemap_find(&p->files[JIT_PERF_MAP].m->code, address, time_ns, ret);
	return r;
}

static void fill(struct names *ret, const struct codemap_hit *hit)
{
	char name[CODEMAP_NAME + 1];

	names_reset(ret);
	ret->calls[0] = (struct call){ .line = hit->line };
	ret->count = 1;
	memcpy(name, hit->name.data, hit->name.len);
	name[hit->name.len] = '\0';
	names_set(ret, &ret->calls[0], name);
	if (hit->file.len)
		ret->calls[0].source = names_keep(ret, hit->file.data, hit->file.len);
}

void jit_want(struct jit *j, uint64_t process, uint32_t pid, uint64_t now_ns)
{
	struct jit_process *p = process_make(j, process, pid, now_ns);

	if (p)
		ask_due(j, p, now_ns);
}

int jit_lookup(struct jit *j, uint64_t process, uint32_t pid, uint64_t address, uint64_t time_ns,
	       uint64_t now_ns, struct names *ret)
{
	struct jit_process *p = process_make(j, process, pid, now_ns);
	struct codemap_hit hit;
	bool later = false;
	int r;

	if (!p)
		return JIT_UNKNOWN;
	p->used_ns = now_ns;
	ask_due(j, p, now_ns);
	r = find(p, address, time_ns, &hit);
	for (unsigned k = 0; r == CODEMAP_NONE && k < JIT_KINDS; k++) {
		struct jit_file *f = &p->files[k];

		if (f->state == FILE_OPEN && !f->behind && now_ns - f->read_ns >= JIT_REREAD_NS) {
			r = file_read(j, p, k, now_ns);
			if (r == 0)
				r = find(p, address, time_ns, &hit);
		}
	}
	if (r == CODEMAP_NONE) {
		p->wanted = true;
		for (unsigned k = 0; k < JIT_KINDS; k++)
			later |= p->files[k].state == FILE_ASKED || p->files[k].behind;
		return later ? JIT_LATER : JIT_UNKNOWN;
	}
	for (unsigned k = 0; r == 0 && k < JIT_KINDS; k++) {
		const struct jit_file *f = &p->files[k];

		if (f->behind && !f->over && !p->settled && now_ns - f->opened_ns < CATCH_UP_NS) {
			p->wanted = true;
			return JIT_LATER;
		}
	}
	if (r == 0)
		fill(ret, &hit);
	return r;
}

bool jit_knows(const struct jit *j, uint64_t process)
{
	return process_get(j, process) != NULL;
}

uint64_t jit_version(const struct jit *j, uint64_t process)
{
	const struct jit_process *p = process_get(j, process);

	return p ? p->version : 0;
}

int jit_settle(struct jit *j, uint64_t process, uint64_t now_ns)
{
	struct jit_process *p = process_get(j, process);
	bool waits = false;
	int r = 0;

	if (!p || p->settled)
		return 0;
	if (!p->settling) {
		p->settling = true;
		p->settle_ns = now_ns;
		for (unsigned k = 0; k < JIT_KINDS; k++) {
			struct jit_file *f = &p->files[k];

			if (f->state == FILE_OPEN)
				f->behind = true;
			else if (f->state != FILE_ASKED)
				ask(j, p, k, now_ns);
		}
	}
	for (unsigned k = 0; r == 0 && k < JIT_KINDS; k++) {
		if (p->files[k].behind)
			r = file_read(j, p, k, now_ns);
		waits |= p->files[k].behind || p->files[k].state == FILE_ASKED;
	}
	if (r)
		return r;
	if (waits && now_ns - p->settle_ns < JIT_WAIT_NS)
		return JIT_LATER;
	if (p->files[JIT_PERF_MAP].m)
		r = perfmap_flush(p->files[JIT_PERF_MAP].m);
	p->settled = true;
	return r < 0 ? r : 0;
}

/* --- time --- */

void jit_tick(struct jit *j, uint64_t now_ns)
{
	if (now_ns < j->tick_ns)
		return;
	j->tick_ns = now_ns + TICK_NS;
	for (uint32_t i = 0; i < j->len; i++) {
		struct jit_process *p = j->processes[i];

		if (!p)
			continue;
		for (unsigned k = 0; k < JIT_KINDS; k++) {
			struct jit_file *f = &p->files[k];

			if (f->state == FILE_ASKED && now_ns - f->asked_ns >= JIT_WAIT_NS)
				absent(f, now_ns);
			if (f->state == FILE_OPEN &&
			    (f->behind || (p->wanted && now_ns - f->read_ns >= JIT_REREAD_NS)))
				(void)file_read(j, p, k, now_ns);
		}
		if (p->wanted)
			ask_due(j, p, now_ns);
	}
}

uint64_t jit_deadline(const struct jit *j, uint64_t now_ns)
{
	uint64_t first = 0;

	for (uint32_t i = 0; i < j->len; i++) {
		const struct jit_process *p = j->processes[i];

		for (unsigned k = 0; p && k < JIT_KINDS; k++) {
			const struct jit_file *f = &p->files[k];
			uint64_t at = 0;

			if (f->state == FILE_ASKED)
				at = f->asked_ns + JIT_WAIT_NS;
			else if (f->behind)
				at = now_ns + TICK_NS;
			else if (p->wanted && f->state == FILE_OPEN)
				at = f->read_ns + JIT_REREAD_NS;
			else if (p->wanted && f->state == FILE_ABSENT)
				at = f->retry_ns;
			if (at && (!first || at < first))
				first = at;
		}
	}
	return first;
}
