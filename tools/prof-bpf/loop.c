/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loop, woken by side-band records, by peers, and by a timer. Samples wait in the ring buffers
 * until the timer fires, since a wake-up for each would cost as much as its walk. Side-band records
 * wake it within milliseconds, for the sake of new processes (gathering.h).
 *
 * The stream is flushed once a second, or at the next timer tick if prof-symd will need to open
 * something.
 */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/numbers.h"
#include "tools/prof-bpf/open/closing.h"
#include "tools/prof-bpf/prof.h"
#include "tools/prof-bpf/stream/definitions.h"

#define FIGURES_NS 1000000000ull
#define FLUSH_NS 1000000000ull
#define CLOCK_NS 60000000000ull
#define CONNECT_NS 20000000000ull /* how long the start waits for the peers */
/* And how long it then waits for files that are already mapped. Later rows still help deferred
 * samples. Until interpreters are described, their frames are native ones. */
#define ROWS_WAIT_NS 200000000ull
#define OFFERS_WAIT_NS 1000000000ull
#define CHOSEN_WAIT_NS 5000000000ull /* likewise, for files of the chosen programs */
#define HEARD_WAIT_NS 5000000000ull  /* and for prof-export to take prof-bpf's word */
#define COMMAND_NS 200000000ull	     /* time for the command to exec; not needed by hand */
#define EVENTS_AT_ONCE 8
#define HURRIED_TURNS 3	      /* early timer ticks after a new file */
#define HURRY_NS 100000000ull /* one per this time, and a burst: new files may never end */
#define HURRY_BURST 8
#define CHOSEN_FILES 512
#define FINISH_NS 60000000000ull /* how long a finished run serves prof-symd */

static void enter(struct prof *p, enum prof_phase phase)
{
	p->phase = phase;
	p->since_ns = clock_mono_ns();
}

/* Whether files mapped now belong to the programs that the run is about. Before sampling begins,
 * only their files are offered. */
static bool is_chosen(const struct prof *p)
{
	return p->phase == PROF_CONNECTING && (p->options.follow || p->options.sampling.pid_count);
}

/* Interpreters, and files of the chosen programs, get their rows before the first sample. */
bool loop_file_known(void *ctx, struct host_file *f)
{
	struct prof *p = ctx;
	const bool chosen = is_chosen(p) && p->chosen_files < CHOSEN_FILES;

	p->hurry.new_files = true;
	p->chosen_files += chosen;
	offers_add(&p->offers, f, is_chosen(p), clock_mono_ns());
	return chosen || f->offered;
}

void loop_file_needs_rows(void *ctx, struct host_file *f, int fd)
{
	struct prof *p = ctx;
	const struct quarantine_key of = parser_deaths_key(f);

	p->rows.due = p->hurry.new_files = true;
	if (parser_deaths_refuse(&p->deaths, QUARANTINE_ROWS, &of)) {
		closing_give(fd);
		tables_file_none(p->tables, f->slot);
		return;
	}
	(void)row_server_request(p->row_server, f->slot, fd, &of,
				 (struct str){ .data = f->path, .len = f->path_len },
				 host_file_owner(f));
}

void loop_file_gone(void *ctx, struct host_file *f)
{
	struct prof *p = ctx;

	if (!p->output.emit)
		return;
	const struct emit_file gone = definition_of_file(f);

	output_emitted(&p->output, emit_file_end(p->output.emit, &gone));
}

static void send_offers(struct prof *p)
{
	uint32_t id;

	if (!p->offers.count || !output_peer_takes(&p->output))
		return;
	while ((id = offers_take(&p->offers)) != 0) {
		struct host_file *f = host_file(p->host, id);

		if (!f)
			continue;
		const struct emit_file offered = definition_of_file(f);
		output_emitted(&p->output, emit_file(p->output.emit, &offered));
		offers_sent(&p->offers);
	}
	/* The command has mapped it, so it runs, unless it is still held. */
	p->samples.command_runs |= p->phase != PROF_CONNECTING;
	output_emitted(&p->output, emit_flush(p->output.emit));
}

