/* SPDX-License-Identifier: Apache-2.0 */
/* prof-export turns a stream into a file. By hand it reads standard input. In a deployment it reads
 * from prof-symd and writes to descriptors of the launcher. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>
#include "common/base/clock.h"
#include "common/base/exits.h"
#include "common/base/fd.h"
#include "common/base/heap.h"
#include "common/base/log.h"
#include "common/base/numbers.h"
#include "common/base/outfile.h"
#include "common/base/stdfds.h"
#include "common/cell/cell.h"
#include "common/cell/deploy.h"
#include "common/wire/bus.h"
#include "common/wire/datagram.h"
#include "tools/prof-export/figures.h"
#include "tools/prof-export/model/shares.h"
#include "tools/prof-export/options.h"
#include "tools/prof-export/session/journal.h"
#include "tools/prof-export/session/sending.h"
#include "tools/prof-export/session/session.h"
#include "tools/prof-export/session/turnover.h"

#define STATUS_NS 250000000u
#define HELD_US 500000 /* between two status words while a write waits */
#define POLL_MS 2000   /* the stream brings a message every second */
/* How long to wait for the first report of prof-bpf, the witness. prof-bpf sends it every second,
 * and more often until prof-export has received one. */
#define WITNESS_MS 1500
/* For a prof-bpf that has already reported to an earlier prof-export. */
#define WITNESS_LATE_MS 3000
#define WITNESS_STEP_MS 50
#define CHUNK (256u << 10)
#define JOURNAL_TIMES 4 /* the journal's maximum size, in maximum sizes of the model */
#define MEMORY_MIB 256
#define THREADS 16 /* threads that nng starts */
#define MAX_FILES 64

static struct session session;
static struct sending sending;
static struct turnover turnover = {
	.socket = -1, .output = -1, .journal = -1, .next_output = -1, .next_journal = -1
};
static struct status status;
static volatile sig_atomic_t interrupts;

/* --- both --- */

static bool ended_well(void)
{
	return model_ended_well(session.model);
}

static void refresh_status(bool with_top)
{
	model_status(session.model, &status, with_top);
	status.bytes = session.output.bytes;
	status.held = session.output.held;
	status.cut = with_top && !ended_well();
	turnover_status(&turnover, &status);
	sending_status(&sending, &status);
}

#define OWNERS_SAID 16

/* Warns about the owners whose stacks did not fit into the model. */
static void say_folded(const struct options *o)
{
	const struct share *w;
	const size_t n = model_shares(session.model, &w);
	unsigned said = 0;

	for (size_t i = 0; i < n && said < OWNERS_SAID; i++) {
		if (!w[i].folded && !w[i].lost)
			continue;
		said++;
		log_warning("user %u (container %u) has too many different stacks for %zu MiB: "
			    "%llu of its samples lost their frames, and %llu are lost; raise --%s",
			    (unsigned)w[i].owner, (unsigned)(w[i].owner >> 32),
			    o->session.memory_max >> 20, (unsigned long long)w[i].folded,
			    (unsigned long long)w[i].lost,
			    o->deploy.run_dir ? "memory-limit" : "memory");
	}
}

/* Writes the output and returns an exit status. verdict: the last result of session_feed; what: the
 * stream's name in messages. */
static int finish(const struct options *o, int verdict, const char *what, const char *output)
{
	if (!session.begun) {
		if (verdict == STREAM_SCHEMA)
			log_error("%s: was made by a profpipe of another schema; "
				  "use prof-export of that version",
				  what);
		else if (verdict == STREAM_MALFORMED)
			log_error("%s: is not a profpipe stream; give it the output of "
				  "prof-symd or prof-bpf",
				  what);
		else if (verdict < 0)
			log_error("%s: %s", what, strerror(-verdict));
		else
			log_error("%s: is %s; give it the output of prof-symd or prof-bpf", what,
				  session.in.pending.len ? "cut short within its first message"
							 : "empty");
		return EXITS_FAILED;
	}
	/* If the output has failed, it keeps its error. If memory ran out, the session still writes
	 * what it has. */
	if (verdict == STREAM_MALFORMED || verdict == STREAM_SCHEMA)
		model_lose(session.model, LOST_MALFORMED, 1);
	model_missing(session.model, stream_missing(&session.in));
	sending_finish(&sending);
	const int r = session_finish(&session);

	refresh_status(true);
	if (r) {
		output_say(output, r);
		return EXITS_FAILED;
	}
	say_folded(o);
	if (status.skipped_messages || status.skipped_fields)
		log_warning("%s: is of a newer version; %llu messages and %llu fields are unknown "
			    "to this one and were skipped; use prof-export of that version",
			    what, (unsigned long long)status.skipped_messages,
			    (unsigned long long)status.skipped_fields);
	if (model_totals(session.model)->unkept)
		log_warning(
			"%llu samples did not fit into %zu MiB and are counted as lost; raise --%s",
			(unsigned long long)model_totals(session.model)->unkept,
			o->session.memory_max >> 20, o->deploy.run_dir ? "memory-limit" : "memory");
	if (verdict == STREAM_MALFORMED || verdict == STREAM_SCHEMA)
		log_error("%s: is damaged; %s holds the part before the damage", what, output);
	else if (!ended_well() && o->deploy.run_dir) /* the launcher logs the reason */
		log_warning("%s: has no end message; %s holds the part that arrived", what, output);
	else if (!ended_well())
		log_error("%s: was cut short; %s holds the part that arrived", what, output);
	return verdict == STREAM_MALFORMED || verdict == STREAM_SCHEMA || !ended_well()
		       ? EXITS_CUT
		       : EXITS_DONE;
}

