/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/peers/requests.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/base/command/log.h"
#include "common/base/system/clock.h"
#include "common/walk/tables/tables.h"
#include "tools/prof-bpf/host/lookups/debugsearch.h"
#include "tools/prof-bpf/host/lookups/jitfiles.h"
#include "tools/prof-bpf/host/host.h"
#include "tools/prof-bpf/host/memory/memory.h"
#include "tools/prof-bpf/host/processes/reach.h"
#include "tools/prof-bpf/host/publish/publish.h"
#include "tools/prof-bpf/kernel/loader.h"
#include "tools/prof-bpf/kernel/runtimes.h"
#include "tools/prof-bpf/open/closing.h"
#include "tools/prof-bpf/open/readers/reader.h"
#include "tools/prof-bpf/peers/file_server.h"
#include "tools/prof-bpf/peers/offers.h"
#include "tools/prof-bpf/peers/parser_deaths.h"

struct wanted {
	struct requests *rq;
	uint64_t ticket;
	uint64_t file;	  /* set if the file itself was requested; 0: a debug file of it, or none */
	const char *what; /* for the log: which file of process `pid`; NULL: not of a process */
	uint32_t pid;
};

/* Ends the offer of a file that prof-symd does not get. */
static void end_offer(struct requests *rq, uint64_t file)
{
	struct host_file *f = file && file <= UINT32_MAX ? host_file(rq->host, (uint32_t)file)
							 : NULL;

	if (f)
		offers_close(rq->offers, f);
}

static void opened(void *ctx, const struct opener_result *r)
{
	struct wanted *w = ctx;
	int status = r->status < 0		   ? -r->status
		     : r->status == OPENER_TIMEOUT ? ETIMEDOUT
		     : r->status == OPENER_REFUSED ? EACCES
		     : r->status == OPENER_NO_ROOM ? ENOMEM
		     : r->status		   ? ENOENT
						   : 0;

	file_server_answer(w->rq->file_server, w->ticket, r->fd, status, r->file.size, r->place);
	if (w->what && status && status != ENOENT && status != ESRCH)
		log_info("process %u: its %s is not used: %s", w->pid, w->what,
			 r->status == OPENER_REFUSED
				 ? "it belongs to another user, is older than the process, is no "
				   "regular file, or is on a file system that could hang"
				 : strerror(status));
	if (status)
		end_offer(w->rq, w->file);
	free(w);
}

static struct wanted *wanted_new(struct requests *rq, uint64_t ticket)
{
	struct wanted *w = malloc(sizeof(*w));

	if (w)
		*w = (struct wanted){ .rq = rq, .ticket = ticket };
	return w;
}

static void refused(struct wanted *w, struct requests *rq, uint64_t ticket, int r)
{
	if (!r)
		return;
	free(w);
	file_server_answer(rq->file_server, ticket, -1, -r, 0, 0);
}

/* Returns the file with this id. NULL: there is none, or prof-symd must not get it. */
static struct host_file *file_for(struct requests *rq, uint64_t id)
{
	struct host_file *f = id <= UINT32_MAX ? host_file(rq->host, (uint32_t)id) : NULL;
	struct quarantine_key of;

	if (!f)
		return NULL;
	of = parser_deaths_key(f);
	return parser_deaths_refuse(rq->deaths, QUARANTINE_NAMES, &of) ? NULL : f;
}

void requests_file(void *ctx, uint64_t ticket, const struct msg_file_request *m)
{
	struct requests *rq = ctx;
	struct host_file *f = file_for(rq, m->file);
	struct wanted *w = wanted_new(rq, ticket);

	if (w)
		w->file = m->file;
	const int r = !w ? -ENOMEM : !f ? -ENOENT : host_open(rq->host, f, opened, w);

	if (r)
		end_offer(rq, m->file);
	refused(w, rq, ticket, r);
}

void requests_debug(void *ctx, uint64_t ticket, const struct msg_debug_request *m)
{
	struct requests *rq = ctx;
	struct host_file *f = file_for(rq, m->file);
	struct wanted *w = wanted_new(rq, ticket);

	refused(w, rq, ticket,
		!w   ? -ENOMEM
		: !f ? -ENOENT
		     : debugsearch_open(rq->host, f, m->build_id, m->name, m->place, opened, w));
}

void requests_jit(void *ctx, uint64_t ticket, const struct msg_jit_request *m)
{
	struct requests *rq = ctx;
	struct wanted *w = wanted_new(rq, ticket);

	if (w) {
		w->what = m->kind == MSG_JIT_DUMP ? "jitdump" : "perf map";
		w->pid = (uint32_t)m->pid;
	}
	refused(w, rq, ticket,
		!w						? -ENOMEM
		: m->process > UINT32_MAX || m->pid > INT32_MAX ? -EINVAL
		: parser_deaths_refuse_process(rq->deaths, m->process)
			? -EACCES
			: jitfiles_open(rq->jitfiles, (uint32_t)m->process, (uint32_t)m->pid,
					m->kind, opened, w));
}

