/* SPDX-License-Identifier: Apache-2.0 */
#include "common/names/jit/jit.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include "common/base/system/clock.h"
#include "common/names/jit/codereader.h"
#include "common/wire/peer/lastword.h"

#define TICK_NS 20000000ull
#define SECOND_PART 4 /* a process's second file may take this part of the memory for one file */
/* Later lines of a file replace earlier ones. So a lookup waits at most this long for the file to
 * be read to its end. */
#define CATCH_UP_NS 5000000000ull

enum jit_file_state { JIT_FILE_UNASKED, JIT_FILE_ASKED, JIT_FILE_OPEN, JIT_FILE_ABSENT };

struct jit_file {
	enum jit_file_state state;
	uint64_t request, asked_ns, retry_ns, backoff_ns;
	uint64_t read_ns, opened_ns;
	uint64_t size;		   /* the file's size when it was last read to its end; UINT64_MAX:
				    * unknown */
	bool behind;		   /* there is more to read */
	bool over;		   /* the rest of the file is not read */
	bool lost;		   /* also, the file has no names any more */
	struct codereader *reader; /* set if it is open */
};

struct jit_process {
	uint64_t id, owner;
	uint32_t pid;
	bool wanted; /* a lookup found no name since the last new one came */
	bool settling, settled;
	uint64_t used_ns, born_ns, settle_ns;
	uint64_t read; /* bytes of its files that were read so far */
	uint64_t version;
	uint64_t generation; /* rises whenever lookups may get other answers */
	size_t bytes;
	struct jit_file files[MSG_JIT_KINDS];
};

int jit_init(struct jit *j, size_t total_max, int (*ask)(void *, const struct jit_request *),
	     void *ctx)
{
	*j = (struct jit){
		.ask = ask, .ctx = ctx, .total_max = total_max, .file_max = total_max / 3 * 2
	};
	return idmap_init(&j->ids, JIT_PROCESSES);
}

static void file_close(struct jit *j, const struct jit_process *p, struct jit_file *f)
{
	holdings_give(&j->asked_of, p->owner, f->state == JIT_FILE_ASKED);
	holdings_give(&j->open_of, p->owner, f->reader != NULL);
	codereader_free(f->reader);
	*f = (struct jit_file){ 0 };
}

static void charge(struct jit *j, struct jit_process *p)
{
	holdings_give(&j->bytes_of, p->owner, p->bytes);
	p->bytes = sizeof(*p);
	for (unsigned k = 0; k < MSG_JIT_KINDS; k++) {
		const struct jit_file *f = &p->files[k];

		if (f->reader)
			p->bytes += codereader_bytes(f->reader);
	}
	holdings_take(&j->bytes_of, p->owner, p->bytes);
}

static void close_files(struct jit *j, struct jit_process *p)
{
	for (unsigned k = 0; k < MSG_JIT_KINDS; k++)
		file_close(j, p, &p->files[k]);
	p->generation = ++j->generation;
	charge(j, p);
}

static bool has_open(const struct jit_process *p)
{
	for (unsigned k = 0; k < MSG_JIT_KINDS; k++)
		if (p->files[k].state == JIT_FILE_OPEN)
			return true;
	return false;
}

/* Chooses a process whose files are closed: of the owner that holds the most, the least recently
 * used one with open files, but not `keep`. NULL: there is none. */
static struct jit_process *next_to_close(const struct jit *j, const struct holdings *of,
					 const struct jit_process *keep)
{
	struct jit_process *ret = NULL;
	size_t most = 0;

	for (uint32_t i = 0; i < j->len; i++) {
		struct jit_process *p = j->processes[i];

		if (!p || p == keep || !has_open(p))
			continue;
		const size_t held = holdings_of(of, p->owner);

		if (!ret || held > most || (held == most && p->used_ns < ret->used_ns)) {
			ret = p;
			most = held;
		}
	}
	return ret;
}

/* Closes files until all limits are met. */
static void make_room(struct jit *j, const struct jit_process *keep)
{
	while (j->open_of.held > JIT_OPEN || j->bytes_of.held > j->total_max) {
		struct jit_process *p = next_to_close(
			j, j->open_of.held > JIT_OPEN ? &j->open_of : &j->bytes_of, keep);

		if (!p)
			return;
		close_files(j, p);
	}
}