void loop_process_gone(void *ctx, struct host_process *h)
{
	struct prof *p = ctx;
	struct emit_file exe;

	/* While prof-bpf starts, on a host with more processes than it keeps: it was not sent to
	 * anybody. */
	if (!p->output.emit)
		return;
	struct emit_process gone = definition_of_process(h, &exe);

	output_emitted(&p->output, emit_process_end(p->output.emit, &gone, h->end_ns));
}

void loop_attributes_known(void *ctx, struct host_process *h)
{
	struct prof *p = ctx;

	if (p->output.emit)
		samples_send_attributes(&p->samples, h);
}

void loop_thread_gone(void *ctx, struct host_thread *t)
{
	struct prof *p = ctx;
	struct emit_file exe;
	struct emit_process of = definition_of_process(t->process, &exe);
	struct emit_thread gone = definition_of_thread(t);

	output_emitted(&p->output, emit_thread_end(p->output.emit, &of, &gone));
}

bool loop_is_wanted(void *ctx, uint32_t pid, uint64_t exec_ns)
{
	const struct prof *p = ctx;

	return loader_wants(p->loader, pid, exec_ns);
}

static void send_process(void *ctx, struct host_process *h)
{
	struct prof *p = ctx;
	struct emit_file exe;
	struct emit_process changed = definition_of_process(h, &exe);

	output_emitted(&p->output, emit_process(p->output.emit, &changed));
}

/* A new prof-cpus cannot be started, since prof-bpf no longer has the right. */
static void log_cpus_ended(int wait_status)
{
	static const char lost[] = "cpus that come online later are not sampled";

	if (WIFSIGNALED(wait_status))
		log_warning("%s: signal %d (%s) ended prof-cpus; restart profpipe to sample them",
			    lost, WTERMSIG(wait_status), strsignal(WTERMSIG(wait_status)));
	else if (WEXITSTATUS(wait_status))
		log_warning("%s: prof-cpus ended with exit status %d; restart profpipe to sample "
			    "them",
			    lost, WEXITSTATUS(wait_status));
	else
		log_info("%s: kernel.perf_event_paranoid is above 2", lost);
}

/* Samples and follows cpus that have come online. */
static void take_cpus(struct prof *p)
{
	const struct sideband_event unknown = { .type = SIDEBAND_LOST };
	const bool waited = p->cpus.waits;
	uint32_t cpu;
	int sampling, sideband, next;

	while ((next = cpus_next(&p->cpus, &cpu, &sampling, &sideband)) == 0) {
		/* Drain what the cpu's old ring still holds. */
		samples_drain(&p->samples);
		int r = sideband_cpu(p->sideband, cpu, sideband);
		const int e = loader_cpu(p->loader, cpu, sampling);

		r = r ? r : e;
		if (r)
			log_warning("cpu %u came online but is not sampled: %s", cpu, strerror(-r));
		else
			log_info("cpu %u came online", cpu);
		/* Events on that cpu until now are unknown, so read the processes again. */
		host_event(p->host, &unknown);
	}
	if (next == -EMFILE && !waited)
		log_warning("a cpu came online but is not sampled until descriptors are free: %s",
			    strerror(-next));
	if (next == -ENFILE)
		log_warning("a cpu came online but is not sampled: %s", strerror(-next));
	if (next == -EPIPE)
		log_cpus_ended(p->cpus.wait_status);
}

static void start_sampling(struct prof *p)
{
	int r = p->paused ? 0 : loader_start(p->loader);

	if (r) {
		log_error("sampling cannot begin: %s; this needs CAP_PERFMON and CAP_BPF",
			  strerror(-r));
		p->failed = p->exit_now = true;
		return;
	}
	testimony_begin(&p->testimony);
	enter(p, PROF_SAMPLING);
	p->sent.flushed_ns = p->sampling_ns = p->since_ns;
	output_emitted(&p->output, emit_figure(p->output.emit, "sampling_since", p->sampling_ns));
	deploy_status(&p->options.deploy, &p->status, STATUS_READY);
}

