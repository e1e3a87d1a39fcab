/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prof-bpf: the one process with privileges. It loads the BPF programs, keeps the tables they read,
 * follows processes and mappings, opens files for others, and sends the raw stream. It parses no
 * file format.
 *
 * One loop, woken by side-band records, by its peers, and by a timer: samples wait in the ring
 * buffer until then, since a wake-up for each costs as much as the walk. Samples and side-band
 * records are handled in the order of their time.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <sys/utsname.h>
#include <unistd.h>
#include "common/bus.h"
#include "common/clock.h"
#include "common/deploy.h"
#include "common/log.h"
#include "tools/prof-bpf/deferred.h"
#include "tools/prof-bpf/emit.h"
#include "tools/prof-bpf/extractor.h"
#include "tools/prof-bpf/filesrv.h"
#include "tools/prof-bpf/host.h"
#include "tools/prof-bpf/kallsyms.h"
#include "tools/prof-bpf/loader.h"
#include "tools/prof-bpf/opener.h"
#include "tools/prof-bpf/options.h"
#include "tools/prof-bpf/outbox.h"
#include "tools/prof-bpf/rowsrv.h"
#include "tools/prof-bpf/sideband.h"
#include "tools/prof-bpf/tables.h"

#define DRAIN_MS 50 /* at 99 Hz; oftener above, since deferred samples are large */
#define DRAIN_MS_MIN 10
#define FIGURES_MS 1000
#define CLOCK_MS 60000
#define INTERN_BYTES (12u << 20)
#define OUTBOX_BYTES (8u << 20)
#define DEFERRED_BYTES (4u << 20)
#define CONNECT_NS 5000000000ull   /* how long the start waits for the peers */
#define ROWS_WAIT_NS 3000000000ull /* and then for the rows of what runs already */
#define CPUS_MAX 1024
#define COALESCE_NS 1000000ull
#define NICENESS (-15)
#define FINISH_NS 60000000000ull /* how long a finished run serves prof-symd */

enum source {
	FROM_TIMER,
	FROM_SIDEBAND,
	FROM_SIGNAL,
	FROM_LIFE,
	FROM_ROWS,
	FROM_ROWS_LANE,
	FROM_FILES,
	FROM_FILES_LANE,
	FROM_STREAM,
	FROM_OPENER
};

/* DRAINING: sampling has ended, and the last samples wait for what they need; FINISHING: the end
 * was sent. */
enum phase { CONNECTING, SAMPLING, DRAINING, FINISHING };

struct prof {
	struct options options;
	struct loader *loader;
	struct sideband *sideband;
	struct tables *tables;
	struct deferred_queue *deferred;
	struct rowsrv *rowsrv;
	struct filesrv *filesrv; /* deployed only */
	struct opener *opener;
	struct host *host;
	struct kallsyms *kallsyms; /* NULL until read */
	struct kallsyms *names;	   /* the reading thread's, until it has ended */
	pthread_t names_thread;
	bool names_reading, names_done;
	int names_result;
	struct emit *emit;
	struct bus *stream; /* deployed only */
	struct outbox outbox;
	struct extractor extractor; /* by hand only */
	struct status status;
	int epoll, timer, signals, output;
	enum phase phase;
	enum end_reason end;
	bool exit_now, failed;
	bool rows_due, files_due; /* something came for those routes, or is to be sent */
	uint64_t since_ns;	  /* of the phase */
	uint64_t tick;
	unsigned drain_ms;
	uint64_t drained_ns; /* side-band records up to here have been handled */
	/* What was said of losses so far, so that only the difference is sent. */
	uint64_t ring_full_sent[CPUS_MAX], sideband_sent[CPUS_MAX];
	uint64_t malformed_sent, limit_sent, queue_full, queue_full_sent, throttled, throttled_sent;
};

