/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-export/receiver.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>
#include "common/base/command/log.h"
#include "common/base/system/clock.h"
#include "tools/prof-export/interrupts.h"

#define STATUS_NS 250000000u
#define HELD_US 500000 /* between two status words while a write waits */
#define POLL_MS 2000   /* the stream brings a message every second */
/* How long to wait for the first report of prof-bpf, the witness. prof-bpf sends it every second,
 * and more often until prof-export has received one. */
#define WITNESS_MS 1500
/* For a prof-bpf that has already reported to an earlier prof-export. */
#define WITNESS_LATE_MS 3000
#define WITNESS_STEP_MS 50

enum wish { WISH_NONE, WISH_FINISH, WISH_LEAVE };

/* Reads the launcher's messages and returns its latest wish. */
static enum wish read_life(struct receiver *r)
{
	struct pollfd p = { .fd = r->deploy->life_fd, .events = POLLIN };
	struct deploy_word word;

	while (p.fd >= 0 && poll(&p, 1, 0) > 0) {
		const ssize_t n = read(p.fd, &word, sizeof(word));

		if (n == 0)
			return WISH_LEAVE;
		if (n != sizeof(word))
			break;
		r->word = word;
		r->told = true;
	}
	return r->word.last ? WISH_FINISH : WISH_NONE;
}

/* Passes the launcher's facts to the session before newer messages of the stream: a recording must
 * contain them before its end. */
static void pass_on(struct receiver *r)
{
	const struct deploy_word *w = &r->word;
	const struct {
		struct str name;
		uint64_t value;
	} figures[] = {
		{ STR_LIT("run_taken"), w->taken },
		{ STR_LIT("run_until"), w->until_ns },
		{ STR_LIT("restarts_bpf"), w->restarts[DEPLOY_BPF] },
		{ STR_LIT("restarts_deltas"), w->restarts[DEPLOY_DELTAS] },
		{ STR_LIT("restarts_symd"), w->restarts[DEPLOY_SYMD] },
		{ STR_LIT("restarts_export"), w->restarts[DEPLOY_EXPORT] },
	};

	if (!r->told || !r->job->session.begun)
		return;
	r->told = false;
	/* If this cannot be written, session_finish reports it. */
	for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++)
		if (figures[i].value) {
			(void)session_tell(&r->job->session, figures[i].name, figures[i].value);
			sending_tell(&r->job->sending, figures[i].name, figures[i].value);
		}
}

/* Takes the waiting reports of prof-bpf. */
static void hear(struct receiver *r)
{
	struct witness_word word;

	while (!datagram_recv(&r->witness, &word, sizeof(word))) {
		model_witness(r->job->session.model, &word);
		sending_hear(&r->job->sending, &word);
	}
}

/* The first report contains the key, without which samples cannot be compared. */
static void await_witness(struct receiver *r, int ms)
{
	const struct model *m = r->job->session.model;
	const uint64_t until = clock_mono_ns() + (uint64_t)ms * 1000000u;

	hear(r);
	while (r->witness.fd >= 0 && !model_has_witness(m) && clock_mono_ns() < until &&
	       !interrupts_count()) {
		struct pollfd p = { .fd = r->witness.fd, .events = POLLIN };

		poll(&p, 1, WITNESS_STEP_MS);
		hear(r);
	}
}

/* prof-bpf reports its end before it ends the stream, and repeats this until the launcher tells it
 * to exit. If no such report comes, another process ended the stream. */
static void await_final_word(struct receiver *r)
{
	struct model *m = r->job->session.model;
	const uint64_t until = clock_mono_ns() + WITNESS_LATE_MS * 1000000ull;

	if (!model_has_witness(m) || !model_ended_well(m))
		return;
	hear(r);
	while (!model_has_final_word(m) && clock_mono_ns() < until && !interrupts_count()) {
		struct pollfd p = { .fd = r->witness.fd, .events = POLLIN };

		poll(&p, 1, WITNESS_STEP_MS);
		hear(r);
	}
	model_over(m);
	sending_over(&r->job->sending);
}

static void tell(void *ctx)
{
	struct receiver *r = ctx;
	const uint64_t now = clock_mono_ns();

	if (now - r->told_ns < STATUS_NS)
		return;
	job_status(r->job, false);
	deploy_status(r->deploy, &r->job->status, STATUS_RUNNING);
	r->told_ns = now;
}

/* Called while a write waits for a slow reader. If the launcher is gone, the write is given up. */
static int on_held(void *ctx)
{
	struct receiver *r = ctx;
	const enum wish wish = read_life(r);

	r->last |= wish == WISH_FINISH;
	tell(r);
	return wish == WISH_LEAVE ? -ECANCELED : 0;
}

static void on_alarm(int number)
{
}

void receiver_set_watch(int fd)
{
	const struct itimerval often = { .it_interval.tv_usec = HELD_US,
					 .it_value.tv_usec = HELD_US };
	const struct sigaction a = { .sa_handler = on_alarm };
	struct stat st;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	sigaction(SIGALRM, &a, NULL);
	if (!fstat(fd, &st) && !S_ISREG(st.st_mode))
		setitimer(ITIMER_REAL, &often, NULL);
}

