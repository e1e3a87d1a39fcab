/* SPDX-License-Identifier: Apache-2.0 */
/* prof-export: a stream in, a file out. By hand from standard input; in the deployment from
 * prof-symd, into a descriptor of the launcher's, or, without a launcher, of a prof-export that has
 * the folder and not the stream (--output-dir). */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "common/bus.h"
#include "common/cell.h"
#include "common/clock.h"
#include "common/deploy.h"
#include "common/heap.h"
#include "common/log.h"
#include "common/toolpath.h"
#include "common/stdfds.h"
#include "tools/prof-export/journal.h"
#include "tools/prof-export/profiles.h"
#include "tools/prof-export/session.h"
#include "tools/prof-export/summary.h"

#define EXIT_CUT 3     /* what was collected is written, but the stream did not end as it should */
#define KEEP_FILES 168 /* a week of hours */
#define KEEP_MIB 1024
#define PATIENCE_S 5 /* for the stream's end, when told to stop */
#define STATUS_NS 250000000u
#define HELD_US 500000 /* between two status words while a write waits */
#define POLL_MS 2000   /* the stream has something every second */
#define CHUNK (256u << 10)
#define JOURNAL_TIMES 4 /* what a journal may hold, on a disk, of what memory may */
#define MEMORY_MIB 256
#define THREADS 16 /* nng's */
#define MAX_FILES 64

static const char usage_text[] =
	"Usage: prof-export [-f FORMAT] [-o FILE] <STREAM\n"
	"Turn a stream of prof-symd or prof-bpf, or a recording of one, into a file.\n"
	"\n"
	"  -f, --format FORMAT     folded, pprof, html, text or stream; else by FILE's ending:\n"
	"                          .folded, .pb.gz or .pprof, .html, .txt, .prof\n"
	"  -o, --output FILE       write there, not to standard output\n"
	"  -t, --threads           folded: the thread's name is the second frame\n"
	"  -l, --lines             folded, html: interpreted frames have their line numbers\n"
	"      --interpreter-frames\n"
	"                          show the native frames of an interpreter's own loop, too\n"
	"  -s, --summary           print figures and the hottest functions to standard error\n"
	"  -m, --memory-limit MIB  keep at most so much of the stream (256); samples beyond it are counted as lost\n"
	"  -v, --verbose           say more\n"
	"  -h, --help              print this\n"
	"      --version           print the version\n"
	"\n"
	"In a deployment (see prof-export(1)):\n"
	"  --run-dir DIR --ids GID:B:D:S:E --limit SIZE --status-fd N --life-fd N --output-fd N --journal-fd N\n"
	"  --run-dir DIR --ids GID:B:D:S:E --output-dir DIR [--keep FILES] [--keep-size MIB]\n"
	"\n"
	"Exit status: 0 done; 1 nothing or not all could be written; 3 all that came was written, but the stream was cut short.\n";

enum {
	OPTION_OUTPUT_FD = 256,
	OPTION_JOURNAL_FD,
	OPTION_OUTPUT_DIR,
	OPTION_KEEP,
	OPTION_KEEP_SIZE,
	OPTION_VERSION,
	OPTION_INTERPRETER
};

struct options {
	struct deploy deploy;
	struct session_options session;
	bool format_given, summary;
	const char *output;	/* NULL: standard output */
	int output_fd;		/* -1: by hand, or to be had from output_dir */
	int journal_fd;		/* -1: none */
	const char *output_dir; /* NULL: none */
	unsigned keep_files;
	uint64_t keep_bytes;
};

static struct session session;
static struct status status;
static volatile sig_atomic_t interrupts;

/* --- options --- */

static const struct {
	const char *name;
	const char *endings[3];
} formats[SESSION_FORMATS] = {
	[SESSION_FOLDED] = { "folded", { ".folded" } },
	[SESSION_PPROF] = { "pprof", { ".pb.gz", ".pprof" } },
	[SESSION_HTML] = { "html", { ".html" } },
	[SESSION_TEXT] = { "text", { ".txt" } },
	[SESSION_STREAM] = { "stream", { ".prof" } },
};

static bool format_by_name(const char *name, enum session_format *ret)
{
	for (int i = 0; i < SESSION_FORMATS; i++)
		if (!strcmp(name, formats[i].name)) {
			*ret = (enum session_format)i;
			return true;
		}
	return false;
}