/* --- the stream --- */

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
static int on_batch(void *ctx, struct span batch)
{
	struct prof *p = ctx;

	if (!p->stream) {
		int r = write_all(p->output, batch);

		if (r && !p->failed) {
			log_error("%s: %s: what was written so far is a recording that ends there",
				  p->options.output ? p->options.output : "standard output",
				  strerror(-r));
			p->failed = p->exit_now = true;
		}
		return 0;
	}
	return outbox_put(&p->outbox, batch);
}

/* An error in the middle of definitions leaves both sides unsure of what is known: begin anew. */
static void emitted(struct prof *p, int r)
{
	if (r < 0 && p->stream) {
		outbox_reset(&p->outbox);
		(void)emit_restart(p->emit);
	}
}

static bool kernel_name(void *ctx, uint64_t address, struct str *ret_name, struct str *ret_module,
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

static bool slot_file(void *ctx, uint16_t slot, struct emit_file *ret)
{
	struct prof *p = ctx;
	struct host_file *f = host_slot_file(p->host, slot);

	if (f)
		*ret = file_of(f);
	return f != NULL;
}

static struct emit_process process_of(struct host_process *h)
{
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
	};
}

static void process_gone(void *ctx, struct host_process *h)
{
	struct prof *p = ctx;
	struct emit_process gone = process_of(h);

	emitted(p, emit_process_end(p->emit, &gone, h->end_ns));
}

static void file_needs_rows(void *ctx, struct host_file *f, int fd)
{
	struct prof *p = ctx;

	p->rows_due = true;
	(void)rowsrv_request(p->rowsrv, f->slot, fd, f->size,
			     (struct str){ .data = f->path, .len = f->path_len });
}

static void on_quarantine(void *ctx, uint16_t slot, struct str name, const char *why)
{
	struct buf b = BUF_INIT(0);

	if (log_escape(&b, name, 256) == 0)
		log_warning("%.*s: has no unwind rows: %s", (int)b.len, (const char *)b.data, why);
	buf_done(&b);
}

/* --- files for prof-symd --- */

struct wanted {
	struct prof *p;
	uint64_t ticket;
};

static void opened(void *ctx, const struct opener_result *r)
{
	struct wanted *w = ctx;
	int status = r->status < 0		   ? -r->status
		     : r->status == OPENER_TIMEOUT ? ETIMEDOUT
		     : r->status		   ? ENOENT
						   : 0;

	filesrv_answer(w->p->filesrv, w->ticket, r->fd, status, r->file.size);
	free(w);
}

static struct wanted *wanted_new(struct prof *p, uint64_t ticket)
{
	struct wanted *w = malloc(sizeof(*w));

	if (w)
		*w = (struct wanted){ .p = p, .ticket = ticket };
	return w;
}

static void refused(struct wanted *w, struct prof *p, uint64_t ticket, int r)
{
	if (!r)
		return;
	free(w);
	filesrv_answer(p->filesrv, ticket, -1, -r, 0);
}

static void want_file(void *ctx, uint64_t ticket, const struct msg_file_request *m)
{
	struct prof *p = ctx;
	struct host_file *f = m->file <= UINT32_MAX ? host_file(p->host, (uint32_t)m->file) : NULL;
	struct wanted *w = wanted_new(p, ticket);

	refused(w, p, ticket, !w ? -ENOMEM : !f ? -ENOENT : host_open(p->host, f, opened, w));
}

