/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One loop, woken by side-band records, by its peers, and by a timer: samples wait in the ring
 * buffers until then, since a wake-up for each costs as much as the walk. What is not for new
 * processes is the timer's; the stream goes on once a second, or at the next turn of the timer
 * where prof-symd will want to open something.
 */
#include <errno.h>
#include <malloc.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include "common/clock.h"
#include "common/log.h"
#include "tools/prof-bpf/prof.h"

#define FIGURES_NS 1000000000ull
#define FLUSH_NS 1000000000ull
#define CLOCK_NS 60000000000ull
#define CONNECT_NS 20000000000ull /* how long the start waits for the peers */
/* And then for what is asked of the files that run already: for rows, of which later ones are in
 * time for deferred samples, and for interpreters, whose frames are native ones so long. */
#define ROWS_WAIT_NS 200000000ull
#define OFFERS_WAIT_NS 1000000000ull
#define COALESCE_NS 1000000ull
#define COMMAND_NS 200000000ull /* to exec it, which is not done by who is followed by hand */
#define EVENTS_AT_ONCE 8
#define HURRIED_TURNS 3	      /* of the timer, after a new file */
#define HURRY_NS 100000000ull /* one each, and so many at once: new files may never end */
#define HURRY_BURST 8
#define FINISH_NS 60000000000ull /* how long a finished run serves prof-symd */

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

	p->names_result = kallsyms_read(p->names);
	__atomic_store_n(&p->names_done, true, __ATOMIC_RELEASE);
	return NULL;
}

/* Said once: it is tried again and again. */
static void say_names(struct prof *p, int r)
{
	if (r && !p->names_said)
		log_warning(
			"/proc/kallsyms: %s: kernel functions have no names until it can be read",
			strerror(-r));
	p->names_said |= r != 0;
}

static void start_names(struct prof *p)
{
	if (!p->names)
		return;
	const int r = pthread_create(&p->names_thread, NULL, read_names, p);

	p->names_reading = r == 0;
	/* Without a thread it is read at the timer. */
	if (r)
		p->kallsyms = p->names;
	say_names(p, -r);
}

/* Takes the names over once they are there, or waits for them. */
void loop_take_names(struct prof *p, bool wait)
{
	if (!p->names_reading || !(wait || __atomic_load_n(&p->names_done, __ATOMIC_ACQUIRE)))
		return;
	pthread_join(p->names_thread, NULL);
	p->names_reading = false;
	/* The tables that the reading grew through. */
	malloc_trim(0);
	p->kallsyms = p->names;
	say_names(p, p->names_result);
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
	p->flushed_ns = p->sampling_ns = p->since_ns;
	feed_emitted(p, emit_figure(p->emit, "sampling_since", p->sampling_ns));
	deploy_status(&p->options.deploy, &p->status, STATUS_READY);
}

/* Everybody is there, the rows of what runs already have come, and what is known of the
 * interpreters in it; or enough was waited for. */
static void try_start(struct prof *p)
{
	const uint64_t now = clock_mono_ns();
	const bool connected = rowsrv_connected(p->rowsrv) && (!p->stream || p->stream_begun);

	if (!connected)
		p->connected_ns = 0;
	else if (!p->connected_ns)
		p->connected_ns = now;
	if (connected) {
		const uint64_t waited = now - p->connected_ns;
		const bool rows = host_settled(p->host) && rowsrv_idle(p->rowsrv),
			   offers = !p->offer_count && !p->offers_open;

		if ((rows || waited > ROWS_WAIT_NS) && (offers || waited > OFFERS_WAIT_NS))
			start_sampling(p);
	} else if (now - p->since_ns > CONNECT_NS) {
		log_error("%s is not there after %d s",
			  rowsrv_connected(p->rowsrv) ? "prof-symd" : "prof-deltas",
			  (int)(CONNECT_NS / 1000000000));
		p->again = p->stream != NULL;
		p->failed = p->exit_now = true;
	}
}

/* Everything was drained, or enough was waited for: the end of the stream. */
static void conclude(struct prof *p)
{
	deferred_run(p->deferred, clock_mono_ns(), true);
	feed_processes(p);
	/* What was lost while nobody was there is told to whoever comes. */
	if (!p->stream || p->stream_begun)
		feed_losses(p);
	feed_figures(p);
	enter(p, FINISHING);
	int r = emit_end(p->emit, p->end);
	if (r && r != -ENOTCONN)
		log_warning("the end of the stream could not be sent: %s", strerror(-r));
	/* Nobody is there who would take it, and go. With a launcher somebody may come, until it
	 * says that nobody will. */
	if (!p->stream || (!p->stream_begun && p->options.deploy.life_fd < 0))
		p->exit_now = true;
}

/* Another prof-symd for the end of the stream: its predecessor may not have passed it on. */
static void conclude_again(struct prof *p)
{
	feed_losses(p);
	feed_figures(p);
	feed_emitted(p, emit_end(p->emit, p->end));
}