static bool format_by_ending(const char *path, enum session_format *ret)
{
	const size_t len = strlen(path);

	for (int i = 0; i < SESSION_FORMATS; i++)
		for (const char *const *e = formats[i].endings; e < formats[i].endings + 3 && *e;
		     e++)
			if (len > strlen(*e) && !strcasecmp(path + len - strlen(*e), *e)) {
				*ret = (enum session_format)i;
				return true;
			}
	return false;
}

static bool parse_number(const char *s, unsigned long max, unsigned long *ret)
{
	char *end;

	errno = 0;
	*ret = strtoul(s, &end, 10);
	return *s >= '0' && *s <= '9' && !*end && !errno && *ret <= max;
}

/* 0; 1 when what was asked for is done; -EINVAL, logged. */
static int parse_options(int argc, char **argv, struct options *o)
{
	static const struct option longs[] = {
		{ "format", required_argument, NULL, 'f' },
		{ "output", required_argument, NULL, 'o' },
		{ "threads", no_argument, NULL, 't' },
		{ "lines", no_argument, NULL, 'l' },
		{ "interpreter-frames", no_argument, NULL, OPTION_INTERPRETER },
		{ "summary", no_argument, NULL, 's' },
		{ "memory-limit", required_argument, NULL, 'm' },
		{ "output-fd", required_argument, NULL, OPTION_OUTPUT_FD },
		{ "journal-fd", required_argument, NULL, OPTION_JOURNAL_FD },
		{ "output-dir", required_argument, NULL, OPTION_OUTPUT_DIR },
		{ "keep", required_argument, NULL, OPTION_KEEP },
		{ "keep-size", required_argument, NULL, OPTION_KEEP_SIZE },
		{ "verbose", no_argument, NULL, 'v' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, OPTION_VERSION },
		DEPLOY_OPTIONS,
		{ NULL, 0, NULL, 0 },
	};
	unsigned long n;
	int c;

	while ((c = getopt_long(argc, argv, "f:o:tlsm:vh", longs, NULL)) != -1) {
		switch (c) {
		case 'f':
			if (!format_by_name(optarg, &o->session.format)) {
				log_error(
					"--format %s: is none of folded, pprof, html, text, stream",
					optarg);
				return -EINVAL;
			}
			o->format_given = true;
			break;
		case 'o':
			o->output = optarg;
			break;
		case 't':
			o->session.threads = true;
			break;
		case 'l':
			o->session.lines = true;
			break;
		case OPTION_INTERPRETER:
			o->session.interpreter_frames = true;
			break;
		case 's':
			o->summary = true;
			break;
		case 'm':
			if (!parse_number(optarg, 65536, &n) || !n) {
				log_error("--memory-limit %s: is no number of MiB from 1 to 65536",
					  optarg);
				return -EINVAL;
			}
			o->session.memory_max = (size_t)n << 20;
			break;
		case OPTION_JOURNAL_FD:
		case OPTION_OUTPUT_FD:
			if (!parse_number(optarg, INT_MAX, &n)) {
				log_error("--%s %s: is no number of a descriptor",
					  c == OPTION_OUTPUT_FD ? "output-fd" : "journal-fd",
					  optarg);
				return -EINVAL;
			}
			*(c == OPTION_OUTPUT_FD ? &o->output_fd : &o->journal_fd) = (int)n;
			break;
		case OPTION_OUTPUT_DIR:
			o->output_dir = optarg;
			break;
		case OPTION_KEEP:
			if (!parse_number(optarg, 65536, &n) || !n) {
				log_error("--keep %s: is no number of files from 1 to 65536",
					  optarg);
				return -EINVAL;
			}
			o->keep_files = (unsigned)n;
			break;
		case OPTION_KEEP_SIZE:
			if (!parse_number(optarg, 1ul << 30, &n) || !n) {
				log_error("--keep-size %s: is no number of MiB from 1 to %lu",
					  optarg, 1ul << 30);
				return -EINVAL;
			}
			o->keep_bytes = (uint64_t)n << 20;
			break;
		case 'v':
			log_init("prof-export", LOG_INFO);
			break;
		case 'h':
			fputs(usage_text, stdout);
			return 1;
		case OPTION_VERSION:
			puts("prof-export " PROFPIPE_VERSION);
			return 1;
		case '?':
			fputs("Try `prof-export --help`.\n", stderr);
			return -EINVAL;
		default:
			if (deploy_option(&o->deploy, c, optarg))
				return -EINVAL;
		}
	}
	if (optind < argc) {
		log_error(
			"%s: is no option; the stream comes on standard input, and FILE is named by -o",
			argv[optind]);
		return -EINVAL;
	}
	if (o->output && !o->format_given && format_by_ending(o->output, &o->session.format))
		o->format_given = true;
	if (!o->format_given) {
		log_error(
			o->output
				? "%s: its ending names no format; give one with -f (folded, pprof, html, text, stream)"
				: "no format%s; give one with -f (folded, pprof, html, text, stream)",
			o->output ? o->output : "");
		return -EINVAL;
	}
	if (o->deploy.run_dir && o->output_fd < 0 && !o->output_dir) {
		log_error(
			"--run-dir without --output-fd: the output is the launcher's to open; without a launcher give --output-dir");
		return -EINVAL;
	}
	if (!o->deploy.run_dir && (o->output_fd >= 0 || o->output_dir)) {
		log_error("--output-%s without --run-dir; by hand, name the output with -o",
			  o->output_dir ? "dir" : "fd");
		return -EINVAL;
	}
	return 0;
}