static void want_debug(void *ctx, uint64_t ticket, const struct msg_debug_request *m)
{
	struct prof *p = ctx;
	struct host_file *f = m->file <= UINT32_MAX ? host_file(p->host, (uint32_t)m->file) : NULL;
	struct wanted *w = wanted_new(p, ticket);

	refused(w, p, ticket,
		!w   ? -ENOMEM
		: !f ? -ENOENT
		     : host_open_debug(p->host, f, m->build_id, m->name, opened, w));
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

/* Marks the files of a sample as in use, and asks again for rows that were evicted. */
static void touch_files(struct prof *p, const struct sample *s)
{
	const uint64_t *frames = sample_frames(s) + s->kernel_frames;

	for (unsigned i = 0; i < s->user_frames; i++)
		tables_file_touch(
			p->tables,
			(uint16_t)(frames[i] >> SAMPLE_FRAME_SLOT_SHIFT & SAMPLE_FRAME_SLOT_MASK),
			s->time_ns);
	if (s->reason != WALK_ROWS_PENDING ||
	    tables_file_state(p->tables, s->at_slot) != FILE_EVICTED)
		return;
	struct host_file *f = host_slot_file(p->host, s->at_slot);
	if (f) {
		tables_file_pending(p->tables, s->at_slot);
		host_want_rows(p->host, f);
	}
}

/* What the kernel said before a sample was taken is heard before it is used. */
static void catch_up(struct prof *p, const struct sample *s)
{
	if (s->time_ns > p->drained_ns) {
		sideband_drain(p->sideband, s->time_ns, on_sideband, p);
		p->drained_ns = s->time_ns;
	}
}

static void send_sample(void *ctx, const struct sample *s)
{
	struct prof *p = ctx;
	struct host_sample_ref ref;

	if (p->phase == FINISHING)
		return;
	touch_files(p, s);
	if (p->stream && (!bus_connected(p->stream) || outbox_pressed(&p->outbox))) {
		p->queue_full++;
		return;
	}
	if (host_sample(p->host, s, &ref))
		return;
	struct emit_file exe;
	struct emit_process process = process_of(ref.process);
	struct emit_thread thread = {
		.def = { .id = ref.thread->id,
			 .process = ref.process->id,
			 .tid = ref.thread->tid,
			 .comm = { .data = ref.thread->comm, .len = ref.thread->comm_len } },
		.sent = &ref.thread->sent,
	};
	if (ref.process->exe) {
		exe = file_of(ref.process->exe);
		process.exe = &exe;
	}
	emitted(p, emit_sample(p->emit, s, &process, &thread));
}

static void on_sample(void *ctx, const struct sample *s)
{
	catch_up(ctx, s);
	send_sample(ctx, s);
}

static void on_deferred(void *ctx, const struct deferred_sample *d)
{
	struct prof *p = ctx;

	catch_up(p, &d->sample);
	deferred_put(p->deferred, d);
}

static ssize_t mappings_of(void *ctx, const struct sample *s, const struct tables_mapping **ret,
			   bool *ret_whole)
{
	struct prof *p = ctx;
	struct host_sample_ref ref;

	if (host_sample(p->host, s, &ref))
		return -ESRCH;
	return host_mappings(p->host, ref.process, ret, ret_whole);
}

static void drain(struct prof *p)
{
	uint64_t now = clock_mono_ns();

	/* Samples wait in the ring for the names of their kernel frames, at the start. */
	if (!p->names_reading)
		loader_drain(p->loader, on_sample, on_deferred, p);
	sideband_drain(p->sideband, now, on_sideband, p);
	p->drained_ns = now;
	host_tick(p->host, now);
	deferred_run(p->deferred, now, false);
}

/* --- losses and figures --- */

static void send_loss(struct prof *p, enum lost_reason reason, uint64_t now, uint64_t *sent,
		      uint64_t cpu)
{
	if (now > *sent)
		emitted(p, emit_lost(p->emit, reason, now - *sent, cpu));
	*sent = now;
}

static void send_losses(struct prof *p)
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
	send_loss(p, LOST_MALFORMED, loader_malformed(p->loader) + s.malformed, &p->malformed_sent,
		  LOST_ANY_CPU);
	send_loss(p, LOST_LIMIT, h.limit, &p->limit_sent, LOST_ANY_CPU);
	send_loss(p, LOST_QUEUE_FULL, p->queue_full, &p->queue_full_sent, LOST_ANY_CPU);
	send_loss(p, LOST_THROTTLED, p->throttled, &p->throttled_sent, LOST_ANY_CPU);
}