/* Starts sampling once all peers are connected. It then waits for the rows of mapped files, for
 * reports on their interpreters, and until prof-export can check samples, but only for a limited
 * time. */
static void try_start(struct prof *p)
{
	const uint64_t now = clock_mono_ns();
	const bool connected = row_server_connected(p->row_server) &&
			       output_has_receiver(&p->output);

	if (!connected)
		p->connected_ns = 0;
	else if (!p->connected_ns)
		p->connected_ns = now;
	if (!testimony_ready(&p->testimony))
		testimony_repeat(&p->testimony);
	if (connected) {
		const uint64_t waited = now - p->connected_ns;
		const bool rows = host_settled(p->host) && row_server_idle(p->row_server),
			   offers = offers_idle(&p->offers);

		if ((testimony_ready(&p->testimony) || waited > HEARD_WAIT_NS) &&
		    (rows || waited > ROWS_WAIT_NS) &&
		    (offers || waited > (is_chosen(p) ? CHOSEN_WAIT_NS : OFFERS_WAIT_NS)))
			start_sampling(p);
	} else if (now - p->since_ns > CONNECT_NS) {
		log_error("%s did not connect within %d s; see its own messages",
			  row_server_connected(p->row_server) ? "prof-symd" : "prof-deltas",
			  (int)(CONNECT_NS / 1000000000));
		p->again = p->output.bus != NULL;
		p->failed = p->exit_now = true;
	}
}

/* If the output has no room for the end, or there is no memory, it is sent at a later tick. */
static void put_end(struct prof *p)
{
	p->sent.end_breaks = p->output.breaks;
	p->sent.end_due = emit_end(p->output.emit, p->end) != 0;
}

/* Sends what was lost, the figures and the end of the stream; again, if that may have been lost. */
static void send_end(struct prof *p)
{
	/* Without a receiver the losses wait for the next one. */
	if (output_has_receiver(&p->output))
		losses_send(&p->losses);
	figures_send(p);
	testimony_tell(&p->testimony, &p->losses, figures_taken(p), true);
	put_end(p);
}

/* Everything was drained, or the time is over. */
static void conclude(struct prof *p)
{
	deferred_run(p->deferred, clock_mono_ns(), true);
	/* Those that changed after they were sent. */
	host_each_process(p->host, send_process, p);
	enter(p, PROF_FINISHING);
	p->samples.ended = true;
	send_end(p);
	if (p->sent.end_due && !p->output.bus)
		log_warning("the recording has no end: out of memory; it is usable, but called cut "
			    "short; leave prof-bpf more memory");
	/* Nobody is there to take the end. With a launcher, another prof-symd may come until the
	 * launcher says otherwise. */
	if (!p->output.bus || (!p->output.has_peer && p->options.deploy.life_fd < 0))
		p->exit_now = true;
}

static void finish_sending(struct prof *p)
{
	if (!p->output.has_peer)
		return;
	if (p->sent.end_breaks != p->output.breaks)
		send_end(p);
	else if (p->sent.end_due)
		put_end(p);
}

/* How long prof-deltas and prof-symd rest. */
static void rest(struct prof *p, uint64_t ms)
{
	row_server_rest(p->row_server, ms);
	if (p->file_server)
		file_server_rest(p->file_server, ms);
}

static void finish(struct prof *p, enum end_reason reason)
{
	if (p->phase >= PROF_DRAINING)
		return;
	p->end = reason;
	rest(p, 0);
	if (p->phase == PROF_SAMPLING) {
		loader_stop(p->loader);
		p->sampled_ns = clock_mono_ns();
		kernel_names_take(&p->names, true);
		samples_drain(&p->samples);
	}
	enter(p, PROF_DRAINING);
	if (deferred_empty(p->deferred))
		conclude(p);
}

static bool followed_are_gone(struct prof *p)
{
	struct host_figures h;

	if (!p->options.follow && !p->options.sampling.pid_count)
		return false;
	host_figures(p->host, &h);
	return h.processes == 0;
}