/* --- both --- */

static void say_output(const char *name, int error)
{
	const char *remedy = "name another output with -o";

	if (error == -ENOSPC || error == -EDQUOT)
		remedy = "what is there is not whole: make room, or name another output with -o";
	else if (error == -EPIPE)
		remedy = "its reader went away before the end";
	else if (error == -ENOMEM)
		remedy = "lower --memory-limit, or end other programs";
	log_error("%s: %s; %s", name, strerror(-error), remedy);
}

static bool ended_well(void)
{
	const struct model_totals *t = model_totals(session.model);

	return t->ended && t->end_reason != END_PEER_LOST && t->end_reason != END_FAILED;
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
		return EXIT_FAILURE;
	}
	/* An output that fails keeps its error; a session without memory still writes what it has.
	 */
	if (verdict == STREAM_MALFORMED || verdict == STREAM_SCHEMA)
		model_lose(session.model, LOST_MALFORMED, 1);
	model_missing(session.model, stream_missing(&session.in));
	const int r = session_finish(&session);

	refresh_status(true);
	if (r) {
		say_output(output, r);
		return EXIT_FAILURE;
	}
	if (model_totals(session.model)->unkept)
		log_warning(
			"%llu samples did not fit below the ceiling of %zu MiB and are counted as lost; raise --memory-limit",
			(unsigned long long)model_totals(session.model)->unkept,
			o->session.memory_max >> 20);
	if (verdict == STREAM_MALFORMED || verdict == STREAM_SCHEMA)
		log_error("%s: is damaged; what came before the damage is in %s", what, output);
	else if (!ended_well())
		log_error("%s: was cut short; what came until then is in %s", what, output);
	return verdict == STREAM_MALFORMED || verdict == STREAM_SCHEMA || !ended_well()
		       ? EXIT_CUT
		       : EXIT_SUCCESS;
}

static int init_session(const struct options *o, int fd)
{
	int r = session_init(&session, &o->session, fd);

	if (r)
		log_error("%s", strerror(-r));
	return r;
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

	if (summary_print(&b, &status))
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

	if (r)
		log_error("cannot be confined: %s", strerror(-r));
	return r;
}