/* Checks the numbers that prof-bpf uses, and drops steps that lead to more memory than naming
 * needs. The runtime's program uses `own`, and does not trust it. */
static bool config_is_sane(struct runtime_config *c)
{
	if (!runtime_mark(c->runtime) || c->by_loop >= RUNTIME_BY_LOOPS ||
	    c->ranges > RUNTIME_RANGES || c->shown > c->ranges)
		return false;
	for (uint32_t i = 0; i < c->ranges; i++) {
		if (c->loop[i].start >= c->loop[i].end)
			return false;
	}
	const uint32_t number = c->rule & 0xffff, below = c->rule >> TABLES_RULE_STUB_BELOW_SHIFT;

	if (c->copy.steps > RUNTIME_STEPS || (c->rule && !(number & TABLES_RULE_SHORT)) ||
	    (below && (number != TABLES_RULE_STUB || below > TABLES_RULE_STUB_BELOW_MAX)))
		return false;
	for (uint32_t i = 1; i < c->copy.steps; i++) {
		if (c->copy.step[i].from >= i)
			return false;
	}
	/* Without steps nothing is copied and nothing is read. */
	if (!reach_suits(&c->copy, runtime_need(c->runtime)))
		c->copy = (struct runtime_copy){ 0 };
	return true;
}

static void say_unknown(struct requests *rq, struct str name)
{
	struct str s = str_cut(name, sizeof(rq->unknown[0]) - 1);

	for (size_t i = 0; i < REQUESTS_UNKNOWN; i++) {
		char *said = rq->unknown[i];

		if (str_eq(s, str_from(said)))
			return;
		if (said[0])
			continue;
		for (uint32_t at = 0; at < s.len; at++)
			said[at] = s.data[at] ? s.data[at] : '?';
		log_warning("%s: this build is not known; its frames are shown as native ones",
			    said);
		return;
	}
}

/* How often to look for a mark, if a busy host or a file server prevented it. */
#define MARK_TRIES 8
#define MARK_RETRY_NS 500000000ull

/* prof-symd's report about a file, while it is being checked. */
struct requests_described {
	struct requests_described *next; /* list of `unmarked` or `unloaded` of struct requests */
	struct requests *rq;
	uint32_t file;
	unsigned tries;
	uint64_t mark;
	struct runtime_config config;
};

/* Owns d. The start of the run waits for offered files, and so also for the programs. */
static void use_runtime(struct requests_described *d)
{
	struct requests *rq = d->rq;
	const enum runtime which = (enum runtime)d->config.runtime;
	struct host_file *f = host_file(rq->host, d->file);
	const int r = f ? loader_runtime(rq->loader, which) : 0;

	if (r == -EAGAIN) {
		d->next = rq->unloaded;
		rq->unloaded = d;
		return;
	}
	if (r && !(rq->refused >> which & 1)) {
		rq->refused |= 1ull << which;
		log_warning("%s frames cannot be read: the BPF program does not load: %s; %s",
			    runtimes_name(which), strerror(-r), loader_trouble(rq->loader));
	}
	if (!r && f)
		host_runtime(rq->host, f, &d->config);
	if (f)
		offers_close(rq->offers, f);
	free(d);
}

void requests_loaded(struct requests *rq)
{
	struct requests_described *all = rq->unloaded;

	rq->unloaded = NULL;
	while (all) {
		struct requests_described *d = all;

		all = d->next;
		use_runtime(d);
	}
}

static void say_lie(struct requests *rq, const struct host_file *f, enum runtime runtime)
{
	struct buf path = BUF_INIT(0);

	if (!rq->lie_logged &&
	    log_escape(&path, (struct str){ .data = f->path, .len = f->path_len }, 256) == 0)
		log_warning("%.*s: prof-symd reports %s, which the file does not contain; such "
			    "reports are ignored, and logged once",
			    (int)path.len, (const char *)path.data, runtimes_name(runtime));
	rq->lie_logged = true;
	buf_done(&path);
}

/* Check again a little later, since prof-symd reports only once. */
static void defer(struct requests_described *d)
{
	struct host_file *f = host_file(d->rq->host, d->file);

	if (f && d->tries < MARK_TRIES) {
		d->next = d->rq->unmarked;
		d->rq->unmarked = d;
		return;
	}
	if (f) {
		f->described = false;
		offers_close(d->rq->offers, f);
	}
	free(d);
}

static void mark_is_read(void *ctx, struct reader_result *r)
{
	struct requests_described *d = ctx;

	if (r->status) {
		defer(d);
		return;
	}
	const char *mark = runtime_mark(d->config.runtime);
	struct host_file *f = host_file(d->rq->host, d->file);

	if (r->bytes.len == strlen(mark) + 1 && memcmp(r->bytes.data, mark, r->bytes.len) == 0) {
		use_runtime(d);
		return;
	}
	if (f)
		say_lie(d->rq, f, (enum runtime)d->config.runtime);
	if (f)
		offers_close(d->rq->offers, f);
	free(d);
}