/* Whether a periodic task is due. Timers fire a little late, and never early. */
static bool is_due(struct prof *p, uint64_t *last_ns, uint64_t every_ns, uint64_t now)
{
	if (now + p->drain_ms * 500000ull < *last_ns + every_ns)
		return false;
	*last_ns = now;
	return true;
}

/* Makes the timer fire no later than the end of the run. */
static void set_end(struct prof *p, uint64_t now)
{
	const uint64_t end = p->since_ns + (uint64_t)(p->options.sampling.seconds * 1e9),
		       interval = p->drain_ms * 1000000ull;
	const struct itimerspec at_end = { .it_interval.tv_nsec = (long)interval,
					   .it_value.tv_nsec = (long)(end - now) };

	if (p->options.sampling.seconds > 0 && end > now && end - now < interval)
		(void)timerfd_settime(p->timer, 0, &at_end, NULL);
}

/* Whether to flush the stream now. A command that cannot be run must leave no trace, so not before
 * it runs. */
static bool is_urgent(const struct prof *p, uint64_t now)
{
	return emit_urgent(p->output.emit) &&
	       (!p->options.follow || p->samples.command_runs || now - p->since_ns > COMMAND_NS);
}

/*
 * Makes some timer ticks come a sampling period apart. prof-symd looks at a new program, perhaps an
 * interpreter, only after its first sample.
 */
static void hurry(struct prof *p, uint64_t now)
{
	const uint64_t soon = 1200000000ull / p->options.sampling.hz;
	struct itimerspec next;

	if (!p->hurry.turns || p->hurry.paid_ns > now + HURRY_BURST * HURRY_NS ||
	    timerfd_gettime(p->timer, &next) < 0 ||
	    (next.it_value.tv_sec == 0 && (uint64_t)next.it_value.tv_nsec <= soon))
		return;
	p->hurry.paid_ns = numbers_larger(p->hurry.paid_ns, now) + HURRY_NS;
	next.it_value = clock_timespec(soon);
	(void)timerfd_settime(p->timer, 0, &next, NULL);
}

/* Requests files whose temporary quarantine has expired: nobody else will. For names it begins a
 * new epoch, in which prof-symd requests them anew. */
static void ask_again(struct prof *p, uint64_t now_ns)
{
	enum quarantine_parser parser;
	struct quarantine_key freed;
	bool names = false;

	while (quarantine_freed(p->quarantine, now_ns, &parser, &freed)) {
		names |= parser == QUARANTINE_NAMES;
		for (uint32_t slot = 1; parser == QUARANTINE_ROWS && slot < TABLES_MAX_FILES;
		     slot++) {
			struct host_file *f = host_slot_file(p->host, (uint16_t)slot);

			if (f && f->dev == freed.dev && f->inode == freed.inode &&
			    f->ctime_ns == freed.ctime_ns && f->size == freed.size)
				host_want_rows(p->host, f);
		}
	}
	if (names && p->output.has_peer)
		output_emitted(&p->output, emit_restart(p->output.emit));
}

/* Has optional work give way when the tools use too much cpu time. */
static void keep_cpu_limit(struct prof *p, uint64_t now)
{
	const struct cpulimit *c = &p->cpu_limit;

	if (p->phase != PROF_SAMPLING || !cpulimit_run(&p->cpu_limit, &p->limit.meter, now))
		return;
	rest(p, c->rest_ms);
	drops_step(&p->drops, c->drop, c->least);
	if (!c->drop || p->cpu_limit_told)
		return;
	p->cpu_limit_told = true;
	log_warning("--cpu-limit %u: the tools need more cpu time; samples are dropped and counted "
		    "as cpu-limit; raise the limit, or sample less often",
		    p->options.sampling.cpu_limit);
}

/* Only it may load programs. */
static void hear_late_loader(struct prof *p)
{
	const int r = loader_hear_late(p->loader);

	requests_loaded(&p->requests);
	if (!r || p->failed)
		return;
	log_error(
		"prof-bpf-loader ended, and only it can load the programs that read interpreters; "
		"restart prof-bpf (profpipe does so)");
	p->again = p->output.bus != NULL;
	p->failed = p->exit_now = true;
}