static int init_session(const struct options *o, int fd)
{
	const int r = session_init(&session, &o->session, fd);

	if (!r)
		return EXITS_GO_ON;
	log_error("the session cannot begin: %s; free memory on this host", strerror(-r));
	return EXITS_FAILED;
}

/* --- by hand --- */

static void on_signal(int number)
{
	interrupts += number == SIGINT ? 1 : 2;
}

static void catch_signals(void)
{
	struct sigaction a = { .sa_handler = on_signal };

	/* Ctrl-C signals all tools of the pipeline. The sender ends on it, and so the stream ends.
	 * A second Ctrl-C ends the wait for the stream, and prof-export writes what it has. */
	sigaction(SIGINT, &a, NULL);
	sigaction(SIGTERM, &a, NULL);
	signal(SIGPIPE, SIG_IGN);
}

/* Opens the output, and has the keeper hold its folder. Logs an error. */
static int open_output(struct outfile *f, const struct options *o)
{
	const struct outfile_how how = { .mode = o->mode,
					 .grows = format_streams(o->session.format) };
	struct stat in;
	int r = outfile_open(f, o->output, &how);

	if (r) {
		log_error("%s: %s", o->output, outfile_error(r));
		return EXITS_FAILED;
	}
	if (!fstat(STDIN_FILENO, &in) && S_ISREG(in.st_mode) && in.st_dev == f->dev &&
	    in.st_ino == f->ino) {
		log_error("%s: is the stream itself; name another output with -o", o->output);
		(void)outfile_end(f, false);
		return EXITS_FAILED;
	}
	r = outfile_hand_over(f);
	if (!r)
		return EXITS_GO_ON;
	log_error("%s: the process that renames it cannot be started: %s; allow more processes "
		  "(ulimit -u, pids.max)",
		  o->output, strerror(-r));
	outfile_drop(f);
	return EXITS_FAILED;
}

/* Gives the file its final name if it was written. Returns false after an error, which is
 * logged. */
static bool close_output(struct outfile *f, bool whole)
{
	int r = 0;

	if (session.begun)
		r = outfile_end(f, whole);
	else
		outfile_drop(f);
	if (r && f->hidden[0])
		log_error("%s: cannot be replaced: %s; the new file lies beside it as %s", f->path,
			  strerror(-r), f->hidden);
	else if (r)
		output_say(f->path, r);
	return !r;
}

static int read_stream(void)
{
	static uint8_t chunk[CHUNK];
	int r = STREAM_AGAIN;

	while (r == STREAM_AGAIN && interrupts < 2) {
		const ssize_t n = read(STDIN_FILENO, chunk, sizeof(chunk));

		if (n < 0 && errno != EINTR) {
			log_error("standard input: %s", strerror(errno));
			break;
		}
		if (!n)
			break;
		if (n > 0)
			r = session_feed(&session,
					 (struct span){ .data = chunk, .len = (size_t)n });
	}
	if (!r && session.in.pending.len > session.in.taken)
		log_warning("standard input: ignored bytes after the end of the stream");
	return r;
}

static void print_stats(void)
{
	struct buf b = BUF_INIT(0);

	if (figures_print(&b, &status))
		log_error("the figures cannot be made: %s", strerror(ENOMEM));
	(void)fd_write_all(STDERR_FILENO, b.data, b.len);
	buf_done(&b);
}