static int run_by_hand(const struct options *o)
{
	const bool binary = o->session.format == SESSION_PPROF ||
			    o->session.format == SESSION_STREAM;
	const char *name = o->output ? o->output : "standard output";
	bool created = false;
	int fd = STDOUT_FILENO;

	if (isatty(STDIN_FILENO)) {
		log_error(
			"standard input: is a terminal; give it what prof-symd or prof-bpf wrote");
		return EXIT_FAILURE;
	}
	if (o->output) {
		fd = open_output(o->output, &created);
		if (fd < 0)
			return EXIT_FAILURE;
	} else if (binary && isatty(fd)) {
		log_error("standard output: is a terminal, and %s is binary; name a file with -o",
			  formats[o->session.format].name);
		return EXIT_FAILURE;
	} else if ((fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY) {
		log_error("standard output: is closed; name a file with -o");
		return EXIT_FAILURE;
	}
	catch_signals();
	if (confine(created ? o->output : NULL) || init_session(o, fd))
		return EXIT_FAILURE;
	int result = finish(o, read_stream(), "standard input", name);

	/* A network file system may tell only now that there was no room. */
	if (fd != STDOUT_FILENO && close(fd) && result != EXIT_FAILURE) {
		say_output(name, -errno);
		result = EXIT_FAILURE;
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

/* What the launcher wants. */
static enum wish read_life(const struct deploy *d)
{
	struct pollfd p = { .fd = d->life_fd, .events = POLLIN };
	char byte;

	if (d->life_fd < 0 || poll(&p, 1, 0) <= 0)
		return WISH_NONE;
	const ssize_t n = read(d->life_fd, &byte, 1);

	return n == 0 ? WISH_LEAVE : n == 1 && byte == 'S' ? WISH_FINISH : WISH_NONE;
}

struct receiver {
	const struct deploy *deploy;
	struct bus *bus;
	struct journal journal;
	bool there, last; /* prof-symd is connected; no further one comes */
	bool deaf;	  /* it was shut out: what it still has on the way is not looked at */
	uint64_t told_ns;
};

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
	const enum wish wish = read_life(r->deploy);

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
	const int e = session_feed(&session, buf_span(message));

	if (e == STREAM_MALFORMED) {
		log_warning("prof-symd sent what is no stream; what came before is kept");
		model_lose(session.model, LOST_MALFORMED, 1);
	} else {
		if (e == STREAM_AGAIN || !e)
			journal_put(&r->journal, buf_span(message));
		if (e || !session.lost)
			return e;
	}
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

		if (event < 0)
			return event;
		if (event == BUS_EMPTY)
			break;
		if (event) {
			r->there = event == BUS_PEER_CAME;
			r->deaf = false;
			session_reopen(&session);
			if (!r->there && r->last)
				break;
			continue;
		}
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
		const enum wish wish = read_life(d);

		if (wish == WISH_LEAVE) {
			e = -ECANCELED;
			break;
		}
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

	if (fcntl(o->output_fd, F_SETFD, FD_CLOEXEC)) {
		log_error(
			"--output-fd %d: the descriptor is not open; it is the launcher's to give",
			o->output_fd);
		return EXIT_FAILURE;
	}
	if (o->journal_fd >= 0) {
		if (fcntl(o->journal_fd, F_SETFD, FD_CLOEXEC)) {
			log_error("--journal-fd %d: the descriptor is not open", o->journal_fd);
			return EXIT_FAILURE;
		}
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
	sandbox.max_data = budget_fence(b.export + b.bpf + b.deltas, THREADS);
	if (sandbox.max_data < 2 * o->session.memory_max)
		sandbox.max_data = 2 * o->session.memory_max;
	if (deploy_enter(&o->deploy, DEPLOY_EXPORT, &sandbox) || init_session(o, o->output_fd))
		return EXIT_FAILURE;
	int r = bus_listen(BUS_NAMED, o->deploy.run_dir, o->deploy.uid[DEPLOY_SYMD], &bus);

	if (r)
		log_error("%s: the socket for prof-symd cannot be opened: %s", o->deploy.run_dir,
			  strerror(-r));
	else
		r = deploy_seal(DEPLOY_EXPORT);
	if (r) {
		deploy_status(&o->deploy, &status, STATUS_FAILED);
		return EXIT_FAILURE;
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
	int result = EXIT_FAILURE;

	if (r == -ECANCELED)
		log_error("the launcher is gone; nothing more is written");
	else
		result = finish(o, r, "the stream of prof-symd", "the output");
	deploy_status(&o->deploy, &status, result == EXIT_FAILURE ? STATUS_FAILED : STATUS_DONE);
	session_done(&session);
	return result;
}

/* --- without a launcher --- */

/* In the child: this program again, with the file, a pipe that closes with its parent, and no
 * larger an output than is kept. */
static void become_writer(const struct options *o, const struct profiles *p, int life, int argc,
			  char **argv)
{
	const struct rlimit most = { .rlim_cur = o->keep_bytes, .rlim_max = o->keep_bytes };
	char path[4096], numbers[3][16];
	const char **all = calloc((size_t)argc + 7, sizeof(*all));
	sigset_t none;
	int r = all ? tool_path("prof-export", path, sizeof(path)) : -ENOMEM;

	if (r) {
		log_error("prof-export: %s: is where user %u may not run it", strerror(-r),
			  (unsigned)geteuid());
		_exit(EXIT_FAILURE);
	}
	memcpy(all, argv, (size_t)argc * sizeof(*all));
	snprintf(numbers[0], sizeof(numbers[0]), "%d", p->fd);
	snprintf(numbers[1], sizeof(numbers[1]), "%d", life);
	snprintf(numbers[2], sizeof(numbers[2]), "%d", p->journal);
	all[argc] = "--output-fd";
	all[argc + 1] = numbers[0];
	all[argc + 2] = "--life-fd";
	all[argc + 3] = numbers[1];
	if (p->journal >= 0) {
		all[argc + 4] = "--journal-fd";
		all[argc + 5] = numbers[2];
	}
	sigemptyset(&none);
	/* Beyond the limit writing fails, as on a full disk. */
	signal(SIGXFSZ, SIG_IGN);
	if (!setrlimit(RLIMIT_FSIZE, &most) && !fcntl(p->fd, F_SETFD, 0) &&
	    !fcntl(life, F_SETFD, 0) && (p->journal < 0 || !fcntl(p->journal, F_SETFD, 0)) &&
	    !sigprocmask(SIG_SETMASK, &none, NULL))
		execv(path, (char *const *)all);
	log_error("%s: %s", path, strerror(errno));
	_exit(EXIT_FAILURE);
}

/* Until the writer ends. SIGTERM and SIGINT are passed on when the stream does not end by itself
 * soon. Its wait status. */
static int await_writer(pid_t pid, const sigset_t *set)
{
	const struct timespec patience = { .tv_sec = PATIENCE_S };
	bool told = false;
	int how;

	for (;;) {
		if (waitpid(pid, &how, WNOHANG) == pid)
			return how;
		const int s = told ? sigtimedwait(set, NULL, &patience) : sigwaitinfo(set, NULL);

		if (s == SIGTERM || s == SIGINT)
			told = true;
		else if (s < 0 && errno == EAGAIN)
			kill(pid, SIGTERM);
	}
}

/* What opens the output reads no byte of the stream, and what reads the stream has no more of the
 * folder than the open file. */
static int run_keeping(const struct options *o, int argc, char **argv)
{
	struct profiles p = PROFILES_NONE;
	int life[2];
	sigset_t set;

	if (geteuid() != o->deploy.uid[DEPLOY_EXPORT]) {
		log_error(
			"--output-dir: I run as user %u and not as %u, which --ids names; have the service manager start me as that",
			(unsigned)geteuid(), (unsigned)o->deploy.uid[DEPLOY_EXPORT]);
		return EXIT_FAILURE;
	}
	p.max = o->keep_files;
	p.max_bytes = o->keep_bytes;
	int r = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) ||
				pipe2(life, O_CLOEXEC)
			? -errno
			: 0;

	if (!r)
		r = profiles_begin(&p, o->output_dir, formats[o->session.format].endings[0],
				   time(NULL));
	if (r) {
		log_error("%s: %s; give a folder that user %u can write with --output-dir",
			  o->output_dir, strerror(-r), (unsigned)geteuid());
		return EXIT_FAILURE;
	}
	if (p.resumed)
		log_warning("%s/%s: its writer was killed; it is gone on with", o->output_dir,
			    p.part);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	const pid_t pid = fork();

	if (!pid)
		become_writer(o, &p, life[0], argc, argv);
	const int how = pid < 0 ? W_EXITCODE(EXIT_FAILURE, 0) : await_writer(pid, &set);
	const int code = WIFEXITED(how) ? WEXITSTATUS(how) : EXIT_FAILURE;

	if (pid < 0)
		log_error("cannot start a writer: %s", strerror(errno));
	else if (WIFSIGNALED(how))
		log_error("%s/%s: its writer died of signal %d (%s)", o->output_dir, p.part,
			  WTERMSIG(how), strsignal(WTERMSIG(how)));
	r = profiles_end(&p, code == EXIT_SUCCESS || code == EXIT_CUT	? PROFILES_WHOLE
			     : WIFSIGNALED(how) || code == DEPLOY_AGAIN ? PROFILES_KILLED
									: PROFILES_FAILED);
	if (r)
		say_output(o->output_dir, r);
	return r && code == EXIT_SUCCESS ? EXIT_FAILURE : code;
}

int main(int argc, char **argv)
{
	struct options o = { .output_fd = -1,
			     .journal_fd = -1,
			     .keep_files = KEEP_FILES,
			     .keep_bytes = (uint64_t)KEEP_MIB << 20 };

	stdfds_hold();
	log_init("prof-export", LOG_WARNING);
	deploy_init(&o.deploy);
	const int r = parse_options(argc, argv, &o);

	if (r)
		return r > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
	heap_setup();
	o.session.many = o.deploy.run_dir != NULL;
	if (o.output_dir && o.output_fd < 0)
		return run_keeping(&o, argc, argv);
	struct budget budget;

	deploy_budget(&o.deploy, &budget);
	if (!o.session.memory_max)
		o.session.memory_max = o.deploy.run_dir || o.deploy.limit
					       ? budget.model
					       : (size_t)MEMORY_MIB << 20;
	return o.deploy.run_dir ? run_deployed(&o) : run_by_hand(&o);
}