/* Opens and reads. Only the keeper can start workers, and prof-bpf cannot start a keeper. */
static void run_helpers(struct prof *p, uint64_t now)
{
	workerpool_run(p->pool, now);
	if (!workerpool_lost(p->pool) || p->failed)
		return;
	log_error("prof-bpf-keeper ended, and only its workers can open files; "
		  "restart prof-bpf (profpipe does so)");
	p->again = p->output.bus != NULL;
	p->failed = p->exit_now = true;
}

static void on_timer(struct prof *p)
{
	uint64_t expirations, now = clock_mono_ns();

	if (read(p->timer, &expirations, sizeof(expirations)) < 0)
		return;
	run_helpers(p, now);
	opener_tick(p->opener, now);
	if (p->jitfiles)
		jitfiles_tick(p->jitfiles, now);
	requests_tick(&p->requests, now);
	if (p->phase == PROF_SAMPLING)
		ask_again(p, now);
	limit_run(&p->limit, now);
	keep_cpu_limit(p, now);
	kernel_names_tick(&p->names, now);
	samples_drain(&p->samples);
	if (p->phase == PROF_DRAINING) {
		if (deferred_empty(p->deferred) || now - p->since_ns > DEFERRED_END_NS)
			conclude(p);
	}
	if (!p->testimony.told ||
	    (p->phase == PROF_FINISHING && is_due(p, &p->sent.testimony_ns, FIGURES_NS, now)))
		testimony_repeat(&p->testimony);
	if (p->phase == PROF_FINISHING)
		finish_sending(p);
	if (p->phase != PROF_SAMPLING)
		return;
	if (is_due(p, &p->sent.figures_ns, FIGURES_NS, now)) {
		if (output_has_receiver(&p->output)) {
			losses_send(&p->losses);
			figures_send(p);
		}
		p->status.taken = figures_taken(p);
		testimony_tell(&p->testimony, &p->losses, p->status.taken, false);
		deploy_status(&p->options.deploy, &p->status, STATUS_RUNNING);
		if (p->cpus.waits)
			take_cpus(p);
	}
	if (is_due(p, &p->sent.clock_ns, CLOCK_NS, now))
		output_emitted(&p->output, emit_clock(p->output.emit));
	if (is_urgent(p, now))
		p->sent.flushed_ns = 0;
	if (is_due(p, &p->sent.flushed_ns, FLUSH_NS, now))
		output_emitted(&p->output, emit_flush(p->output.emit));
	if (p->hurry.turns) {
		p->hurry.turns--;
		hurry(p, now);
	}
	set_end(p, now);
	if (p->options.sampling.seconds > 0 &&
	    (double)(now - p->since_ns) >= p->options.sampling.seconds * 1e9)
		finish(p, END_DONE);
	else if (followed_are_gone(p))
		finish(p, END_DONE);
}

/* Whether the loop listens to a descriptor. */
static void listen_to(struct prof *p, int fd, enum prof_source from, bool hears)
{
	struct epoll_event e = { .events = hears ? EPOLLIN : 0, .data.u32 = from };

	(void)epoll_ctl(p->epoll, EPOLL_CTL_MOD, fd, &e);
}

static void listen_to_rows(struct prof *p, bool hears)
{
	listen_to(p, row_server_bus_fd(p->row_server), PROF_FROM_ROWS, hears);
	listen_to(p, row_server_lane_fd(p->row_server), PROF_FROM_ROWS_LANE, hears);
}

static void listen_to_files(struct prof *p, bool hears)
{
	listen_to(p, file_server_bus_fd(p->file_server), PROF_FROM_FILES, hears);
	listen_to(p, file_server_lane_fd(p->file_server), PROF_FROM_FILES_LANE, hears);
}

/*
 * Handles the result of a route. A route that fails, e.g. for lack of memory, is tried again at the
 * next timer tick, so it costs only a delay. Until then the loop ignores its descriptors, which
 * stay readable.
 */
