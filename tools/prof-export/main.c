/* SPDX-License-Identifier: Apache-2.0 */
/* prof-export: a stream in, a file out. By hand from standard input; in the deployment from
 * prof-symd, into a descriptor of the launcher's, or, without a launcher, of a prof-export that has
 * the folder and not the stream (--output-dir). */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>
#include "common/wire/bus.h"
#include "common/cell/cell.h"
#include "common/base/clock.h"
#include "common/cell/deploy.h"
#include "common/base/exits.h"
#include "common/base/heap.h"
#include "common/base/log.h"
#include "common/base/stdfds.h"
#include "tools/prof-export/session/journal.h"
#include "tools/prof-export/store/supervisor.h"
#include "tools/prof-export/options.h"
#include "tools/prof-export/session/session.h"
#include "tools/prof-export/figures.h"

#define KEEP_FILES 168 /* a week of hours */
#define KEEP_MIB 1024
#define STATUS_NS 250000000u
#define HELD_US 500000 /* between two status words while a write waits */
#define POLL_MS 2000   /* the stream has something every second */
#define CHUNK (256u << 10)
#define JOURNAL_TIMES 4 /* what a journal may hold, on a disk, of what memory may */
#define MEMORY_MIB 256
#define THREADS 16 /* nng's */
#define MAX_FILES 64

static struct session session;
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
}

/* Writes the output; verdict is session_feed's last, what is the stream's name. An exit status. */
static int finish(const struct options *o, int verdict, const char *what, const char *output)
{
	if (!session.begun) {
		if (verdict == STREAM_SCHEMA)
			log_error(
				"%s: was made by a profpipe of another schema; use prof-export of that version",
				what);
		else if (verdict == STREAM_MALFORMED)
			log_error(
				"%s: is no profpipe stream; give it what prof-symd or prof-bpf wrote",
				what);
		else if (verdict < 0)
			log_error("%s: %s", what, strerror(-verdict));
		else
			log_error("%s: is %s; give it what prof-symd or prof-bpf wrote", what,
				  session.in.pending.len ? "cut short within its first message"
							 : "empty");
		return EXITS_FAILED;
	}
	/* An output that fails keeps its error; a session without memory still writes what it has.
	 */
	if (verdict == STREAM_MALFORMED || verdict == STREAM_SCHEMA)
		model_lose(session.model, LOST_MALFORMED, 1);
	model_missing(session.model, stream_missing(&session.in));
	const int r = session_finish(&session);

	refresh_status(true);
	if (r) {
		output_say(output, r);
		return EXITS_FAILED;
	}
	if (model_totals(session.model)->unkept)
		log_warning(
			"%llu samples did not fit below the ceiling of %zu MiB and are counted as lost; raise --%s",
			(unsigned long long)model_totals(session.model)->unkept,
			o->session.memory_max >> 20, o->deploy.run_dir ? "memory-limit" : "memory");
	if (verdict == STREAM_MALFORMED || verdict == STREAM_SCHEMA)
		log_error("%s: is damaged; what came before the damage is in %s", what, output);
	else if (!ended_well() && o->deploy.run_dir) /* the launcher knows why, and says so */
		log_warning("%s: has no end; what came until then is in %s", what, output);
	else if (!ended_well())
		log_error("%s: was cut short; what came until then is in %s", what, output);
	return verdict == STREAM_MALFORMED || verdict == STREAM_SCHEMA || !ended_well()
		       ? EXITS_CUT
		       : EXITS_DONE;
}

static int init_session(const struct options *o, int fd)
{
	const int r = session_init(&session, &o->session, fd);

	if (!r)
		return EXITS_GO_ON;
	log_error("the session cannot begin: %s", strerror(-r));
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

	/* Ctrl-C reaches the whole pipe: who feeds us ends, and the end comes down to us. A second
	 * one ends here, with what there is. */
	sigaction(SIGINT, &a, NULL);
	sigaction(SIGTERM, &a, NULL);
	signal(SIGPIPE, SIG_IGN);
}

/* Opens the output, which keeps what it has until there is something to write. A descriptor, or -1,
 * logged. */
static int open_output(const char *path, bool *ret_created)
{
	struct stat in, out;
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOCTTY, 0666);

	*ret_created = fd >= 0;
	if (fd < 0 && errno == EEXIST)
		fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY, 0666);
	if (fd < 0) {
		log_error("%s: %s; name an output that can be written with -o", path,
			  strerror(errno));
		return -1;
	}
	if (!fstat(STDIN_FILENO, &in) && !fstat(fd, &out) && S_ISREG(in.st_mode) &&
	    in.st_dev == out.st_dev && in.st_ino == out.st_ino) {
		log_error("%s: is the stream itself; name another output with -o", path);
		close(fd);
		return -1;
	}
	return fd;
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
		log_warning("standard input: bytes after the end of the stream were left out");
	return r;
}