static void send_figures(struct prof *p)
{
	struct loader_figures l;
	struct tables_figures t;
	struct host_figures h;
	struct rowsrv_figures r;

	loader_figures(p->loader, &l);
	tables_figures(p->tables, &t);
	host_figures(p->host, &h);
	rowsrv_figures(p->rowsrv, &r);
	const struct {
		const char *name;
		uint64_t value;
	} figures[] = {
		{ "bpf_runs", l.runs },
		{ "bpf_ns", l.ns },
		{ "map_bytes", l.map_bytes + t.bytes },
		{ "rows", t.rows },
		{ "rules", t.rules },
		{ "files", t.files },
		{ "evictions", t.evictions },
		{ "processes", h.processes },
		{ "files_opened", h.opens },
		{ "rows_answered", r.answered },
		{ "rows_full", r.full },
		{ "quarantined", r.quarantined },
	};
	for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++)
		emitted(p, emit_figure(p->emit, figures[i].name, figures[i].value));
}

/* --- phases --- */

static void enter(struct prof *p, enum phase phase)
{
	p->phase = phase;
	p->since_ns = clock_mono_ns();
}

/* Reading the kernel's names takes a tenth of a second, which the tables of new processes cannot
 * wait for. */
static void *read_names(void *ctx)
{
	struct prof *p = ctx;

	p->names_result = kallsyms_new(&(struct kallsyms_config){ 0 }, &p->names);
	__atomic_store_n(&p->names_done, true, __ATOMIC_RELEASE);
	return NULL;
}

/* Takes the names over once they are there, or waits for them. */
static void take_names(struct prof *p, bool wait)
{
	if (!p->names_reading || !(wait || __atomic_load_n(&p->names_done, __ATOMIC_ACQUIRE)))
		return;
	pthread_join(p->names_thread, NULL);
	p->names_reading = false;
	p->kallsyms = p->names;
	if (p->names_result)
		log_warning("/proc/kallsyms: %s: kernel functions have no names",
			    strerror(-p->names_result));
}

static void start_sampling(struct prof *p)
{
	int r = loader_start(p->loader);

	if (r) {
		log_error("sampling cannot begin: %s; needs CAP_PERFMON and CAP_BPF", strerror(-r));
		p->failed = p->exit_now = true;
		return;
	}
	enter(p, SAMPLING);
	deploy_status(&p->options.deploy, &p->status, STATUS_READY);
	if (pthread_create(&p->names_thread, NULL, read_names, p) == 0)
		p->names_reading = true;
	else
		log_warning(
			"no thread to read /proc/kallsyms with: kernel functions have no names");
}

/* Everybody is there, and the rows of what runs already have come; or enough was waited for. */
static void try_start(struct prof *p)
{
	uint64_t waited = clock_mono_ns() - p->since_ns;
	bool connected = rowsrv_connected(p->rowsrv) && (!p->stream || bus_connected(p->stream));

	if (connected &&
	    ((host_settled(p->host) && rowsrv_idle(p->rowsrv)) || waited > ROWS_WAIT_NS)) {
		start_sampling(p);
	} else if (waited > CONNECT_NS) {
		log_error("%s is not there after %d s",
			  rowsrv_connected(p->rowsrv) ? "prof-symd" : "prof-deltas",
			  (int)(CONNECT_NS / 1000000000));
		p->failed = p->exit_now = true;
	}
}

/* Everything was drained, or enough was waited for: the end of the stream. */
static void conclude(struct prof *p)
{
	deferred_run(p->deferred, clock_mono_ns(), true);
	send_losses(p);
	send_figures(p);
	enter(p, FINISHING);
	int r = emit_end(p->emit, p->end);
	if (r && r != -ENOTCONN)
		log_warning("the end of the stream could not be sent: %s", strerror(-r));
	if (!p->stream)
		p->exit_now = true;
}

static void finish(struct prof *p, enum end_reason reason)
{
	if (p->phase >= DRAINING)
		return;
	p->end = reason;
	if (p->phase == SAMPLING) {
		loader_stop(p->loader);
		take_names(p, true);
		drain(p);
	}
	enter(p, DRAINING);
	if (deferred_empty(p->deferred))
		conclude(p);
}