static void finish(struct prof *p, enum end_reason reason)
{
	if (p->phase >= DRAINING)
		return;
	p->end = reason;
	if (p->phase == SAMPLING) {
		loader_stop(p->loader);
		p->sampled_ns = clock_mono_ns();
		loop_take_names(p, true);
		feed_drain(p);
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

/* Whether the next one of something that happens every so often is due: timers are a little late,
 * and never early. */
static bool is_due(struct prof *p, uint64_t *last_ns, uint64_t every_ns, uint64_t now)
{
	if (now + p->drain_ms * 500000ull < *last_ns + every_ns)
		return false;
	*last_ns = now;
	return true;
}

/* The timer's next turn is no later than the end. */
static void set_end(struct prof *p, uint64_t now)
{
	const uint64_t end = p->since_ns + (uint64_t)(p->options.seconds * 1e9),
		       interval = p->drain_ms * 1000000ull;
	const struct itimerspec at_end = { .it_interval.tv_nsec = (long)interval,
					   .it_value.tv_nsec = (long)(end - now) };

	if (p->options.seconds > 0 && end > now && end - now < interval)
		(void)timerfd_settime(p->timer, 0, &at_end, NULL);
}

/* Whether the stream goes on now. A command that cannot be run is to leave no trace, so it does not
 * until the command runs. */
static bool is_urgent(const struct prof *p, uint64_t now)
{
	return emit_urgent(p->emit) &&
	       (!p->options.follow || p->command_runs || now - p->since_ns > COMMAND_NS);
}

/*
 * prof-symd looks at a program that was never seen before, an interpreter perhaps, once a sample of
 * it is there. So some turns of the timer are a period apart then, and not an interval.
 */
static void hurry(struct prof *p, uint64_t now)
{
	const uint64_t soon = 1200000000ull / p->options.hz;
	struct itimerspec next;

	if (!p->hurried || p->hurry_ns > now + HURRY_BURST * HURRY_NS ||
	    timerfd_gettime(p->timer, &next) < 0 ||
	    (next.it_value.tv_sec == 0 && (uint64_t)next.it_value.tv_nsec <= soon))
		return;
	p->hurry_ns = (p->hurry_ns > now ? p->hurry_ns : now) + HURRY_NS;
	next.it_value = (struct timespec){ .tv_sec = (time_t)(soon / 1000000000),
					   .tv_nsec = (long)(soon % 1000000000) };
	(void)timerfd_settime(p->timer, 0, &next, NULL);
}

/* A file that was given up in doubt, and is not any more, is asked for again by nobody who has been
 * refused it. Names are forgotten with the epoch. */
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
	if (names && p->stream_begun)
		feed_emitted(p, emit_restart(p->emit));
}

static void on_timer(struct prof *p)
{
	uint64_t expirations, now = clock_mono_ns();

	if (read(p->timer, &expirations, sizeof(expirations)) < 0)
		return;
	opener_run(p->opener, now);
	if (p->reader)
		reader_run(p->reader, now);
	if (p->jitfiles)
		jitfiles_tick(p->jitfiles, now);
	answers_tick(p, now);
	if (p->phase == SAMPLING)
		ask_again(p, now);
	limit_run(p, now);
	if (p->kallsyms)
		say_names(p, kallsyms_tick(p->kallsyms, now));
	feed_drain(p);
	if (p->phase == DRAINING) {
		if (deferred_empty(p->deferred) || now - p->since_ns > DEFERRED_PATIENCE_NS)
			conclude(p);
	}
	if (p->phase != SAMPLING)
		return;
	if (is_due(p, &p->figures_ns, FIGURES_NS, now)) {
		if (!p->stream || p->stream_begun) {
			feed_losses(p);
			feed_figures(p);
		}
		p->status.taken = feed_taken(p);
		deploy_status(&p->options.deploy, &p->status, STATUS_RUNNING);
		if (p->cpus.waits)
			feed_cpus(p);
	}
	if (is_due(p, &p->clock_ns, CLOCK_NS, now))
		feed_emitted(p, emit_clock(p->emit));
	if (is_urgent(p, now))
		p->flushed_ns = 0;
	if (is_due(p, &p->flushed_ns, FLUSH_NS, now))
		feed_emitted(p, emit_flush(p->emit));
	if (p->hurried) {
		p->hurried--;
		hurry(p, now);
	}
	set_end(p, now);
	if (p->options.seconds > 0 && (double)(now - p->since_ns) >= p->options.seconds * 1e9)
		finish(p, END_DONE);
	else if (followed_are_gone(p))
		finish(p, END_DONE);
}

/* Whether the loop hears of a descriptor. */
static void listen_to(struct prof *p, int fd, enum source from, bool hears)
{
	struct epoll_event e = { .events = hears ? EPOLLIN : 0, .data.u32 = from };

	(void)epoll_ctl(p->epoll, EPOLL_CTL_MOD, fd, &e);
}

static void listen_to_rows(struct prof *p, bool hears)
{
	listen_to(p, rowsrv_bus_fd(p->rowsrv), FROM_ROWS, hears);
	listen_to(p, rowsrv_lane_fd(p->rowsrv), FROM_ROWS_LANE, hears);
}

static void listen_to_files(struct prof *p, bool hears)
{
	listen_to(p, filesrv_bus_fd(p->filesrv), FROM_FILES, hears);
	listen_to(p, filesrv_lane_fd(p->filesrv), FROM_FILES_LANE, hears);
}

/*
 * A route that fails, for want of memory say, costs what comes over it, and that only for now: it
 * is tried again at the timer's next turn. Until then the loop does not hear of its descriptors,
 * which stay readable.
 */
static void route_ran(struct prof *p, struct route *route, const char *name,
		      void (*listen)(struct prof *, bool), int r)
{
	if (!r && !route->rests)
		return;
	if (r && !route->failures++)
		log_warning("the %s route failed: %s; it is tried again and again", name,
			    strerror(-r));
	if (route->rests != (r != 0))
		listen(p, r == 0);
	route->rests = r != 0;
}

static void run_routes(struct prof *p)
{
	if (p->rows_due) {
		p->rows_due = false;
		route_ran(p, &p->rows, "rows", listen_to_rows,
			  rowsrv_run(p->rowsrv, clock_mono_ns()));
	}
	if (p->filesrv && p->files_due) {
		p->files_due = false;
		route_ran(p, &p->files, "files", listen_to_files, filesrv_run(p->filesrv));
	}
}

/* prof-symd came, went, or has room again. */
static void on_stream(struct prof *p)
{
	struct buf nothing = BUF_INIT(4096);

	for (int n = 0; n < EVENTS_AT_ONCE; n++) {
		int r = bus_recv(p->stream, &nothing);

		if (r == BUS_PEER_CAME) {
			outbox_reset(&p->outbox);
			p->stream_begun = true;
			p->objects_lost = true; /* its predecessor had them */
			p->forgot_ns = 0;
			feed_emitted(p, emit_restart(p->emit));
			feed_emitted(p, emit_figure(p->emit, "began", p->began_ns));
			if (p->sampling_ns)
				feed_emitted(
					p, emit_figure(p->emit, "sampling_since", p->sampling_ns));
			if (p->phase == FINISHING)
				conclude_again(p);
		} else if (r == BUS_PEER_WENT) {
			p->stream_begun = false;
			outbox_reset(&p->outbox);
			/* It has taken the end of the stream, and everything before it. If that is
			 * not so, only the launcher knows. */
			if (p->phase == FINISHING && p->options.deploy.life_fd < 0)
				p->exit_now = true;
		} else if (r == BUS_EMPTY) {
			break;
		} else {
			/* The route has one direction, and this is not it. */
			bus_drop_peer(p->stream);
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

static void handle(struct prof *p, enum source from)
{
	/* The routes wake us themselves, but not for what they could not send at once, for an
	 * opened file or a deadline; nor while they rest. */
	p->rows_due |= from == FROM_ROWS || from == FROM_ROWS_LANE ||
		       (from == FROM_TIMER && (p->rows.rests || !rowsrv_idle(p->rowsrv)));
	p->files_due |= from == FROM_FILES || from == FROM_FILES_LANE ||
			((from == FROM_TIMER || from == FROM_OPENER || from == FROM_READER) &&
			 p->filesrv && (p->files.rests || !filesrv_idle(p->filesrv)));
	switch (from) {
	case FROM_TIMER:
		on_timer(p);
		break;
	case FROM_SIDEBAND:
		/* A wake-up costs more than the records it is for, and an exec is followed by what
		 * the program maps: those of a millisecond are taken together. */
		usleep(COALESCE_NS / 1000);
		sideband_heard(p->sideband);
		feed_drain(p);
		if (is_urgent(p, clock_mono_ns()))
			feed_emitted(p, emit_flush(p->emit));
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
		host_tick(p->host, clock_mono_ns(), p->drained_ns);
		break;
	case FROM_CPUS:
		if (p->phase < DRAINING)
			feed_cpus(p);
		else
			cpus_stop(&p->cpus);
		break;
	case FROM_READER:
		reader_run(p->reader, clock_mono_ns());
		host_tick(p->host, clock_mono_ns(), p->drained_ns);
		break;
	default:
		break;
	}
}

void loop_run(struct prof *p)
{
	struct epoll_event events[16];

	/* Ahead of the first sample, which waits for them. */
	start_names(p);
	while (!p->exit_now) {
		int n = epoll_wait(p->epoll, events, 16, -1);

		loop_take_names(p, false);
		for (int i = 0; i < n; i++)
			handle(p, (enum source)events[i].data.u32);
		feed_offers(p);
		run_routes(p);
		if (p->stream)
			(void)outbox_run(&p->outbox);
		if (p->phase == CONNECTING)
			try_start(p);
		if (p->new_files) {
			p->new_files = false;
			p->hurried = HURRIED_TURNS;
			if (p->phase == SAMPLING)
				hurry(p, clock_mono_ns());
		}
		/* With a launcher it is for that to say. */
		if (p->phase == FINISHING && p->options.deploy.life_fd < 0 &&
		    clock_mono_ns() - p->since_ns > FINISH_NS)
			p->exit_now = true;
	}
}