static void begin_watching(struct receiver *r)
{
	sigset_t set;

	r->job->session.output.beat = on_held;
	r->job->session.output.beat_ctx = r;
	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

/* Switches to the next output if it is due. If the former output cannot be written, only that
 * output is lost. */
static void turn(struct receiver *r, const struct buf *message)
{
	if (!turnover_due(&r->job->turnover, &r->job->session, buf_span(message)))
		return;
	const int e = turnover_run(&r->job->turnover, &r->job->session, &r->journal);

	if (e)
		output_say("an output", e);
}

/* If a sender breaks the rules or loses its own sender, only the rest of its data is lost. The next
 * sender continues the session. */
static int take_message(struct receiver *r, const struct buf *message)
{
	const int e = journal_feed(&r->journal, &r->job->session, buf_span(message));

	sending_feed(&r->job->sending, buf_span(message));
	if (e == STREAM_MALFORMED)
		log_warning("prof-symd sent an invalid message; the stream before it is kept");
	else if (e || !r->job->session.lost)
		return e;
	r->deaf = true;
	bus_drop_peer(r->bus);
	return STREAM_AGAIN;
}

/* prof-symd came or went. */
static void take_peer(struct receiver *r, bool came)
{
	r->there = came;
	r->peers += came;
	if (r->peers > 1) {
		model_interrupted(r->job->session.model, false);
		sending_interrupted(&r->job->sending, false);
	}
	r->deaf = false;
	journal_reopen(&r->journal, &r->job->session);
	sending_reopen(&r->job->sending);
}

/* Takes all waiting messages. session_feed's verdict, -errno. */
static int take_messages(struct receiver *r, struct buf *message)
{
	int e = STREAM_AGAIN;

	while (e == STREAM_AGAIN) {
		const int event = bus_recv(r->bus, message);

		/* Leave the message in the bus. Its sender then waits too. */
		if (output_rest(&r->job->session.output, event, &r->rests))
			break;
		if (event < 0)
			return event;
		r->rests = 0;
		if (event == BUS_EMPTY)
			break;
		if (event) {
			take_peer(r, event == BUS_PEER_CAME);
			if (!r->there && r->last)
				break;
			continue;
		}
		/* If this message is the end, the session must get the launcher's earlier facts
		 * first. */
		(void)read_life(r);
		pass_on(r);
		if (r->job->session.begun || model_has_witness(r->job->session.model))
			hear(r);
		else
			await_witness(r, WITNESS_MS);
		if (!r->deaf)
			turn(r, message);
		if (!r->deaf)
			e = take_message(r, message);
		tell(r);
	}
	return e;
}

/* Reads the stream of a predecessor from the journal. Returns session_feed's verdict. */
static int replay(struct receiver *r)
{
	struct session *s = &r->job->session;

	if (journal_holds(&r->journal)) {
		await_witness(r, WITNESS_LATE_MS);
		model_interrupted(s->model, true);
		sending_interrupted(&r->job->sending, true);
	}
	session_replay(s);
	const int e = journal_replay(&r->journal, s, tell, r);

	session_replayed(s);
	sending_replay(&r->job->sending, &r->journal, tell, r);
	return e;
}

static int receive(struct receiver *r)
{
	struct job *job = r->job;
	struct buf message = BUF_INIT(0);
	int e = replay(r);

	while (e == STREAM_AGAIN && !(r->last && !r->there) && interrupts_count() < 2) {
		struct pollfd p[] = { { .fd = bus_fd(r->bus), .events = POLLIN },
				      { .fd = r->deploy->life_fd, .events = POLLIN },
				      { .fd = outlet_fd(&job->sending.outlet), .events = POLLIN },
				      { .fd = job->turnover.socket, .events = POLLIN } };

		poll(p, 4, POLL_MS);
		const enum wish wish = read_life(r);

		if (wish == WISH_LEAVE) {
			e = -ECANCELED;
			break;
		}
		pass_on(r);
		outlet_look(&job->sending.outlet);
		turnover_look(&job->turnover);
		e = take_messages(r, &message);
		if (e == STREAM_AGAIN) {
			const int late = session_time(&job->session, clock_mono_ns());

			e = late ? late : e;
			sending_time(&job->sending, clock_mono_ns());
		}
		/* WISH_FINISH excludes only later peers, so messages that are waiting now are still
		 * taken. */
		r->last |= wish == WISH_FINISH;
		tell(r);
	}
	buf_done(&message);
	return e;
}

int receiver_run(struct receiver *r)
{
	begin_watching(r);
	const int e = receive(r);

	await_final_word(r);
	/* prof-symd waits until prof-export closes the bus. */
	bus_free(r->bus);
	r->bus = NULL;
	hear(r);
	/* The launcher may have sent its last facts and closed the pipe in one step. */
	if (e != -ECANCELED) {
		(void)read_life(r);
		pass_on(r);
	}
	return e;
}