static bool followed_are_gone(struct prof *p)
{
	struct host_figures h;

	if (!p->options.follow && !p->options.pid_count)
		return false;
	host_figures(p->host, &h);
	return h.processes == 0;
}

static void on_timer(struct prof *p)
{
	uint64_t expirations, now = clock_mono_ns();

	if (read(p->timer, &expirations, sizeof(expirations)) < 0)
		return;
	p->tick++;
	opener_run(p->opener, now);
	tables_tick(p->tables, now);
	if (p->kallsyms)
		(void)kallsyms_tick(p->kallsyms, now);
	if (p->phase == DRAINING) {
		drain(p);
		if (deferred_empty(p->deferred) || now - p->since_ns > DEFERRED_PATIENCE_NS)
			conclude(p);
	}
	if (p->phase != SAMPLING)
		return;
	take_names(p, false);
	drain(p);
	if (p->tick % (FIGURES_MS / p->drain_ms) == 0) {
		send_losses(p);
		send_figures(p);
		deploy_status(&p->options.deploy, &p->status, STATUS_RUNNING);
	}
	if (p->tick % (CLOCK_MS / p->drain_ms) == 0)
		emitted(p, emit_clock(p->emit));
	emitted(p, emit_flush(p->emit));
	if (p->options.seconds > 0 && (double)(now - p->since_ns) >= p->options.seconds * 1e9)
		finish(p, END_DONE);
	else if (followed_are_gone(p))
		finish(p, END_DONE);
}

/* prof-symd came, went, or has room again. */
static void on_stream(struct prof *p)
{
	struct buf nothing = BUF_INIT(4096);

	for (;;) {
		int r = bus_recv(p->stream, &nothing);

		if (r == BUS_PEER_CAME) {
			outbox_reset(&p->outbox);
			emitted(p, emit_restart(p->emit));
		} else if (r == BUS_PEER_WENT) {
			outbox_reset(&p->outbox);
			/* It has taken the end of the stream, and everything before it. */
			if (p->phase == FINISHING)
				p->exit_now = true;
		} else if (r) {
			break;
		}
	}
	buf_done(&nothing);
}

static void on_signal(struct prof *p)
{
	struct signalfd_siginfo si;

	if (read(p->signals, &si, sizeof(si)) == sizeof(si)) {
		if (p->phase == CONNECTING)
			p->exit_now = true;
		finish(p, END_KILLED);
	}
}

static void on_life(struct prof *p)
{
	char byte;
	ssize_t n = read(p->options.deploy.life_fd, &byte, 1);

	if (n == 1 && byte == 'S')
		finish(p, END_KILLED);
	else if (n == 0)
		p->exit_now = true;
}

static void failed_route(struct prof *p, const char *route, int r)
{
	if (!r)
		return;
	log_error("the %s route failed: %s", route, strerror(-r));
	p->failed = p->exit_now = true;
}

static void pause_until(uint64_t then_ns)
{
	uint64_t now = clock_mono_ns();

	if (now < then_ns)
		usleep((useconds_t)((then_ns - now) / 1000));
}

static void handle(struct prof *p, enum source from)
{
	p->rows_due |= from == FROM_TIMER || from == FROM_ROWS || from == FROM_ROWS_LANE;
	p->files_due |= from == FROM_TIMER || from == FROM_FILES || from == FROM_FILES_LANE ||
			from == FROM_OPENER;
	switch (from) {
	case FROM_TIMER:
		on_timer(p);
		break;
	case FROM_SIDEBAND:
		/* A wake-up costs more than the records it is for: those of a millisecond are taken
		 * together. */
		pause_until(p->drained_ns + COALESCE_NS);
		drain(p);
		break;
	case FROM_SIGNAL:
		on_signal(p);
		break;
	case FROM_LIFE:
		on_life(p);
		break;
	case FROM_STREAM:
		on_stream(p);
		break;
	case FROM_OPENER:
		opener_run(p->opener, clock_mono_ns());
		host_tick(p->host, clock_mono_ns());
		break;
	default:
		break;
	}
}

