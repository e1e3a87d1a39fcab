/* SPDX-License-Identifier: Apache-2.0 */
/* From what the kernel says to the stream: samples, whose they are, what was lost. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "common/clock.h"
#include "common/log.h"
#include "tools/prof-bpf/closing.h"
#include "tools/prof-bpf/memory.h"
#include "tools/prof-bpf/prof.h"
#include "tools/prof-bpf/record.h"
#include "tools/prof-bpf/runtimes.h"

#define TELL_NS 60000000000ull

/* --- the stream --- */

/* What an output file holds stays until there is something to write. */
static int begin_output(struct prof *p)
{
	struct stat st;

	if (p->output_begun || !p->options.output)
		return 0;
	p->output_begun = true;
	return !fstat(p->output, &st) && S_ISREG(st.st_mode) && ftruncate(p->output, 0) ? -errno
											: 0;
}

static int write_all(int fd, struct span s)
{
	while (s.len) {
		ssize_t n = write(fd, s.data, s.len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		s.data += n;
		s.len -= (size_t)n;
	}
	return 0;
}

/* A batch goes to prof-symd, or to the output of a run by hand. */
int feed_batch(void *ctx, struct span batch)
{
	struct prof *p = ctx;

	if (!p->stream) {
		int r = begin_output(p);

		if (!r)
			r = write_all(p->output, batch);
		if (r && !p->failed) {
			log_error("%s: %s: what was written so far is a recording that ends there",
				  p->options.output ? p->options.output : "standard output",
				  strerror(-r));
			p->failed = p->exit_now = true;
		}
		return 0;
	}
	/* The bus may have another peer already than the one this was for. */
	return p->stream_begun ? outbox_put(&p->outbox, batch) : -ENOTCONN;
}

/* An error in the middle of definitions leaves both sides unsure of what is known: begin anew. */
void feed_emitted(struct prof *p, int r)
{
	if (r < 0 && p->stream) {
		p->objects_lost = true;
		outbox_reset(&p->outbox);
		(void)emit_restart(p->emit);
	}
}

bool feed_kernel_name(void *ctx, uint64_t address, struct str *ret_name, struct str *ret_module,
		      uint64_t *ret_start)
{
	struct prof *p = ctx;

	return p->kallsyms &&
	       kallsyms_lookup(p->kallsyms, address, ret_name, ret_module, ret_start);
}

/* --- what the host knows, as the stream defines it --- */

static struct emit_file file_of(struct host_file *f)
{
	return (struct emit_file){
		.def = { .id = f->id,
			 .dev = f->dev,
			 .inode = f->inode,
			 .ctime_ns = f->ctime_ns,
			 .size = f->size,
			 .path = { .data = f->path, .len = f->path_len },
			 .flags = f->flags },
		.sent = &f->sent,
	};
}

bool feed_slot_file(void *ctx, uint16_t slot, struct emit_file *ret)
{
	struct prof *p = ctx;
	struct host_file *f = host_slot_file(p->host, slot);

	if (f)
		*ret = file_of(f);
	return f != NULL;
}

const struct runtime_config *feed_runtime(void *ctx, uint16_t slot)
{
	struct prof *p = ctx;

	return tables_runtime(p->tables, slot);
}

/* exe: filled for it. */
static struct emit_process process_of(struct host_process *h, struct emit_file *exe)
{
	if (h->exe)
		*exe = file_of(h->exe);
	return (struct emit_process){
		.def = { .id = h->id,
			 .pid = h->pid,
			 .parent_pid = h->parent_pid,
			 .start_ns = h->start_ns,
			 .execs = h->execs,
			 .comm = { .data = h->comm, .len = h->comm_len },
			 .exe = h->exe ? h->exe->id : 0,
			 .uid = h->uid,
			 .flags = h->flags },
		.sent = &h->sent,
		.generated = &h->generated_sent,
		.changed = &h->changed,
		.exe = h->exe ? exe : NULL,
	};
}

void feed_process_gone(void *ctx, struct host_process *h)
{
	struct prof *p = ctx;
	struct emit_file exe;
	struct emit_process gone = process_of(h, &exe);

	feed_emitted(p, emit_process_end(p->emit, &gone, h->end_ns));
}

static void tell_process(void *ctx, struct host_process *h)
{
	struct prof *p = ctx;
	struct emit_file exe;
	struct emit_process changed = process_of(h, &exe);

	feed_emitted(p, emit_process(p->emit, &changed));
}

void feed_processes(struct prof *p)
{
	host_each_process(p->host, tell_process, p);
}

#define OFFER_NS 1000000000ull

/* Whether the files that are mapped now are those of the programs that the run is about: nobody
 * else's are looked at before it begins. */
static bool is_chosen(const struct prof *p)
{
	return p->phase == CONNECTING && (p->options.follow || p->options.pid_count);
}

/*
 * To describe an interpreter takes prof-symd some milliseconds, and until then its frames are
 * native ones. So it is told of a file that is called like one as soon as it is mapped, and not
 * with its first sample. That is bounded, since anybody may call a file so.
 */
static void offer(struct prof *p, struct host_file *f)
{
	const uint64_t now_ns = clock_mono_ns();

	if (!p->stream || f->offered || f->described || p->offer_count == OFFERS ||
	    p->offer_ns > now_ns + OFFERS * OFFER_NS || !f->path ||
	    !(is_chosen(p) || runtimes_is_named(f->path)))
		return;
	p->offer_ns = (p->offer_ns > now_ns ? p->offer_ns : now_ns) + OFFER_NS;
	f->offered = true;
	f->flags |= FILE_OFFERED;
	p->offers[p->offer_count++] = f->id;
}

void feed_offers(struct prof *p)
{
	if (!p->offer_count || !p->stream_begun || outbox_pressed(&p->outbox))
		return;
	for (unsigned i = 0; i < p->offer_count; i++) {
		struct host_file *f = host_file(p->host, p->offers[i]);

		if (!f)
			continue;
		const struct emit_file offered = file_of(f);
		feed_emitted(p, emit_file(p->emit, &offered));
		p->offers_open++;
	}
	p->offer_count = 0;
	/* It is mapped: so COMMAND runs, unless it is held still. */
	p->command_runs |= p->phase != CONNECTING;
	feed_emitted(p, emit_flush(p->emit));
}

void feed_file_needs_rows(void *ctx, struct host_file *f, int fd)
{
	struct prof *p = ctx;

	const struct quarantine_key of = deaths_key(f);

	p->rows_due = p->new_files = true;
	offer(p, f);
	if (deaths_refuse(p, QUARANTINE_ROWS, &of)) {
		closing_give(fd);
		tables_file_none(p->tables, f->slot);
		return;
	}
	(void)rowsrv_request(p->rowsrv, f->slot, fd, &of,
			     (struct str){ .data = f->path, .len = f->path_len });
}

void feed_reopen(void *ctx, uint16_t slot)
{
	struct prof *p = ctx;
	struct host_file *f = host_slot_file(p->host, slot);

	if (f)
		host_want_rows(p->host, f);
}

/* --- samples and what comes between them --- */

static void on_sideband(void *ctx, const struct sideband_event *e)
{
	struct prof *p = ctx;

	if (e->type == SIDEBAND_KSYMBOL) {
		if (p->kallsyms)
			kallsyms_event(p->kallsyms, e);
	} else if (e->type == SIDEBAND_THROTTLE) {
		p->throttled++;
	} else {
		host_event(p->host, e);
	}
}

/* Another cannot be started: the right to is gone. */
static void say_cpus_ended(int wait_status)
{
	static const char lost[] = "cpus that come online later are not sampled";

	if (WIFSIGNALED(wait_status))
		log_warning("%s: prof-cpus was ended by signal %d (%s); start again for them", lost,
			    WTERMSIG(wait_status), strsignal(WTERMSIG(wait_status)));
	else if (WEXITSTATUS(wait_status))
		log_warning("%s: prof-cpus ended with exit status %d; start again for them", lost,
			    WEXITSTATUS(wait_status));
	else
		log_info("%s: kernel.perf_event_paranoid is above 2", lost);
}

void feed_cpus(struct prof *p)
{
	const struct sideband_event unknown = { .type = SIDEBAND_LOST };
	const bool waited = p->cpus.waits;
	uint32_t cpu;
	int sampling, sideband, next;

	while ((next = cpus_next(&p->cpus, &cpu, &sampling, &sideband)) == 0) {
		/* What its old ring still holds. */
		feed_drain(p);
		int r = sideband_cpu(p->sideband, cpu, sideband);
		const int e = loader_cpu(p->loader, cpu, sampling);

		r = r ? r : e;
		if (r)
			log_warning("cpu %u came online, and is not sampled: %s", cpu,
				    strerror(-r));
		else
			log_info("cpu %u came online", cpu);
		/* What processes did there until now: they are looked at again. */
		host_event(p->host, &unknown);
	}
	if (next == -EMFILE && !waited)
		log_warning("a cpu came online, and is not sampled until there is room: %s",
			    strerror(-next));
	if (next == -ENFILE)
		log_warning("a cpu came online, and is not sampled: %s", strerror(-next));
	if (next == -EPIPE)
		say_cpus_ended(p->cpus.wait_status);
}

/* Marks the process and the files of a sample as in use, and asks again for rows that were evicted.
 */
static void touch_files(struct prof *p, const struct sample *s)
{
	const uint64_t *frames = sample_user_frames(s);
	uint16_t before = 0;

	tables_process_touch(p->tables, s->pid, s->time_ns);
	for (unsigned i = 0; i < s->user_frames; i++) {
		const uint16_t slot = (uint16_t)(frames[i] >> SAMPLE_FRAME_SLOT_SHIFT &
						 SAMPLE_FRAME_SLOT_MASK);

		if (slot == before)
			continue;
		before = slot;
		tables_file_touch(p->tables, slot, s->time_ns);
		const enum file_state state = tables_file_state(p->tables, slot);

		if (state != FILE_EVICTED && state != FILE_PENDING)
			continue;
		struct host_file *f = host_slot_file(p->host, slot);
		const uint64_t needs = tables_file_needs(p->tables, slot);

		if (needs)
			limit_again(p, needs, clock_mono_ns());
		if (f && tables_file_again(p->tables, slot)) {
			tables_file_pending(p->tables, slot);
			host_want_rows(p->host, f);
		}
	}
}

/* It ended where rows would have been, but for want of memory. */
static bool lacks_rows(const struct prof *p, const struct sample *s)
{
	return (s->reason == WALK_NO_ROWS || s->reason == WALK_ROWS_PENDING) &&
	       tables_file_lacks(p->tables, s->at_slot);
}

/* What the kernel said before a sample was taken is heard before it is used. */
static void catch_up(struct prof *p, const struct sample *s)
{
	if (s->time_ns > p->drained_ns) {
		sideband_drain(p->sideband, s->time_ns, on_sideband, p);
		p->drained_ns = s->time_ns;
	}
}

/* What is left of a sample that was walked with another program's mappings. */
struct user_less {
	struct sample sample;
	uint64_t kernel[SAMPLE_MAX_KERNEL + 1];
};

static const struct sample *without_user_part(const struct sample *s, struct user_less *ret)
{
	ret->sample = *s;
	/* Within exec it has none of its own any more, and none of the next program's yet. */
	ret->sample.reason = s->flags & SAMPLE_IN_EXEC ? WALK_COMPLETE : WALK_STALE;
	ret->sample.user_frames = ret->sample.items = ret->sample.at_slot = 0;
	memcpy(ret->kernel, sample_words(s), s->kernel_frames * sizeof(uint64_t));
	return &ret->sample;
}

/* The same, cut behind so many user frames. The caller's; NULL: no memory. */
static struct sample *cut_behind(const struct sample *s, unsigned frames)
{
	size_t words = ((size_t)sample_head(s) + frames) * sizeof(uint64_t);
	struct sample *ret = malloc(sizeof(*ret) + words);

	if (!ret)
		return NULL;
	*ret = *s;
	ret->reason = WALK_STALE;
	ret->user_frames = (uint16_t)frames;
	ret->at_slot = 0;
	memcpy(ret + 1, sample_words(s), words);
	return ret;
}

void feed_sample(void *ctx, const struct sample *s)
{
	struct prof *p = ctx;
	struct host_sample_ref ref;

	if (p->phase == FINISHING)
		return;
	touch_files(p, s);
	if (p->stream &&
	    (!p->stream_begun || !bus_connected(p->stream) || outbox_pressed(&p->outbox))) {
		p->queue_full++;
		return;
	}
	p->samples++;
	if (host_sample(p->host, s, &ref)) {
		p->unkept++;
		return;
	}
	struct user_less cut;
	struct sample *shorter = NULL;
	const unsigned hold = host_frames_that_hold(ref.process, s);
	if (s->generation && !host_walked_with(ref.process, s->generation)) {
		s = without_user_part(s, &cut);
	} else if (hold < s->user_frames) {
		shorter = cut_behind(s, hold);
		s = shorter ? shorter : without_user_part(s, &cut);
	}
	p->command_runs |= ref.process->execs || s->pid != p->options.follow;
	struct emit_file exe;
	struct emit_process process = process_of(ref.process, &exe);
	struct emit_thread thread = {
		.def = { .id = ref.thread->id,
			 .process = ref.process->id,
			 .tid = ref.thread->tid,
			 .comm = { .data = ref.thread->comm, .len = ref.thread->comm_len } },
		.sent = &ref.thread->sent,
	};
	enum walk_reason reason = lacks_rows(p, s) ? WALK_MEMORY_LIMIT : s->reason;
	if (reason == WALK_NO_MAPPING && !s->generation &&
	    host_mapped_since(ref.process, s->time_ns))
		reason = WALK_STALE;
	feed_emitted(p, emit_sample(p->emit, s, reason, &process, &thread));
	free(shorter);
}

#define HELD_BYTES (2u << 20) /* of samples that wait for names */

struct held {
	struct held *next;
	struct sample sample; /* and its words */
};

void feed_walked(void *ctx, const struct sample *s)
{
	struct prof *p = ctx;
	size_t words = ((size_t)sample_head(s) + s->user_frames) * sizeof(uint64_t);
	struct held *h = NULL;

	if (p->names_reading && p->held_bytes < HELD_BYTES)
		h = malloc(sizeof(*h) + words);
	if (!h) {
		feed_sample(p, s);
		return;
	}
	h->next = NULL;
	h->sample = *s;
	memcpy(h + 1, sample_words(s), words);
	p->held_bytes += sizeof(*h) + words;
	*(p->held ? p->held_end : &p->held) = h;
	p->held_end = &h->next;
}

/* The names are there. */
static void feed_held(struct prof *p)
{
	while (p->held) {
		struct held *h = p->held;

		p->held = h->next;
		feed_sample(p, &h->sample);
		free(h);
	}
	p->held_bytes = 0;
}

#define FORGET_NS 1000000000ull /* between two times that all of them are copied again */

/* What the kernel's program took of an interpreted frame's object. */
static void on_object(struct prof *p, const struct sample *s)
{
	struct host_sample_ref ref;
	struct record_object keep;
	struct msg_object m;

	if (p->options.memory_none || !record_object(s, &keep, &m))
		return;
	if (p->stream && (!p->stream_begun || outbox_pressed(&p->outbox))) {
		p->objects_lost = true;
		return;
	}
	if (host_sample(p->host, s, &ref) || !memory_may_take(ref.process) ||
	    deaths_refuse_process(p, ref.process->id))
		return;
	m.process = ref.process->id;
	feed_emitted(p, emit_object(p->emit, &m));
}

static void on_sample(void *ctx, const struct sample *s)
{
	struct prof *p = ctx;

	if (s->flags & SAMPLE_OBJECT) {
		catch_up(p, s);
		on_object(p, s);
		return;
	}
	if (s->flags & SAMPLE_ITEMS) {
		deferred_items(p->deferred, s);
		return;
	}
	catch_up(ctx, s);
	feed_sample(ctx, s);
}

/* While the kernel's names are being read: those with frames of it wait for them. */
static void on_early_sample(void *ctx, const struct sample *s)
{
	if (s->flags & SAMPLE_ITEMS || !s->kernel_frames) {
		on_sample(ctx, s);
		return;
	}
	catch_up(ctx, s);
	feed_walked(ctx, s);
}

static void on_deferred(void *ctx, const struct deferred_sample *d)
{
	struct prof *p = ctx;

	catch_up(p, &d->sample);
	deferred_put(p->deferred, d);
}

ssize_t feed_mappings(void *ctx, const struct sample *s, const struct tables_mapping **ret,
		      bool *ret_whole)
{
	struct prof *p = ctx;
	struct host_sample_ref ref;

	if (host_sample(p->host, s, &ref))
		return -ESRCH;
	return host_mappings(p->host, ref.process, s->time_ns, ret, ret_whole);
}

/* Copies that nobody got are made again, once there is somebody, or room. */
static void renew_objects(struct prof *p, uint64_t now)
{
	if (!p->objects_lost || now - p->forgot_ns < FORGET_NS || !p->stream_begun ||
	    outbox_pressed(&p->outbox))
		return;
	p->objects_lost = loader_forget_objects(p->loader) != 0;
	p->forgot_ns = now;
}

void feed_drain(struct prof *p)
{
	uint64_t now = clock_mono_ns();

	if (!p->names_reading)
		feed_held(p);
	renew_objects(p, now);
	loader_drain(p->loader, p->names_reading ? on_early_sample : on_sample, on_deferred, p);
	sideband_drain(p->sideband, now, on_sideband, p);
	p->drained_ns = now;
	tables_tick(p->tables, now);
	host_tick(p->host, now, now);
	deferred_run(p->deferred, now, false);
}

/* --- losses and figures --- */

static void send_loss(struct prof *p, enum lost_reason reason, uint64_t now, uint64_t *sent,
		      uint64_t cpu)
{
	if (now > *sent)
		feed_emitted(p, emit_lost(p->emit, reason, now - *sent, cpu));
	*sent = now;
}

static void tell_put_off(struct prof *p, uint64_t put_off)
{
	const uint64_t now_ns = clock_mono_ns();

	if (put_off == p->put_off || (p->put_off_ns && now_ns < p->put_off_ns + TELL_NS))
		return;
	p->put_off = put_off;
	p->put_off_ns = now_ns;
	log_warning(
		"no descriptor is left to open files with: what starts now has no rows and names until there is; raise fs.file-max, or LimitNOFILE= of the service");
}

void feed_losses(struct prof *p)
{
	struct loader_figures l;
	struct sideband_figures s;
	struct host_figures h;

	loader_figures(p->loader, &l);
	for (unsigned i = 0; i < l.cpus && i < CPUS_MAX; i++)
		send_loss(p, LOST_RING_FULL, loader_ring_full(p->loader, i), &p->ring_full_sent[i],
			  i);
	sideband_figures(p->sideband, &s);
	for (unsigned i = 0; i < s.cpus && i < CPUS_MAX; i++) {
		unsigned cpu = i;
		uint64_t lost = sideband_lost(p->sideband, i, &cpu);

		send_loss(p, LOST_SIDEBAND, lost, &p->sideband_sent[i], cpu);
	}
	host_figures(p->host, &h);
	tell_put_off(p, h.put_off);
	send_loss(p, LOST_SIDEBAND, s.malformed, &p->undecoded_sent, LOST_ANY_CPU);
	send_loss(p, LOST_MALFORMED, loader_malformed(p->loader), &p->malformed_sent, LOST_ANY_CPU);
	send_loss(p, LOST_UNTRACKED, h.limit, &p->untracked_sent, LOST_ANY_CPU);
	send_loss(p, LOST_LIMIT, p->unkept, &p->unkept_sent, LOST_ANY_CPU);
	send_loss(p, LOST_QUEUE_FULL, p->queue_full, &p->queue_full_sent, LOST_ANY_CPU);
	send_loss(p, LOST_THROTTLED, p->throttled, &p->throttled_sent, LOST_ANY_CPU);
}

/* A loss is told once, perhaps to a prof-symd that dies with it: so what the ring had no room for
 * counts, too. */
uint64_t feed_taken(struct prof *p)
{
	struct loader_figures l;

	loader_figures(p->loader, &l);
	return p->samples + p->queue_full + l.ring_full + loader_malformed(p->loader);
}

void feed_figures(struct prof *p)
{
	struct loader_figures l;
	struct tables_figures t;
	struct host_figures h;
	struct rowsrv_figures r;
	struct kallsyms_figures k = { 0 };

	if (p->kallsyms)
		kallsyms_figures(p->kallsyms, &k);
	loader_figures(p->loader, &l);
	tables_figures(p->tables, &t);
	host_figures(p->host, &h);
	rowsrv_figures(p->rowsrv, &r);
	p->status.ticks = l.ticks;
	const struct {
		const char *name;
		uint64_t value;
	} figures[] = {
		{ "bpf_runs", l.runs },
		{ "bpf_ns", l.ns },
		{ "map_bytes", l.map_bytes + t.bytes },
		{ "taken", feed_taken(p) },
		{ "sampled_until", p->sampled_ns ? p->sampled_ns : p->drained_ns },
		{ "rows", t.rows },
		{ "rules", t.rules },
		{ "files", t.files },
		{ "evictions", t.evictions },
		{ "memory_enough", p->limit.enough },
		{ "memory_peak", p->limit.peak },
		{ "memory_export", p->limit.export },
		{ "processes", h.processes },
		{ "files_opened", h.opens },
		{ "rows_answered", r.answered },
		{ "rows_full", r.full },
		{ "routes_failed", p->rows.failures + p->files.failures },
		{ "kernel_names_failed", k.failures },
		{ "quarantined", r.quarantined },
		{ "quarantine_refused", p->quarantine_refused },
	};
	for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++)
		feed_emitted(p, emit_figure(p->emit, figures[i].name, figures[i].value));
}