static struct jit_process *process_get(const struct jit *j, uint64_t id)
{
	uint32_t slot = idmap_get(&j->ids, id);

	return slot == IDMAP_NONE ? NULL : j->processes[slot];
}

/* Drops a process to make space for another one of this owner: the least recently used one of the
 * owner that holds the most. */
static void drop_for(struct jit *j, uint64_t owner)
{
	const struct jit_process *oldest = NULL;

	(void)holdings_gives_way(&j->processes_of, owner, &owner);
	for (uint32_t i = 0; i < j->len; i++) {
		const struct jit_process *p = j->processes[i];

		if (p && p->owner == owner && (!oldest || p->used_ns < oldest->used_ns))
			oldest = p;
	}
	if (oldest)
		jit_drop(j, oldest->id);
}

/* Returns the process, making it if necessary. NULL: too many processes, or no memory. */
static struct jit_process *process_make(struct jit *j, uint64_t id, uint32_t pid, uint64_t now_ns)
{
	struct jit_process *p = process_get(j, id);

	if (p)
		return p;
	const uint64_t owner = j->owner_of ? j->owner_of(j->turns_ctx, id) : 0;

	if (j->processes_of.held >= JIT_PROCESSES)
		drop_for(j, owner);
	uint32_t slot = j->len;

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
	p->owner = owner;
	holdings_take(&j->processes_of, owner, 1);
	p->pid = pid;
	p->born_ns = p->used_ns = now_ns;
	p->generation = ++j->generation;
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
	holdings_give(&j->bytes_of, p->owner, p->bytes);
	holdings_give(&j->processes_of, p->owner, 1);
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
	codecache_done(&j->cache);
	free(j->processes);
	free(j->free_slots);
}

/* --- asking --- */

static void absent(struct jit *j, const struct jit_process *p, struct jit_file *f, uint64_t now_ns)
{
	holdings_give(&j->asked_of, p->owner, f->state == JIT_FILE_ASKED);
	f->state = JIT_FILE_ABSENT;
	f->request = 0;
	f->backoff_ns = !f->backoff_ns			   ? JIT_RETRY_NS
			: f->backoff_ns < JIT_RETRY_MAX_NS ? f->backoff_ns * 2
							   : f->backoff_ns;
	f->retry_ns = now_ns + f->backoff_ns;
}

/* Lets jit_tick request a file. */
static void ask_later(struct jit_process *p, struct jit_file *f)
{
	f->state = JIT_FILE_UNASKED;
	f->request = 0;
	p->wanted = true;
}

static void ask(struct jit *j, struct jit_process *p, unsigned kind, uint64_t now_ns)
{
	struct jit_file *f = &p->files[kind];

	if (!holdings_admits(&j->asked_of, p->owner, JIT_IN_FLIGHT)) {
		ask_later(p, f);
		return;
	}
	holdings_take(&j->asked_of, p->owner, 1);
	f->state = JIT_FILE_ASKED;
	f->asked_ns = now_ns;
	f->request = ++j->next_request | JIT_REQUEST;

	const int r = j->ask(j->ctx, &(struct jit_request){ .id = f->request,
							    .process = p->id,
							    .pid = p->pid,
							    .kind = (enum msg_jit_kind)kind });

	if (r == -EAGAIN) {
		holdings_give(&j->asked_of, p->owner, 1);
		ask_later(p, f);
	} else if (r) {
		absent(j, p, f, now_ns);
	}
}

static void ask_due(struct jit *j, struct jit_process *p, uint64_t now_ns)
{
	for (unsigned k = 0; k < MSG_JIT_KINDS; k++) {
		struct jit_file *f = &p->files[k];

		if (f->state == JIT_FILE_UNASKED ||
		    (f->state == JIT_FILE_ABSENT && now_ns >= f->retry_ns))
			ask(j, p, k, now_ns);
	}
}

/* --- reading --- */

static bool may_read(const struct jit_process *p, uint64_t now_ns)
{
	uint64_t age_ns = now_ns > p->born_ns ? now_ns - p->born_ns : 0;

	return p->read < JIT_BURST + age_ns / 1000000000 * JIT_RATE;
}

/* Marks a file as lost, because its reader died on it. It has no names any more. */
static void file_lost(struct jit *j, const struct jit_process *p, struct jit_file *f)
{
	if (f->lost)
		return;
	f->over = f->lost = true;
	f->behind = false;
	j->lost++;
	if (j->say_lost)
		j->say_lost(j->say_lost_ctx, p->id, p->pid);
}