static void peer_ran(struct prof *p, struct peer_turn *turn, const char *name,
		     void (*listen)(struct prof *, bool), int r)
{
	if (!r && !turn->rests)
		return;
	if (r && !turn->failures++)
		log_warning("messages of %s cannot be handled: %s; prof-bpf tries again; leave the "
			    "run more memory if this goes on",
			    name, strerror(-r));
	if (turn->rests != (r != 0))
		listen(p, r == 0);
	turn->rests = r != 0;
}

static void run_rows(struct prof *p)
{
	uint16_t slot;

	p->rows.due = false;
	peer_ran(p, &p->rows, "prof-deltas", listen_to_rows,
		 row_server_run(p->row_server, clock_mono_ns()));
	while (row_server_take_unopened(p->row_server, &slot)) {
		struct host_file *f = host_slot_file(p->host, slot);

		if (f)
			host_want_rows(p->host, f);
	}
}

static void run_routes(struct prof *p)
{
	if (p->rows.due)
		run_rows(p);
	/* Files with an open descriptor are sent at once. */
	if (p->rows.due)
		run_rows(p);
	if (p->file_server && p->files.due) {
		p->files.due = false;
		peer_ran(p, &p->files, "prof-symd", listen_to_files,
			 file_server_run(p->file_server));
	}
}

/* prof-symd came, went, or has room again. */
static void on_stream(struct prof *p)
{
	for (int n = 0; n < EVENTS_AT_ONCE; n++) {
		const int r = bus_event(p->output.bus);

		if (r == BUS_EMPTY)
			return;
		if (r == BUS_PEER_CAME) {
			p->samples.renewed_ns = 0;
			output_peer_came(&p->output);
			output_emitted(&p->output,
				       emit_figure(p->output.emit, "began", p->began_ns));
			if (p->sampling_ns)
				output_emitted(&p->output,
					       emit_figure(p->output.emit, "sampling_since",
							   p->sampling_ns));
			if (p->phase == PROF_FINISHING)
				send_end(p);
		} else {
			output_peer_went(&p->output);
			/* It has taken the end of the stream and everything before. If not, only
			 * the launcher knows. */
			if (p->phase == PROF_FINISHING && p->options.deploy.life_fd < 0)
				p->exit_now = true;
		}
	}
}

static void on_signal(struct prof *p)
{
	struct signalfd_siginfo si;

	if (read(p->signals, &si, sizeof(si)) == sizeof(si)) {
		if (p->phase == PROF_CONNECTING)
			p->exit_now = true;
		finish(p, END_KILLED);
	}
}

/* Events that were opened before sampling begins are disabled. */
static void pause_sampling(struct prof *p, bool paused)
{
	if (p->paused == paused)
		return;
	p->paused = paused;
	if (p->phase != PROF_SAMPLING)
		return;
	const int r = paused ? loader_pause(p->loader) : loader_start(p->loader);

	if (r)
		log_warning("sampling cannot be %s: %s", paused ? "interrupted" : "resumed",
			    strerror(-r));
}

static void change_cpu_limit(struct prof *p, unsigned percent)
{
	p->options.sampling.cpu_limit = percent;
	p->samples.drops = percent ? &p->drops : NULL;
	p->cpu_limit_told = false;
	cpulimit_set(&p->cpu_limit, percent);
	if (!percent)
		rest(p, 0);
}

/* An order of the launcher (enum deploy_order). Unknown ones are of a newer launcher. */
static void follow_order(struct prof *p, uint8_t order)
{
	if (order == DEPLOY_STOP)
		finish(p, END_KILLED);
	else if (order == DEPLOY_PAUSE || order == DEPLOY_RESUME)
		pause_sampling(p, order == DEPLOY_PAUSE);
	else if (order >= DEPLOY_CPU_LIMIT && order <= DEPLOY_CPU_LIMIT_LAST)
		change_cpu_limit(p, order - DEPLOY_CPU_LIMIT);
}

static void on_life(struct prof *p)
{
	uint8_t order;
	const ssize_t n = read(p->options.deploy.life_fd, &order, 1);

	if (n == 1)
		follow_order(p, order);
	else if (n == 0)
		p->exit_now = true;
}