static void print_summary(void)
{
	struct buf b = BUF_INIT(0);
	size_t done = 0;

	if (figures_print(&b, &status))
		log_error("the summary cannot be made: %s", strerror(ENOMEM));
	while (done < b.len) {
		const ssize_t n = write(STDERR_FILENO, b.data + done, b.len - done);

		if (n < 0 && errno != EINTR)
			break;
		done += n > 0 ? (size_t)n : 0;
	}
	buf_done(&b);
}

/* The file at `output` (NULL: none) can still be removed. */
static int confine(const char *output)
{
	char folder[PATH_MAX] = ".";
	const char *slash = output ? strrchr(output, '/') : NULL;

	/* A path that was opened is no longer than that. */
	if (slash)
		snprintf(folder, sizeof(folder), "%.*s", (int)(slash - output) + 1, output);
	const int r = cell_by_hand(CELL_WRITES, output ? folder : NULL);

	if (!r)
		return EXITS_GO_ON;
	log_error("cannot be confined: %s", strerror(-r));
	return EXITS_FAILED;
}

static int run_by_hand(const struct options *o)
{
	const char *name = o->output ? o->output : "standard output";
	bool created = false;
	int fd = STDOUT_FILENO;

	if (isatty(STDIN_FILENO)) {
		log_error(
			"standard input: is a terminal; give it what prof-symd or prof-bpf wrote");
		return EXITS_FAILED;
	}
	if (o->output) {
		fd = open_output(o->output, &created);
		if (fd < 0)
			return EXITS_FAILED;
	} else if (format_is_binary(o->session.format) && isatty(fd)) {
		log_error("standard output: is a terminal, and %s is binary; name a file with -o",
			  format_names[o->session.format]);
		return EXITS_FAILED;
	} else if ((fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY) {
		log_error("standard output: is closed; name a file with -o");
		return EXITS_FAILED;
	}
	catch_signals();
	int result = confine(created ? o->output : NULL);

	if (result == EXITS_GO_ON)
		result = init_session(o, fd);
	if (result != EXITS_GO_ON)
		return result;
	result = finish(o, read_stream(), "standard input", name);

	/* A network file system may tell only now that there was no room. */
	if (fd != STDOUT_FILENO && close(fd) && result != EXITS_FAILED) {
		output_say(name, -errno);
		result = EXITS_FAILED;
	}
	if (created && !session.begun)
		unlink(o->output);
	if (o->summary && session.begun)
		print_summary();
	session_done(&session);
	return result;
}

/* --- the deployment --- */

enum wish { WISH_NONE, WISH_FINISH, WISH_LEAVE };

struct receiver {
	const struct deploy *deploy;
	struct bus *bus;
	struct journal journal;
	struct deploy_word word; /* what the launcher said last */
	bool told;		 /* it said something that the session does not know yet */
	bool there, last;	 /* prof-symd is connected; no further one comes */
	bool deaf;	/* it was shut out: what it still has on the way is not looked at */
	unsigned rests; /* for want of memory, one behind the other */
	uint64_t told_ns;
};

/* What the launcher wants. */
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

/* A recording gets it before its end, so it is passed on before what came on the stream meanwhile.
 */
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
	/* What cannot be written the session's end tells of. */
	for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++)
		if (figures[i].value)
			(void)session_tell(&session, figures[i].name, figures[i].value);
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

/* While a write waits: who reads may be slow, and is not to be waited for when all is over. */
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

/* Who reads a pipe or a terminal may take as long as it likes. A timer interrupts each wait for it,
 * so that the launcher hears that we live; not before begin_watching, nor nng's threads. The list
 * of system calls has none for timers, so it is set before that. */
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

/* A sender that breaks the rules, or has none of its own any more, costs nobody else anything: the
 * next one begins where it ended. */
static int take_message(struct receiver *r, const struct buf *message)
{
	const int e = journal_feed(&r->journal, &session, buf_span(message));

	if (e == STREAM_MALFORMED)
		log_warning("prof-symd sent what is no stream; what came before is kept");
	else if (e || !session.lost)
		return e;
	r->deaf = true;
	bus_drop_peer(r->bus);
	return STREAM_AGAIN;
}

/* All that waits. session_feed's verdict, -errno. */
static int take_messages(struct receiver *r, struct buf *message)
{
	int e = STREAM_AGAIN;

	while (e == STREAM_AGAIN) {
		const int event = bus_recv(r->bus, message);

		/* It waits there, and who sends it does. */
		if (output_rest(&session.output, event, &r->rests))
			break;
		if (event < 0)
			return event;
		r->rests = 0;
		if (event == BUS_EMPTY)
			break;
		if (event) {
			r->there = event == BUS_PEER_CAME;
			r->deaf = false;
			journal_reopen(&r->journal, &session);
			if (!r->there && r->last)
				break;
			continue;
		}
		/* What the launcher said before this was sent belongs before it, if it is the end. */
		(void)read_life(r);
		pass_on(r);
		if (!r->deaf)
			e = take_message(r, message);
		tell(r);
	}
	return e;
}