static void loop(struct prof *p)
{
	struct epoll_event events[16];

	while (!p->exit_now) {
		int n = epoll_wait(p->epoll, events, 16, -1);

		for (int i = 0; i < n; i++)
			handle(p, (enum source)events[i].data.u32);
		if (p->rows_due) {
			p->rows_due = false;
			failed_route(p, "rows", rowsrv_run(p->rowsrv, clock_mono_ns()));
		}
		if (p->filesrv && p->files_due) {
			p->files_due = false;
			failed_route(p, "files", filesrv_run(p->filesrv));
		}
		if (p->stream)
			(void)outbox_run(&p->outbox);
		if (p->phase == CONNECTING)
			try_start(p);
		if (p->phase == FINISHING && clock_mono_ns() - p->since_ns > FINISH_NS)
			p->exit_now = true;
	}
}

/* --- the start --- */

static int watch(struct prof *p, int fd, enum source from)
{
	struct epoll_event e = { .events = EPOLLIN, .data.u32 = from };

	return epoll_ctl(p->epoll, EPOLL_CTL_ADD, fd, &e) < 0 ? -errno : 0;
}

static int fail(const char *what, int r, const char *remedy)
{
	log_error("%s: %s%s%s", what, strerror(-r), *remedy ? "; " : "", remedy);
	return r;
}

#define REMEDY_PERF \
	"run as root, or with CAP_PERFMON and CAP_BPF; kernel.perf_event_paranoid above 2 asks for CAP_SYS_ADMIN"