static void marked_file_opened(void *ctx, const struct opener_result *r)
{
	struct requests_described *d = ctx;
	struct host_file *f = host_file(d->rq->host, d->file);
	const uint64_t length = strlen(runtime_mark(d->config.runtime)) + 1;

	if (r->status || !f) {
		if (!r->status)
			closing_give(r->fd);
		defer(d);
		return;
	}
	const struct reader_request q = {
		.fd = r->fd, .pieces = 1, .addresses = &d->mark, .lengths = &length
	};
	if (reader_submit(d->rq->pool, &q, mark_is_read, d)) {
		closing_give(r->fd);
		defer(d);
	}
}

static void look_for_mark(struct requests_described *d)
{
	struct host_file *f = host_file(d->rq->host, d->file);

	d->tries++;
	if (!f || host_open(d->rq->host, f, marked_file_opened, d))
		defer(d);
}

void requests_tick(struct requests *rq, uint64_t now_ns)
{
	struct requests_described *all = rq->unmarked;

	if (!all || now_ns - rq->unmarked_ns < MARK_RETRY_NS)
		return;
	rq->unmarked_ns = now_ns;
	rq->unmarked = NULL;
	while (all) {
		struct requests_described *d = all;

		all = d->next;
		look_for_mark(d);
	}
}

static void drop(struct requests_described **all)
{
	while (*all) {
		struct requests_described *d = *all;

		*all = d->next;
		free(d);
	}
}

void requests_done(struct requests *rq)
{
	drop(&rq->unmarked);
	drop(&rq->unloaded);
}

bool requests_runtime(void *ctx, const struct msg_runtime *m)
{
	struct requests *rq = ctx;
	struct host_file *f = m->file <= UINT32_MAX ? host_file(rq->host, (uint32_t)m->file) : NULL;
	struct runtime_config c;

	if (m->config.len == 0) {
		if (m->name.len)
			say_unknown(rq, m->name);
		if (f)
			offers_close(rq->offers, f);
		return true;
	}
	if (m->config.len != sizeof(c))
		return false;
	memcpy(&c, m->config.data, sizeof(c));
	if (!config_is_sane(&c))
		return false;
	/* The file is not mapped any more, or was already reported. Each report costs an opening,
	 * and publishing all processes that map the file. */
	if (!f || f->described)
		return true;
	f->described = true;
	struct requests_described *d = malloc(sizeof(*d));
	if (!d)
		return true;
	*d = (struct requests_described){ .rq = rq, .file = f->id, .mark = m->mark, .config = c };
	look_for_mark(d);
	return true;
}

struct requests_reading {
	struct requests *rq;
	uint64_t ticket;
	struct memory_read of;
};

static void memory_is_read(void *ctx, struct reader_result *r)
{
	struct requests_reading *m = ctx;
	int e = r->status ? r->status
			  : memory_end(m->rq->host, &m->of, r->exe_same ? r->exe_mode : 0);
	struct span rest = buf_span(&r->bytes), bytes;
	uint64_t lengths[MEMORY_PIECES] = { 0 }; /* lengths of all requested pieces */
	size_t kept = 0;

	for (uint32_t i = 0; !e && i < r->pieces; i++) {
		if (!span_take(&rest, (size_t)r->lengths[i], &bytes))
			break;
		const size_t n = memory_was_read(m->rq->host, &m->of, i, bytes);

		memmove(r->bytes.data + kept, bytes.data, n);
		kept += n;
		lengths[m->of.places[i]] = n;
	}
	r->bytes.len = kept;
	file_server_memory(m->rq->file_server, m->ticket, -e, &r->bytes,
			   (struct msg_list){ .data = lengths, .len = m->of.asked });
	free(m);
}

void requests_memory(void *ctx, uint64_t ticket, const struct msg_memory_request *m)
{
	struct requests *rq = ctx;
	struct requests_reading *of = malloc(sizeof(*of));
	int r = !of ? -ENOMEM
		: !rq->may_read_memory || parser_deaths_refuse_process(rq->deaths, m->process)
			? -EACCES
			: 0;

	if (!r) {
		*of = (struct requests_reading){ .rq = rq, .ticket = ticket };
		r = memory_begin(rq->host, m, clock_mono_ns(), &of->of);
	}
	if ((!r || r == -EFAULT) && of->of.key_count)
		(void)loader_forget_some(rq->loader, of->of.pid, of->of.keys, of->of.key_count);
	if (!r) {
		const struct reader_request q = { .fd = -1,
						  .pid = of->of.pid,
						  .payer = of->of.payer,
						  .pieces = of->of.pieces,
						  .addresses = of->of.addresses,
						  .lengths = of->of.lengths };

		r = reader_submit(rq->pool, &q, memory_is_read, of);
	}
	if (!r)
		return;
	free(of);
	file_server_memory(rq->file_server, ticket, -r, NULL, (struct msg_list){ 0 });
}

void requests_peer_died(void *ctx, const struct lastword *last)
{
	struct requests *rq = ctx;

	parser_deaths_names(rq->deaths, last);
}