/* Lets a file be read from its beginning by the next reader, and refunds its bytes: the restart is
 * not the process's fault. */
static void file_anew(struct jit_process *p, struct jit_file *f, uint64_t now_ns)
{
	f->behind = true;
	f->over = false;
	f->opened_ns = now_ns;
	p->read = 0;
}

static void took_note(struct jit *j, struct jit_process *p, struct jit_file *f,
		      const struct codefile_progress *done)
{
	p->read += done->read;
	j->truncated += done->anew;
	j->malformed += done->malformed;
	f->over = (f->over && !done->anew) || done->full || done->malformed;
	if (!done->read && !done->anew)
		return;
	p->version++;
	p->generation = ++j->generation;
	j->version++;
	p->wanted = false;
}

/* Reads new bytes, at most one piece. Sets f->behind. */
static int file_read(struct jit *j, struct jit_process *p, unsigned kind, uint64_t now_ns)
{
	struct jit_file *f = &p->files[kind];
	struct codefile_progress done;

	f->read_ns = now_ns;
	f->behind &= !f->lost;
	if (f->lost)
		return 0;
	if (j->may_read && !j->may_read(j->turns_ctx, p->id, now_ns)) {
		f->behind = true;
		return 0;
	}
	const uint64_t size = codereader_file_size(f->reader);

	if (!f->behind && size == f->size && size != UINT64_MAX)
		return 0;
	f->behind = true;
	if (!may_read(p, now_ns))
		return 0;

	const uint64_t former = lastword_begin(LASTWORD_PROCESS, p->id);
	const uint64_t begun_ns = clock_mono_ns();
	const int r = codereader_read(f->reader, JIT_PIECE, &done);

	lastword_back(former);
	if (j->took)
		j->took(j->turns_ctx, p->id, begun_ns);
	if (done.reopened)
		file_anew(p, f, now_ns);
	f->behind = done.behind;
	f->size = done.behind ? UINT64_MAX : size;
	took_note(j, p, f, &done);
	if (r == CODEREADER_LOST)
		file_lost(j, p, f);
	if (r == CODEREADER_ANEW)
		file_anew(p, f, now_ns);
	charge(j, p);
	make_room(j, p);
	return r < 0 ? r : 0;
}

/* Returns the most memory for a file. A process's second file gets little, so that both together
 * fit. */
static size_t most_of_file(const struct jit *j, const struct jit_process *p)
{
	return has_open(p) ? j->file_max / SECOND_PART : j->file_max;
}

/* Whether the process is in a container: the upper half of its owner's number. */
static bool is_contained(const struct jit_process *p)
{
	return p->owner >> 32;
}