/* The first record ends the listening. */
static void listen_to_records(struct prof *p)
{
	struct epoll_event e = { .events = PROF_SIDEBAND_EVENTS, .data.u32 = PROF_FROM_SIDEBAND };

	(void)epoll_ctl(p->epoll, EPOLL_CTL_MOD, sideband_fd(p->sideband), &e);
}

static void take_records(struct prof *p)
{
	const uint64_t began = clock_mono_ns();

	if (!gathering_is_due(&p->gathering, began, sideband_fills(p->sideband)))
		return;
	sideband_heard(p->sideband);
	samples_drain(&p->samples);
	const uint64_t now = clock_mono_ns();

	gathering_end(&p->gathering, began, now);
	if (!p->gathering.rests)
		listen_to_records(p);
	if (is_urgent(p, now))
		output_emitted(&p->output, emit_flush(p->output.emit));
}

static void handle(struct prof *p, enum prof_source from)
{
	/* The routes have descriptors of their own. But these do not report unsent data, opened
	 * files or deadlines, nor anything while a route rests. */
	p->rows.due |= from == PROF_FROM_ROWS || from == PROF_FROM_ROWS_LANE ||
		       (from == PROF_FROM_TIMER &&
			(p->rows.rests || !row_server_idle(p->row_server)));
	p->files.due |= from == PROF_FROM_FILES || from == PROF_FROM_FILES_LANE ||
			((from == PROF_FROM_TIMER || from == PROF_FROM_HELPERS) && p->file_server &&
			 (p->files.rests || !file_server_idle(p->file_server)));
	switch (from) {
	case PROF_FROM_TIMER:
		on_timer(p);
		if (gathering_rested(&p->gathering, clock_mono_ns()))
			listen_to_records(p);
		break;
	case PROF_FROM_SIDEBAND:
		gathering_begin(&p->gathering, clock_mono_ns(),
				p->phase == PROF_SAMPLING ? p->options.sampling.hz : 0);
		break;
	case PROF_FROM_SIGNAL:
		on_signal(p);
		break;
	case PROF_FROM_LIFE:
		on_life(p);
		break;
	case PROF_FROM_STREAM:
		on_stream(p);
		break;
	case PROF_FROM_HELPERS:
		run_helpers(p, clock_mono_ns());
		host_tick(p->host, clock_mono_ns(), p->samples.drained_ns);
		break;
	case PROF_FROM_LATE_LOADER:
		hear_late_loader(p);
		break;
	case PROF_FROM_CPUS:
		if (p->phase < PROF_DRAINING)
			take_cpus(p);
		else
			cpus_stop(&p->cpus);
		break;
	default:
		break;
	}
}

void loop_run(struct prof *p)
{
	struct epoll_event events[16];

	/* Read them before the first sample, which needs them. */
	kernel_names_start(&p->names);
	while (!p->exit_now && !p->output.failed) {
		const bool gathers = p->gathering.due_ns;
		int n = epoll_wait(p->epoll, events, 16,
				   gathers ? gathering_patience_ms(&p->gathering, clock_mono_ns())
					   : -1);

		kernel_names_take(&p->names, false);
		if (gathers)
			take_records(p);
		for (int i = 0; i < n; i++)
			handle(p, (enum prof_source)events[i].data.u32);
		send_offers(p);
		run_routes(p);
		if (p->output.bus)
			(void)outbox_run(&p->output.outbox);
		if (p->phase == PROF_CONNECTING)
			try_start(p);
		if (p->hurry.new_files) {
			gathering_new_file(&p->gathering, clock_mono_ns());
			p->hurry.new_files = false;
			p->hurry.turns = HURRIED_TURNS;
			if (p->phase == PROF_SAMPLING)
				hurry(p, clock_mono_ns());
		}
		/* With a launcher, the launcher decides. */
		if (p->phase == PROF_FINISHING && p->options.deploy.life_fd < 0 &&
		    clock_mono_ns() - p->since_ns > FINISH_NS)
			p->exit_now = true;
	}
}