static int run_by_hand(const struct options *o)
{
	const char *name = o->output ? o->output : "standard output";
	struct outfile file = OUTFILE_NONE;
	int fd = STDOUT_FILENO;

	if (isatty(STDIN_FILENO)) {
		log_error("standard input: is a terminal; "
			  "give it the output of prof-symd or prof-bpf");
		return EXITS_USAGE;
	}
	if (o->output) {
		const int r = open_output(&file, o);

		if (r != EXITS_GO_ON)
			return r;
		fd = file.fd;
	} else if (format_is_binary(o->session.format) && isatty(fd)) {
		log_error("standard output: is a terminal, and %s is binary; name a file with -o",
			  format_names[o->session.format]);
		return EXITS_USAGE;
	} else if ((fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY) {
		log_error("standard output: is closed; name a file with -o");
		return EXITS_FAILED;
	}
	catch_signals();
	int result = cell_by_hand(CELL_WRITES) ? EXITS_FAILED : EXITS_GO_ON;

	if (result == EXITS_GO_ON)
		result = init_session(o, fd);
	if (result != EXITS_GO_ON) {
		outfile_drop(&file);
		return result;
	}
	result = finish(o, read_stream(), "standard input", name);
	if (!close_output(&file, result != EXITS_FAILED))
		result = EXITS_FAILED;
	if (o->stats && session.begun)
		print_stats();
	session_done(&session);
	return result;
}

/* --- the deployment --- */

enum wish { WISH_NONE, WISH_FINISH, WISH_LEAVE };

struct receiver {
	const struct deploy *deploy;
	struct bus *bus;
	struct journal journal;
	struct deploy_word word; /* the launcher's latest facts about the run */
	bool told;		 /* the session has not received these facts yet */
	bool there, last;	 /* prof-symd is connected; no other prof-symd will follow */
	bool deaf;		 /* prof-symd was dropped: ignore its leftovers */
	struct datagram witness; /* receives the reports of prof-bpf */
	unsigned peers;		 /* how many prof-symds have connected so far */
	unsigned rests;		 /* consecutive pauses for lack of memory */
	uint64_t told_ns;
};

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

	if (!r->told || !session.begun)
		return;
	r->told = false;
	/* If this cannot be written, session_finish reports it. */
	for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++)
		if (figures[i].value) {
			(void)session_tell(&session, figures[i].name, figures[i].value);
			sending_tell(&sending, figures[i].name, figures[i].value);
		}
}

/* Takes the waiting reports of prof-bpf. */
static void hear(struct receiver *r)
{
	struct witness_word word;

	while (!datagram_recv(&r->witness, &word, sizeof(word))) {
		model_witness(session.model, &word);
		sending_hear(&sending, &word);
	}
}

/* The first report contains the key, without which samples cannot be compared. */
static void await_witness(struct receiver *r, int ms)
{
	const uint64_t until = clock_mono_ns() + (uint64_t)ms * 1000000u;

	hear(r);
	while (r->witness.fd >= 0 && !model_has_witness(session.model) && clock_mono_ns() < until &&
	       !interrupts) {
		struct pollfd p = { .fd = r->witness.fd, .events = POLLIN };

		poll(&p, 1, WITNESS_STEP_MS);
		hear(r);
	}
}

/* prof-bpf reports its end before it ends the stream, and repeats this until the launcher tells it
 * to exit. If no such report comes, another process ended the stream. */
static void await_final_word(struct receiver *r)
{
	const uint64_t until = clock_mono_ns() + WITNESS_LATE_MS * 1000000ull;

	if (!model_has_witness(session.model) || !ended_well())
		return;
	hear(r);
	while (!model_has_final_word(session.model) && clock_mono_ns() < until && !interrupts) {
		struct pollfd p = { .fd = r->witness.fd, .events = POLLIN };

		poll(&p, 1, WITNESS_STEP_MS);
		hear(r);
	}
	model_over(session.model);
	sending_over(&sending);
}

static void tell(void *ctx)
{
	struct receiver *r = ctx;
	const uint64_t now = clock_mono_ns();

	if (now - r->told_ns < STATUS_NS)
		return;
	refresh_status(false);
	deploy_status(r->deploy, &status, STATUS_RUNNING);
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
	(void)number;
}

/* The reader of a pipe or terminal may be slow. A timer interrupts each write that waits for it, so
 * that prof-export can send status words meanwhile. Threads of nng inherit the blocked signal; only
 * begin_watching unblocks it, in the main thread. seccomp allows no timers, so this is called
 * before the filter is installed. */