/* What needs more than the tool will have: perf events, and by hand the output. */
static int open_privileged(struct prof *p)
{
	const struct loader_config c = { .hz = p->options.hz,
					 .only_selected = p->options.follow || p->options.pid_count,
					 .follow_forks = p->options.follow != 0 };
	int r = loader_new(&c, &p->loader);

	if (r)
		return fail("the sampling events cannot be opened", r, REMEDY_PERF);
	r = sideband_new(SIDEBAND_RING_BYTES, -1, &p->sideband);
	if (r)
		return fail("the side-band events cannot be opened", r, REMEDY_PERF);
	/* On a busy host the tables are to follow an exec within microseconds, and side-band
	 * records must not pile up. Where that is not allowed, it goes without. */
	(void)setpriority(PRIO_PROCESS, 0, NICENESS);
	if (p->options.deploy.run_dir)
		return 0;
	p->output = STDOUT_FILENO;
	if (p->options.output) {
		p->output = open(p->options.output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
		if (p->output < 0)
			return fail(p->options.output, -errno, "name a file that can be written");
	} else if (isatty(STDOUT_FILENO)) {
		log_error("the stream is not for terminals: use -o FILE, or a pipe to prof-symd");
		return -EINVAL;
	}
	return 0;
}

static int load_bpf(struct prof *p)
{
	struct tables_config c = { .max_bytes = p->options.table_bytes };
	int r = loader_load(p->loader);

	if (r) {
		log_error(
			"the BPF programs cannot be loaded: %s (%s); needs CAP_BPF and CAP_PERFMON, and a kernel of 5.10 or later with BTF",
			strerror(-r), loader_trouble(p->loader));
		return r;
	}
	loader_tables(p->loader, &c);
	r = tables_new(&c, &p->tables);
	if (!r) {
		const struct deferred_config d = { .tables = p->tables,
						   .ceiling = DEFERRED_BYTES,
						   .mappings = mappings_of,
						   .emit = send_sample,
						   .ctx = p };

		r = deferred_new(&d, &p->deferred);
	}
	return r ? fail("the unwind tables cannot be made", r, "") : 0;
}

static int open_routes(struct prof *p, const char *run_dir)
{
	const struct deploy *d = &p->options.deploy;
	const struct rowsrv_config rows = { .run_dir = run_dir,
					    .peer = d->uid[DEPLOY_DELTAS],
					    .tables = p->tables,
					    .on_quarantine = on_quarantine,
					    .ctx = p };
	int r = rowsrv_new(&rows, &p->rowsrv);

	if (!r && d->run_dir) {
		const struct filesrv_config files = { .run_dir = run_dir,
						      .peer = d->uid[DEPLOY_SYMD],
						      .want_file = want_file,
						      .want_debug = want_debug,
						      .ctx = p };

		r = filesrv_new(&files, &p->filesrv);
		if (!r)
			r = bus_listen(BUS_STREAM, run_dir, d->uid[DEPLOY_SYMD], &p->stream);
		p->outbox = (struct outbox){ .bus = p->stream, .max = OUTBOX_BYTES };
	}
	return r ? fail(run_dir, r, "the sockets of the run are made here") : 0;
}

static int open_host(struct prof *p)
{
	const struct deploy *d = &p->options.deploy;
	const struct host_config c = {
		.tables = p->tables,
		.opener = p->opener,
		.proc = "/proc",
		.only_selected = p->options.follow || p->options.pid_count,
		.follow_forks = p->options.follow != 0,
		.self_uids = d->uid,
		.self_uid_count = d->ids_given ? DEPLOY_TOOLS : 0,
		.file_needs_rows = file_needs_rows,
		.process_gone = process_gone,
		.ctx = p,
	};
	int r = host_new(&c, &p->host);

	if (r)
		return fail("the host cannot be followed", r, "");
	host_mark_self(p->host, (uint32_t)getpid());
	if (p->extractor.pid)
		host_mark_self(p->host, (uint32_t)p->extractor.pid);
	for (size_t i = 0; i < p->options.pid_count; i++) {
		if (host_select(p->host, p->options.pids[i])) {
			log_error("-p %u: there is no such process", p->options.pids[i]);
			return -ESRCH;
		}
	}
	if (p->options.follow && host_select(p->host, p->options.follow)) {
		log_error("--follow %u: there is no such process", p->options.follow);
		return -ESRCH;
	}
	r = host_scan(p->host);
	return r ? fail("/proc", r, "it has to be mounted and readable") : 0;
}

static int open_emit(struct prof *p)
{
	static struct utsname u;

	uname(&u);
	struct emit_config c = {
		.hello = { .producer = STR_LIT("profpipe " PROFPIPE_VERSION),
			   .arch = str_from(u.machine),
			   .kernel = str_from(u.release),
			   .hostname = str_from(u.nodename),
			   .cpus = (uint64_t)sysconf(_SC_NPROCESSORS_ONLN),
			   .event = str_from(loader_event(p->loader)),
			   .hz = p->options.hz,
			   .period = loader_period(p->loader),
			   .unit = str_from(loader_unit(p->loader)) },
		.ceiling = INTERN_BYTES,
		.flush = on_batch,
		.file = slot_file,
		.kernel = kernel_name,
		.ctx = p,
	};
	int r = emit_new(&c, &p->emit);

	/* By hand there is one receiver from the start. */
	if (!r && !p->stream)
		r = emit_restart(p->emit);
	return r ? fail("the stream cannot be begun", r, "") : 0;
}

static int open_loop(struct prof *p)
{
	sigset_t set;

	p->drain_ms = DRAIN_MS * 100 / p->options.hz;
	p->drain_ms = p->drain_ms > DRAIN_MS	   ? DRAIN_MS
		      : p->drain_ms < DRAIN_MS_MIN ? DRAIN_MS_MIN
						   : p->drain_ms;
	const struct timespec interval = { .tv_nsec = p->drain_ms * 1000000l };
	const struct itimerspec every = { .it_interval = interval, .it_value = interval };

	p->epoll = epoll_create1(EPOLL_CLOEXEC);
	p->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	p->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (p->epoll < 0 || p->timer < 0 || p->signals < 0 ||
	    timerfd_settime(p->timer, 0, &every, NULL) < 0)
		return fail("the loop cannot be set up", -errno, "");
	int r = watch(p, p->timer, FROM_TIMER);
	if (!r)
		r = watch(p, p->signals, FROM_SIGNAL);
	if (!r)
		r = watch(p, sideband_fd(p->sideband), FROM_SIDEBAND);
	if (!r)
		r = watch(p, opener_fd(p->opener), FROM_OPENER);
	if (!r)
		r = watch(p, rowsrv_bus_fd(p->rowsrv), FROM_ROWS);
	if (!r)
		r = watch(p, rowsrv_lane_fd(p->rowsrv), FROM_ROWS_LANE);
	if (!r && p->stream)
		r = watch(p, bus_fd(p->stream), FROM_STREAM);
	if (!r && p->filesrv)
		r = watch(p, filesrv_bus_fd(p->filesrv), FROM_FILES);
	if (!r && p->filesrv)
		r = watch(p, filesrv_lane_fd(p->filesrv), FROM_FILES_LANE);
	if (!r && p->options.deploy.life_fd >= 0)
		r = watch(p, p->options.deploy.life_fd, FROM_LIFE);
	return r ? fail("the loop cannot be set up", r, "") : 0;
}

static int set_up(struct prof *p)
{
	struct sandbox sandbox = { .caps = SANDBOX_BPF_CAPS, .max_files = 4096 };
	const char *run_dir = p->options.deploy.run_dir;
	int r = open_privileged(p);

	if (!r && !run_dir) {
		r = extractor_folder(&p->extractor);
		if (r)
			return fail("/run", r, "a folder for sockets is made there, or in /tmp");
		run_dir = p->extractor.dir;
	}
	/* By hand the tool stays who it is; in the deployment it is its own user from here on. */
	if (!r && p->options.deploy.run_dir)
		r = deploy_enter(&p->options.deploy, DEPLOY_BPF, &sandbox);
	if (!r)
		r = load_bpf(p);
	if (!r)
		r = open_routes(p, run_dir);
	if (!r && !p->options.deploy.run_dir) {
		r = extractor_start(&p->extractor);
		if (r)
			fail("prof-deltas", r, "it should stand beside prof-bpf");
	}
	if (!r) {
		r = opener_new("/proc", &p->opener);
		if (r)
			fail("/proc", r, "it has to be mounted");
	}
	if (!r)
		r = open_host(p);
	if (!r)
		r = open_emit(p);
	if (!r)
		r = open_loop(p);
	return r;
}

static void tear_down(struct prof *p)
{
	take_names(p, true);
	if (p->tables) {
		deferred_free(p->deferred);
		host_free(p->host);
		emit_free(p->emit);
		kallsyms_free(p->kallsyms);
		opener_free(p->opener);
		filesrv_free(p->filesrv);
		bus_free(p->stream);
		outbox_reset(&p->outbox);
		rowsrv_free(p->rowsrv);
		tables_free(p->tables);
	}
	sideband_free(p->sideband);
	loader_free(p->loader);
	extractor_stop(&p->extractor);
}

int main(int argc, char **argv)
{
	static struct prof p;
	sigset_t set;

	log_init("prof-bpf", LOG_WARNING);
	int r = options_parse(argc, argv, &p.options);
	if (r >= 0)
		return r;
	log_init("prof-bpf", p.options.verbose ? LOG_INFO : LOG_WARNING);
	signal(SIGPIPE, SIG_IGN);
	/* Before any thread is started: all of them inherit it, and signals come through the loop.
	 */
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	p.since_ns = clock_mono_ns();

	r = set_up(&p);
	if (!r) {
		p.since_ns = clock_mono_ns();
		loop(&p);
	}
	bool failed = r || p.failed;
	deploy_status(&p.options.deploy, &p.status, failed ? STATUS_FAILED : STATUS_DONE);
	tear_down(&p);
	return failed ? 1 : 0;
}