/* Until the stream ends, the last prof-symd has gone, SIGTERM comes or the launcher goes.
 * session_feed's verdict, or -ECANCELED. */
static int receive(struct receiver *r)
{
	const struct deploy *d = r->deploy;
	struct buf message = BUF_INIT(0);
	int e = journal_replay(&r->journal, &session, tell, r);

	while (e == STREAM_AGAIN && !(r->last && !r->there) && interrupts < 2) {
		struct pollfd p[] = { { .fd = bus_fd(r->bus), .events = POLLIN },
				      { .fd = d->life_fd, .events = POLLIN } };

		poll(p, 2, POLL_MS);
		const enum wish wish = read_life(r);

		if (wish == WISH_LEAVE) {
			e = -ECANCELED;
			break;
		}
		pass_on(r);
		e = take_messages(r, &message);
		/* One that came just now is not the one that will not come. */
		r->last |= wish == WISH_FINISH;
		tell(r);
	}
	buf_done(&message);
	return e;
}

static int run_deployed(const struct options *o)
{
	struct budget b;
	struct sandbox sandbox = { .caps = SANDBOX_NO_CAPS,
				   .max_files = MAX_FILES,
				   .max_memory = 8ull * o->session.memory_max + (4ull << 30) };
	struct bus *bus = NULL;

	if (deploy_check_fd("output-fd", o->output_fd) ||
	    deploy_check_fd("journal-fd", o->journal_fd))
		return EXITS_FAILED;
	if (o->journal_fd >= 0) {
		/* What a predecessor wrote is written again; of what has no beginning to go back
		 * to, the launcher lets no second one write. */
		if (!(fcntl(o->output_fd, F_GETFL) & O_APPEND))
			(void)lseek(o->output_fd, 0, SEEK_SET);
	}
	/* Ctrl-C in the launcher's terminal is the launcher's. */
	signal(SIGINT, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	set_watch(o->output_fd);
	deploy_budget(&o->deploy, &b);
	/* When the output is written the samples' way is over, and what was taken for it is free.
	 */
	const uint64_t at_end = b.export + b.bpf + b.deltas;

	sandbox.max_data = budget_fence(b.export_most > at_end ? b.export_most : at_end, THREADS);
	if (sandbox.max_data < 2 * o->session.memory_max)
		sandbox.max_data = 2 * o->session.memory_max;
	if (deploy_enter(&o->deploy, DEPLOY_EXPORT, &sandbox) ||
	    init_session(o, o->output_fd) != EXITS_GO_ON)
		return EXITS_FAILED;
	int r = bus_listen(BUS_NAMED, o->deploy.run_dir, o->deploy.uid[DEPLOY_SYMD], &bus);

	if (r)
		log_error("%s: the socket for prof-symd cannot be opened: %s", o->deploy.run_dir,
			  strerror(-r));
	else
		r = deploy_seal(DEPLOY_EXPORT);
	if (r) {
		deploy_status(&o->deploy, &status, STATUS_FAILED);
		return EXITS_FAILED;
	}
	struct receiver receiver = { .deploy = &o->deploy,
				     .bus = bus,
				     .journal = { .fd = o->journal_fd,
						  .max = JOURNAL_TIMES * o->session.memory_max } };

	deploy_status(&o->deploy, &status, STATUS_READY);
	signal(SIGTERM, on_signal);
	begin_watching(&receiver);
	r = receive(&receiver);
	/* prof-symd waits for this. */
	bus_free(bus);
	/* Of what ended all at once. */
	if (r != -ECANCELED) {
		(void)read_life(&receiver);
		pass_on(&receiver);
	}
	int result = EXITS_FAILED;

	if (r == -ECANCELED)
		log_error("the launcher is gone; nothing more is written");
	else
		result = finish(o, r, "the stream of prof-symd", "the output");
	deploy_status(&o->deploy, &status, result == EXITS_FAILED ? STATUS_FAILED : STATUS_DONE);
	session_done(&session);
	return result;
}

int main(int argc, char **argv)
{
	struct options o = { .output_fd = -1,
			     .journal_fd = -1,
			     .keep_files = KEEP_FILES,
			     .keep_bytes = (uint64_t)KEEP_MIB << 20 };

	stdfds_hold();
	log_init("prof-export", LOG_WARNING);
	const int r = options_parse(argc, argv, &o);

	if (r != EXITS_GO_ON)
		return r;
	heap_setup();
	o.session.many = o.deploy.run_dir != NULL;
	if (o.output_dir && o.output_fd < 0)
		return supervisor_run(&o, argc, argv);
	struct budget budget;

	deploy_budget(&o.deploy, &budget);
	if (!o.session.memory_max && o.deploy.run_dir)
		o.session.share_most = budget.export_most;
	if (!o.session.memory_max)
		o.session.memory_max = o.deploy.run_dir || o.deploy.limit
					       ? budget.model
					       : (size_t)MEMORY_MIB << 20;
	return o.deploy.run_dir ? run_deployed(&o) : run_by_hand(&o);
}