static void set_watch(int fd)
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

	session.output.beat = on_held;
	session.output.beat_ctx = r;
	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

/* Switches to the next output if it is due. If the former output cannot be written, only that
 * output is lost. */
static void turn(struct receiver *r, const struct buf *message)
{
	if (!turnover_due(&turnover, &session, buf_span(message)))
		return;
	const int e = turnover_run(&turnover, &session, &r->journal);

	if (e)
		output_say("an output", e);
}

/* If a sender breaks the rules or loses its own sender, only the rest of its data is lost. The next
 * sender continues the session. */
static int take_message(struct receiver *r, const struct buf *message)
{
	const int e = journal_feed(&r->journal, &session, buf_span(message));

	sending_feed(&sending, buf_span(message));
	if (e == STREAM_MALFORMED)
		log_warning("prof-symd sent an invalid message; the stream before it is kept");
	else if (e || !session.lost)
		return e;
	r->deaf = true;
	bus_drop_peer(r->bus);
	return STREAM_AGAIN;
}

/* Takes all waiting messages. session_feed's verdict, -errno. */
static int take_messages(struct receiver *r, struct buf *message)
{
	int e = STREAM_AGAIN;

	while (e == STREAM_AGAIN) {
		const int event = bus_recv(r->bus, message);

		/* Leave the message in the bus. Its sender then waits too. */
		if (output_rest(&session.output, event, &r->rests))
			break;
		if (event < 0)
			return event;
		r->rests = 0;
		if (event == BUS_EMPTY)
			break;
		if (event) {
			r->there = event == BUS_PEER_CAME;
			r->peers += r->there;
			if (r->peers > 1) {
				model_interrupted(session.model, false);
				sending_interrupted(&sending, false);
			}
			r->deaf = false;
			journal_reopen(&r->journal, &session);
			sending_reopen(&sending);
			if (!r->there && r->last)
				break;
			continue;
		}
		/* If this message is the end, the session must get the launcher's earlier facts
		 * first. */
		(void)read_life(r);
		pass_on(r);
		if (session.begun || model_has_witness(session.model))
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

/* Receives until the stream ends, the last prof-symd leaves, SIGTERM arrives, or the launcher is
 * gone. Returns the result of session_feed, or -ECANCELED if the launcher is gone. */
static int receive(struct receiver *r)
{
	const struct deploy *d = r->deploy;
	struct buf message = BUF_INIT(0);

	if (journal_holds(&r->journal)) {
		await_witness(r, WITNESS_LATE_MS);
		model_interrupted(session.model, true);
		sending_interrupted(&sending, true);
	}
	session_replay(&session);
	int e = journal_replay(&r->journal, &session, tell, r);

	session_replayed(&session);
	sending_replay(&sending, &r->journal, tell, r);

	while (e == STREAM_AGAIN && !(r->last && !r->there) && interrupts < 2) {
		struct pollfd p[] = { { .fd = bus_fd(r->bus), .events = POLLIN },
				      { .fd = d->life_fd, .events = POLLIN },
				      { .fd = outlet_fd(&sending.outlet), .events = POLLIN },
				      { .fd = turnover.socket, .events = POLLIN } };

		poll(p, 4, POLL_MS);
		const enum wish wish = read_life(r);

		if (wish == WISH_LEAVE) {
			e = -ECANCELED;
			break;
		}
		pass_on(r);
		outlet_look(&sending.outlet);
		turnover_look(&turnover);
		e = take_messages(r, &message);
		if (e == STREAM_AGAIN) {
			const int late = session_time(&session, clock_mono_ns());

			e = late ? late : e;
			sending_time(&sending, clock_mono_ns());
		}
		/* WISH_FINISH excludes only later peers, so messages that are waiting now are still
		 * taken. */
		r->last |= wish == WISH_FINISH;
		tell(r);
	}
	buf_done(&message);
	return e;
}

static int run_deployed(struct options *o)
{
	struct budget b;
	struct sandbox sandbox = { .caps = SANDBOX_NO_CAPS,
				   .max_files = MAX_FILES,
				   .max_memory = 8ull * o->session.memory_max + (4ull << 30) };
	struct bus *bus = NULL;

	if (deploy_check_fd("output-fd", o->output_fd) ||
	    deploy_check_fd("journal-fd", o->journal_fd) || deploy_check_fd("next-fd", o->next_fd))
		return EXITS_FAILED;
	if (o->journal_fd >= 0) {
		/* The replay of the journal writes the output again from its beginning. The
		 * launcher restarts prof-export only if that is possible. */
		if (!(fcntl(o->output_fd, F_GETFL) & O_APPEND))
			(void)lseek(o->output_fd, 0, SEEK_SET);
	}
	turnover.socket = o->next_fd;
	turnover.output = o->output_fd;
	turnover.journal = o->journal_fd;
	turnover.file = o->file;
	/* The launcher handles Ctrl-C of the terminal. */
	signal(SIGINT, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	set_watch(o->output_fd);
	deploy_budget(&o->deploy, &b);
	/* While it writes the output at the end, prof-export may use the memory of the tools that
	 * have exited. */
	const uint64_t at_end = b.export + b.bpf + b.deltas;

	sandbox.max_data = budget_fence(numbers_larger(b.export_most, at_end), THREADS);
	if (sandbox.max_data < 2 * o->session.memory_max)
		sandbox.max_data = 2 * o->session.memory_max;
	if (deploy_enter(&o->deploy, DEPLOY_EXPORT, &sandbox))
		return EXITS_FAILED;
	const int sends = o->send ? sending_init(&sending, &o->session, o->output_fd >= 0) : 0;

	if (sends) {
		log_error("sending cannot begin: %s; free memory on this host", strerror(-sends));
		return EXITS_FAILED;
	}
	if (init_session(o, o->output_fd) != EXITS_GO_ON)
		return EXITS_FAILED;
	struct datagram witness = DATAGRAM_NONE;
	int r = datagram_bind(o->deploy.run_dir, WITNESS_FOLDER, WITNESS_NAME,
			      o->deploy.uid[DEPLOY_BPF], &witness);

	if (!r)
		r = bus_listen(BUS_NAMED, o->deploy.run_dir, o->deploy.uid[DEPLOY_SYMD], &bus);
	if (!r)
		r = sending_open(&sending, o->deploy.run_dir, o->deploy.uid[DEPLOY_SEND]);
	if (r)
		log_error("%s: the sockets cannot be opened: %s; name a folder in --run-dir that "
			  "prof-export can write to",
			  o->deploy.run_dir, strerror(-r));
	else
		r = deploy_seal();
	if (r) {
		deploy_status(&o->deploy, &status, STATUS_FAILED);
		return EXITS_FAILED;
	}
	struct receiver receiver = { .deploy = &o->deploy,
				     .bus = bus,
				     .witness = witness,
				     .journal = { .fd = o->journal_fd,
						  .max = JOURNAL_TIMES * o->session.memory_max } };

	deploy_status(&o->deploy, &status, STATUS_READY);
	signal(SIGTERM, on_signal);
	begin_watching(&receiver);
	r = receive(&receiver);
	await_final_word(&receiver);
	/* prof-symd waits until prof-export closes the bus. */
	bus_free(bus);
	hear(&receiver);
	/* The launcher may have sent its last facts and closed the pipe in one step. */
	if (r != -ECANCELED) {
		(void)read_life(&receiver);
		pass_on(&receiver);
	}
	int result = EXITS_FAILED;

	if (r == -ECANCELED)
		log_error("the launcher is gone; prof-export writes nothing more");
	else
		result = finish(o, r, "the stream of prof-symd", "the output");
	sending_end(&sending, r != -ECANCELED);
	sending_status(&sending, &status);
	deploy_status(&o->deploy, &status, result == EXITS_FAILED ? STATUS_FAILED : STATUS_DONE);
	session_done(&session);
	return result;
}

int main(int argc, char **argv)
{
	struct options o = {
		.mode = OUTFILE_MODE, .output_fd = -1, .journal_fd = -1, .next_fd = -1
	};

	stdfds_hold();
	log_init("prof-export", LOG_WARNING);
	const int r = options_parse(argc, argv, &o);

	if (r != EXITS_GO_ON)
		return r;
	heap_setup();
	o.session.many = o.deploy.run_dir != NULL;
	/* The first output of a run has the number 0. */
	o.session.joins = o.file > 0;
	if (!o.deploy.run_dir) {
		if (!o.session.memory_max)
			o.session.memory_max = (size_t)MEMORY_MIB << 20;
		return run_by_hand(&o);
	}
	struct budget budget;

	deploy_budget(&o.deploy, &budget);
	o.session.share_most = budget.export_most;
	o.session.memory_max = budget.model;
	return run_deployed(&o);
}
