/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file of requests may be larger than the queues, so reading waits until they have room. But it
 * does not wait longer than --otlp-drain for a receiver that takes nothing. Then the oldest
 * requests are dropped and counted, so that the counts cover all of the input.
 */
#include "tools/prof-send/by_hand.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>
#include "common/base/command/exits.h"
#include "common/base/command/log.h"
#include "common/base/command/stdfds.h"
#include "common/base/system/clock.h"
#include "common/cell/confine/sandbox.h"
#include "tools/prof-send/intake/frames.h"
#include "tools/prof-send/job.h"

#define MEMORY (64ull << 20)
/* The user is waiting, so a receiver that does not answer gets only one attempt and a little
 * more. */
#define DRAIN_MS 15000
#define WAIT_MS 1000
#define CHUNK (64u << 10)

static struct job job;
static volatile sig_atomic_t interrupts;

/* The state of the input. */
struct input {
	struct frames frames;
	bool ended, broken;   /* broken: the input is truncated or cannot be read */
	uint64_t answered_ns; /* when a receiver last took or refused a request */
	uint64_t answered;    /* value of job_answers at that time */
};

static void on_signal(int number)
{
	interrupts++;
}

static void catch_signals(void)
{
	const struct sigaction a = { .sa_handler = on_signal };

	sigaction(SIGINT, &a, NULL);
	sigaction(SIGTERM, &a, NULL);
	signal(SIGPIPE, SIG_IGN);
}

static void lose(enum queue_loss loss)
{
	for (size_t i = 0; i < job.transfer_count; i++) {
		job.transfers[i].queue.counts.taken++;
		queue_lose(&job.transfers[i].queue, loss, 0);
	}
}

static void take_request(struct span plain)
{
	struct request *r = request_compress(&(struct request_facts){ .size = plain.len }, plain);

	if (!r) {
		lose(QUEUE_MEMORY);
		return;
	}
	job_put(&job, r);
	request_drop(r);
}

static void break_off(struct input *in)
{
	in->ended = in->broken = true;
}

static void take_bytes(struct input *in, struct span bytes)
{
	struct span request;

	for (;;) {
		const int r = frames_next(&in->frames, &bytes, &request);

		if (r == FRAMES_MORE)
			return;
		if (r == FRAMES_LARGE) {
			log_warning("standard input: a request is larger than 64 MiB, which no "
				    "receiver takes; it is lost");
			lose(QUEUE_TOO_LARGE);
			continue;
		}
		if (r) {
			log_error("standard input: %s; the rest is lost", strerror(-r));
			break_off(in);
			return;
		}
		take_request(request);
	}
}

static void read_some(struct input *in)
{
	static uint8_t chunk[CHUNK];
	const ssize_t n = read(STDIN_FILENO, chunk, sizeof(chunk));

	if (n > 0) {
		take_bytes(in, (struct span){ .data = chunk, .len = (size_t)n });
	} else if (n == 0) {
		in->ended = true;
		if (frames_at_end(&in->frames))
			return;
		log_error("standard input: ends within a request; give it requests with their "
			  "lengths, as `prof-export -f otlp` writes them");
		in->broken = true;
	} else if (errno != EINTR && errno != EAGAIN) {
		log_error("standard input: %s; the rest is lost", strerror(errno));
		break_off(in);
	}
}

/* Whether to read more: there is room in the queues, or no receiver has answered for too long. */
static bool may_read(struct input *in, uint64_t patience_ms)
{
	const uint64_t now = clock_mono_ns(), n = job_answers(&job);

	if (n != in->answered || !sender_is_half_full(&job.sender)) {
		in->answered = n;
		in->answered_ns = now;
	}
	return !sender_is_half_full(&job.sender) || now - in->answered_ns > patience_ms * 1000000u;
}

static void read_all(struct input *in, uint64_t patience_ms)
{
	in->answered_ns = clock_mono_ns();
	while (!in->ended && !interrupts) {
		const bool reads = may_read(in, patience_ms);
		struct curl_waitfd fd = { .fd = STDIN_FILENO, .events = CURL_WAIT_POLLIN };

		sender_wait(&job.sender, &fd, reads, WAIT_MS);
		if (reads && fd.revents)
			read_some(in);
		sender_work(&job.sender);
	}
}

static bool is_interrupted_again(void *ctx)
{
	return interrupts > 1;
}

static int confine(const struct options *o)
{
	const struct sandbox sandbox = { .caps = SANDBOX_NO_CAPS };
	const char *step;
	const int r = sandbox_enter(&sandbox, &step);

	if (r)
		log_error(
			"prof-send cannot drop its rights: %s: %s; report this, with the kernel's "
			"version",
			step, strerror(-r));
	return r || confine_enter(&job.confine, o, job.spool.folder) ? EXITS_FAILED : EXITS_GO_ON;
}

/* Logs how many requests remain. They are lost, or stay in the spool; the report says which. */
static void say_given_up(uint64_t drain_ms)
{
	for (size_t i = 0; i < job.transfer_count; i++) {
		const struct transfer *t = &job.transfers[i];

		if (!queue_is_empty(&t->queue))
			log_error("%s: %s; gave up after %g s, %zu of its requests remain; check "
				  "the receiver, or wait longer with --otlp-drain",
				  t->endpoint.name, t->failing[0] ? t->failing : "no answer",
				  (double)drain_ms / 1000, t->queue.count);
	}
}

int by_hand_run(const struct options *o)
{
	const uint64_t drain_ms = o->drain_ms ? o->drain_ms : DRAIN_MS;
	struct input in = { .frames = { .max = REQUEST_MAX } };

	if (isatty(STDIN_FILENO)) {
		log_error("standard input: is a terminal; give it the output of `prof-export -f "
			  "otlp`");
		return EXITS_USAGE;
	}
	catch_signals();
	int r = job_open(&job, o, o->memory_max ? o->memory_max : MEMORY);

	if (r == EXITS_GO_ON)
		r = confine(o);
	if (r == EXITS_GO_ON)
		r = job_begin(&job);
	if (r == EXITS_GO_ON && confine_seal(&job.confine))
		r = EXITS_FAILED;
	if (r != EXITS_GO_ON) {
		job_done(&job);
		return r;
	}
	read_all(&in, drain_ms);
	job_drain(&job, drain_ms, true, is_interrupted_again, NULL);
	if (!interrupts)
		say_given_up(drain_ms);
	job_end(&job);
	r = job_report(&job) && !in.broken ? EXITS_DONE : EXITS_FAILED;
	if (stdfds_flush() != EXITS_DONE)
		r = EXITS_FAILED;
	frames_done(&in.frames);
	job_done(&job);
	return r;
}