bool jit_answer(struct jit *j, uint64_t id, int fd, uint64_t now_ns)
{
	if (!(id & JIT_REQUEST))
		return false;
	for (uint32_t i = 0; i < j->len; i++) {
		struct jit_process *p = j->processes[i];

		for (unsigned k = 0; p && k < MSG_JIT_KINDS; k++) {
			struct jit_file *f = &p->files[k];

			if (f->state != JIT_FILE_ASKED || f->request != id)
				continue;
			f->request = 0;
			if (fd >= 0 && codereader_open(fd, (enum msg_jit_kind)k, is_contained(p),
						       most_of_file(j, p), &f->reader) != 0)
				fd = -1;
			if (fd < 0) {
				absent(j, p, f, now_ns);
				return true;
			}
			holdings_give(&j->asked_of, p->owner, 1);
			f->state = JIT_FILE_OPEN;
			f->size = UINT64_MAX;
			f->opened_ns = now_ns;
			holdings_take(&j->open_of, p->owner, 1);
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

static struct codecache_key key_of(const struct jit_process *p, uint64_t address)
{
	return (struct codecache_key){ .process = p->id,
				       .address = address,
				       .generation = p->generation };
}

static const struct codecache_answer *cached_find(const struct jit *j, const struct jit_process *p,
						  uint64_t address, uint64_t time_ns)
{
	const struct codecache_key of = key_of(p, address);

	return codecache_find(&j->cache, &of, time_ns);
}

static void keep(struct jit *j, const struct jit_process *p, uint64_t address,
		 const struct codefile_answer *answer, const struct names_call *c)
{
	const struct codecache_key of = key_of(p, address);

	codecache_put(&j->cache, &of, answer, c);
}

void jit_expect(struct jit *j, uint64_t process, const uint64_t *addresses, unsigned count)
{
	j->expects = process;
	j->expected_len = count < JIT_EXPECTED ? count : JIT_EXPECTED;
	memcpy(j->expected, addresses, j->expected_len * sizeof(*addresses));
}

/* An address, and others that will soon be looked up for the same time. */
struct batch {
	uint64_t addresses[CODEREADER_BATCH]; /* the first is the one that is needed now */
	unsigned count;
	bool found;	 /* the first address was found, and its call is in *names */
	bool is_certain; /* all files were searched */
	struct names *names;
};

static void batch_make(struct jit *j, const struct jit_process *p, uint64_t address,
		       uint64_t time_ns, struct batch *b)
{
	b->addresses[b->count++] = address;
	for (unsigned i = 0; j->expects == p->id && i < j->expected_len; i++)
		if (b->count < CODEREADER_BATCH && j->expected[i] != address &&
		    !cached_find(j, p, j->expected[i], time_ns))
			b->addresses[b->count++] = j->expected[i];
	j->expected_len = 0;
}

/* Looks up the batch in one file. Addresses that are not found stay in the batch. */
static int batch_find(struct jit *j, struct jit_process *p, struct jit_file *f, uint64_t time_ns,
		      uint64_t now_ns, struct batch *b)
{
	struct codefile_answer answers[CODEREADER_BATCH];
	const struct names *names;
	unsigned rest = 0, call = 0;
	const int r = codereader_find(f->reader, b->addresses, b->count, time_ns, answers, &names);

	if (r == CODEREADER_LOST)
		file_lost(j, p, f);
	if (r == CODEREADER_ANEW)
		file_anew(p, f, now_ns);
	b->is_certain &= r == 0;
	if (r)
		return r < 0 ? r : 0;
	for (unsigned i = 0; i < b->count; i++) {
		if (!answers[i].found) {
			b->addresses[rest++] = b->addresses[i];
			continue;
		}
		const struct names_call *c = &names->calls[call++];

		if (i == 0 && !b->found) {
			b->found = true;
			names_only(b->names, c);
		}
		keep(j, p, b->addresses[i], &answers[i], c);
	}
	b->count = rest;
	return 0;
}

/* Looks an address up in both files. Returns 0, JIT_UNKNOWN or -ENOMEM. */
static int find(struct jit *j, struct jit_process *p, uint64_t address, uint64_t time_ns,
		uint64_t now_ns, struct names *ret)
{
	static const struct codefile_answer nothing = { .until_ns = UINT64_MAX };
	/* Prefer the jitdump, which has times and lines. */
	static const enum msg_jit_kind order[MSG_JIT_KINDS] = { MSG_JIT_DUMP, MSG_JIT_PERF_MAP };
	const struct codecache_answer *cached = cached_find(j, p, address, time_ns);
	struct batch b = { .is_certain = true, .names = ret };
	int r = 0;

	if (cached)
		return codecache_tell(cached, ret) ? 0 : JIT_UNKNOWN;
	if (!has_open(p))
		return JIT_UNKNOWN;
	batch_make(j, p, address, time_ns, &b);
	for (unsigned i = 0; i < MSG_JIT_KINDS && b.count && r == 0; i++)
		if (p->files[order[i]].reader)
			r = batch_find(j, p, &p->files[order[i]], time_ns, now_ns, &b);
	if (r)
		return r;
	for (unsigned i = 0; b.is_certain && i < b.count; i++)
		keep(j, p, b.addresses[i], &nothing, NULL);
	return b.found ? 0 : JIT_UNKNOWN;
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
	bool later = false;
	int r;

	if (!p)
		return JIT_UNKNOWN;
	p->used_ns = now_ns;
	ask_due(j, p, now_ns);
	r = find(j, p, address, time_ns, now_ns, ret);
	for (unsigned k = 0; r == JIT_UNKNOWN && k < MSG_JIT_KINDS; k++) {
		struct jit_file *f = &p->files[k];

		if (f->state == JIT_FILE_OPEN && !f->behind &&
		    now_ns - f->read_ns >= JIT_REREAD_NS) {
			r = file_read(j, p, k, now_ns);
			if (r == 0)
				r = find(j, p, address, time_ns, now_ns, ret);
			else
				return r;
		}
	}
	if (r == JIT_UNKNOWN) {
		p->wanted = true;
		for (unsigned k = 0; k < MSG_JIT_KINDS; k++)
			later |= p->files[k].state == JIT_FILE_ASKED || p->files[k].behind;
		return later ? JIT_LATER : JIT_UNKNOWN;
	}
	for (unsigned k = 0; r == 0 && k < MSG_JIT_KINDS; k++) {
		const struct jit_file *f = &p->files[k];

		if (f->behind && !f->over && !p->settled && now_ns - f->opened_ns < CATCH_UP_NS) {
			p->wanted = true;
			return JIT_LATER;
		}
	}
	return r;
}

size_t jit_bytes(const struct jit *j)
{
	return j->bytes_of.held;
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
		for (unsigned k = 0; k < MSG_JIT_KINDS; k++) {
			struct jit_file *f = &p->files[k];

			if (f->state == JIT_FILE_OPEN)
				f->behind = true;
			else if (f->state == JIT_FILE_ABSENT)
				f->state = JIT_FILE_UNASKED;
		}
	}
	for (unsigned k = 0; r == 0 && k < MSG_JIT_KINDS; k++) {
		const struct jit_file *f = &p->files[k];

		/* A file remains in this state while there are too many requests. */
		if (f->state == JIT_FILE_UNASKED)
			ask(j, p, k, now_ns);
		if (f->behind)
			r = file_read(j, p, k, now_ns);
		waits |= f->behind || f->state == JIT_FILE_ASKED || f->state == JIT_FILE_UNASKED;
	}
	if (r)
		return r;
	if (waits && now_ns - p->settle_ns < JIT_WAIT_NS)
		return JIT_LATER;
	if (p->files[MSG_JIT_PERF_MAP].reader)
		r = codereader_flush(p->files[MSG_JIT_PERF_MAP].reader);
	p->generation = ++j->generation;
	p->settled = true;
	return r < 0 ? r : 0;
}

/* --- time --- */

static void tick(struct jit *j, struct jit_process *p, uint64_t now_ns)
{
	for (unsigned k = 0; k < MSG_JIT_KINDS; k++) {
		struct jit_file *f = &p->files[k];

		if (f->state == JIT_FILE_ASKED && now_ns - f->asked_ns >= JIT_WAIT_NS)
			absent(j, p, f, now_ns);
		if (f->state == JIT_FILE_OPEN &&
		    (f->behind || (p->wanted && now_ns - f->read_ns >= JIT_REREAD_NS)))
			(void)file_read(j, p, k, now_ns);
	}
	if (p->wanted)
		ask_due(j, p, now_ns);
}

/* Serves all processes in turn, so that those with much to read do not hold up the others. */
void jit_tick(struct jit *j, uint64_t now_ns)
{
	if (now_ns < j->tick_ns || !j->len)
		return;
	j->tick_ns = now_ns + TICK_NS;

	const uint64_t until_ns = clock_mono_ns() + JIT_TICK_NS;

	for (uint32_t n = 0; n < j->len; n++) {
		struct jit_process *p = j->processes[j->next++ % j->len];

		if (p)
			tick(j, p, now_ns);
		if (clock_mono_ns() > until_ns)
			break;
	}
}

uint64_t jit_deadline(const struct jit *j, uint64_t now_ns)
{
	uint64_t first = 0;

	for (uint32_t i = 0; i < j->len; i++) {
		const struct jit_process *p = j->processes[i];

		for (unsigned k = 0; p && k < MSG_JIT_KINDS; k++) {
			const struct jit_file *f = &p->files[k];
			uint64_t at = 0;

			if (f->state == JIT_FILE_ASKED)
				at = f->asked_ns + JIT_WAIT_NS;
			else if (f->behind)
				at = now_ns + TICK_NS;
			else if (p->wanted && f->state == JIT_FILE_OPEN)
				at = f->read_ns + JIT_REREAD_NS;
			else if (p->wanted && f->state == JIT_FILE_ABSENT)
				at = f->retry_ns;
			if (at && (!first || at < first))
				first = at;
		}
	}
	return first;
}
