/* SPDX-License-Identifier: Apache-2.0 */
/* prof-symd: names for native frames. See prof-symd(1). */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/utsname.h>
#include <unistd.h>
#include "common/cell.h"
#include "common/clock.h"
#include "common/deploy.h"
#include "common/heap.h"
#include "common/lastword.h"
#include "common/log.h"
#include "common/stdfds.h"
#include "tools/prof-symd/addresses.h"
#include "tools/prof-symd/dwarf.h"
#include "tools/prof-symd/dwarfkeeper.h"
#include "tools/prof-symd/dwarfworker.h"
#include "tools/prof-symd/finder.h"
#include "tools/prof-symd/jitfinder.h"
#include "tools/prof-symd/runtime.h"
#include "tools/prof-symd/serve.h"

#define ADDRESSES_DWARF (1ull << 30) /* bytes of DWARF of the one file of -e */
#define DIAL_MS 60000		     /* a launcher gives up no later */
#define MAX_ADDRESS_SPACE (2ull << 30)
#define MAX_FILES 512
#define BEAT_NS 1000000000u
#define THREADS 16		  /* nng's */
#define KEEPER_BYTES (2ull << 20) /* of who starts those that run libdw */
#define BY_HAND_HEAP (192ull << 20)
#define SHOWN_MAX 256 /* bytes of a path in a message */
#define CHUNK (64u << 10)
#define BATCH (64u << 10)
#define SAME_BOOT_NS 10000000000ull /* what clocks are set by, within a recording's life */

struct options {
	struct deploy deploy;
	const char *file; /* -e */
	const char *described;
	bool show_address, basenames;
	uint64_t memory; /* bytes; 0: as it comes */
};

static void usage(FILE *out)
{
	fputs("usage: prof-symd [-m MIB] <RAW.prof >NAMED.prof\n"
	      "       prof-symd -e FILE [-as] [-m MIB] [ADDR...]\n"
	      "       prof-symd --describe FILE\n"
	      "\n"
	      "Puts names on the native frames of a recorded stream, or on addresses of one file (from standard input when none are given).\n"
	      "\n"
	      "  -e, --exe FILE       print the functions, files and lines of ELF addresses of FILE\n"
	      "  -a, --addresses      print each address before its function\n"
	      "  -s, --basenames      print file names without their folders\n"
	      "  -f, -i, -C, -p       as always: functions, inlined calls, demangled, one line each\n"
	      "  -m, --memory MIB     memory for symbols and DWARF (16; with -e 1024)\n"
	      "      --describe FILE  print which interpreter FILE holds, and what is known of that build\n"
	      "  -v, --verbose        say more\n"
	      "      --help           print this\n"
	      "      --version        print the version\n"
	      "\n"
	      "Started by profpipe it also takes --run-dir, --ids, --limit, --status-fd and --life-fd.\n",
	      out);
}

/* --- libdw, in its own process --- */

/* Bytes that the first worker may take, and the most that one may have later; and what this process
 * may take, below that. */
struct heap {
	uint64_t first, most, own_fence;
};

/* False, with a message: it could not be started. */
static bool start_dwarf(struct heap heap)
{
	int control, r = dwarfkeeper_start(heap.most, &control);

	if (r) {
		log_error("the process that reads DWARF cannot be started: %s", strerror(-r));
		return false;
	}
	dwarf_use_keeper(control, DWARFWORKER_LIFE_S, heap.first);
	return true;
}

/* By hand: nobody starts it again. */
static void say_keeper(void)
{
	if (dwarf_keeper_gone())
		log_warning(
			"the process that starts libdw's is gone or was stopped: what came after it has no lines and inlined calls");
}

static void say_of_file(struct str path, const char *what)
{
	struct buf shown = BUF_INIT(0);

	if (log_escape(&shown, path, SHOWN_MAX) == 0)
		log_warning("%.*s: %s", (int)shown.len, (const char *)shown.data, what);
	buf_done(&shown);
}

static void say_killed(struct str path)
{
	say_of_file(
		path,
		"the process that reads its debug information was killed (by the kernel, for want of memory?): it is read once more");
}

static void say_lost(struct str path, unsigned kills)
{
	say_of_file(
		path,
		kills > 1
			? "the process that reads its debug information was killed twice (by the kernel, for want of memory?): it goes without inlined calls and lines; leave the tools more memory (of their cgroup or container, mostly)"
			: "its debug information ended the process that read it, or took too long; it goes without inlined calls and lines");
}

static void say_too_large(struct str path)
{
	say_of_file(
		path,
		"its debug information takes more memory than there is for it; it goes without inlined calls and lines; raise --memory-limit (further files are counted)");
}

static void say_too_large_by_hand(struct str path)
{
	say_of_file(
		path,
		"its debug information takes more memory than there is for it; it goes without inlined calls and lines; raise -m");
}

/* In the deployment it is started in our identity, and before we may start nothing any more. */
static int start_dwarf_confined(void *ctx)
{
	const struct heap *heap = ctx;

	if (!start_dwarf(*heap))
		return -ECANCELED;
	const int r = DWARFWORKER_ASAN ? 0 : sandbox_lower(RLIMIT_DATA, heap->own_fence);

	if (r)
		log_error("the memory cannot be bounded: %s", strerror(-r));
	return r;
}

/* --- addresses of one file --- */

static int put_out(struct buf *text)
{
	if (text->len && fwrite(text->data, 1, text->len, stdout) != text->len)
		return -errno;
	buf_reset(text);
	return 0;
}

static int print_addresses(const struct options *o, int count, char **args)
{
	static struct addresses a;
	struct buf text = BUF_INIT(0);
	struct program *p = NULL;
	char *line = NULL;
	size_t cap = 0;
	int fd, r, status = EXIT_FAILURE;

	a.show_address = o->show_address;
	a.basenames = o->basenames;
	fd = finder_open(o->file);
	if (fd < 0) {
		log_error("%s: %s", o->file, fd == -EINVAL ? "is no regular file" : strerror(-fd));
		return EXIT_FAILURE;
	}
	r = program_open(fd, o->memory ? o->memory : ADDRESSES_DWARF, &p);
	if (r) {
		log_error("%s: %s", o->file, r < 0 ? strerror(-r) : symfile_verdict_text(r));
		return EXIT_FAILURE;
	}
	if (program_is_cut(p)) {
		log_error("%s: %s", o->file, symfile_verdict_text(SYMFILE_MALFORMED));
		program_free(p);
		return EXIT_FAILURE;
	}
	finder_complete(p, o->file);
	for (int i = 0; count == 0 || i < count; i++) {
		const char *s;
		uint64_t address;

		if (count == 0) {
			ssize_t n = getline(&line, &cap, stdin);

			if (n < 0)
				break;
			while (n > 0 &&
			       (line[n - 1] == '\n' || line[n - 1] == ' ' || line[n - 1] == '\r'))
				line[--n] = '\0';
			if (n == 0)
				continue;
			s = line;
		} else {
			s = args[i];
		}
		if (!addresses_parse(s, &address)) {
			log_error("%s: is no address; give hexadecimal digits, with or without 0x",
				  s);
			goto out;
		}
		r = addresses_print(&a, p, o->file, address, &text);
		if (r == 0)
			r = put_out(&text);
		if (r == 0 && count == 0 && fflush(stdout) != 0)
			r = -errno;
		if (r) {
			log_error("%s: %s", o->file, strerror(-r));
			goto out;
		}
	}
	if (fflush(stdout) != 0) {
		log_error("standard output: %s", strerror(errno));
		goto out;
	}
	if (program_dwarf_lost(p))
		say_lost(str_from(o->file), program_dwarf_kills(p));
	else if (program_dwarf_kills(p) > 0)
		say_killed(str_from(o->file));
	if (program_dwarf_too_large(p))
		log_warning(
			"%s: its DWARF takes more than %llu MiB and was not used; raise it with -m",
			o->file,
			(unsigned long long)((o->memory ? o->memory : ADDRESSES_DWARF) >> 20));
	status = EXIT_SUCCESS;
out:
	free(line);
	buf_done(&text);
	say_keeper();
	program_free(p);
	return status;
}

/* --- the runtime in a file --- */

static int print_runtime(const char *path)
{
	struct buf text = BUF_INIT(0);
	struct runtime_build build;
	struct symfile *f;
	int fd = finder_open(path), r, status = EXIT_FAILURE;

	if (fd < 0) {
		log_error("%s: %s", path, fd == -EINVAL ? "is no regular file" : strerror(-fd));
		return EXIT_FAILURE;
	}
	r = symfile_open(fd, &f);
	if (r) {
		close(fd);
		log_error("%s: %s", path, r < 0 ? strerror(-r) : symfile_verdict_text(r));
		return EXIT_FAILURE;
	}
	r = runtime_describe(f, &build);
	if (r == 0)
		r = runtime_print(&build, &text);
	if (r == 0)
		r = put_out(&text);
	if (r == RUNTIME_NOT_MINE)
		log_error("%s: holds no interpreter that is known", path);
	else if (r)
		log_error("%s: %s", path, strerror(-r));
	else if (fflush(stdout) != 0)
		log_error("standard output: %s", strerror(errno));
	else
		status = EXIT_SUCCESS;
	buf_done(&text);
	symfile_free(f);
	return status;
}

/* --- a stream by hand --- */

struct by_hand {
	struct filestore files;
	struct jit jit;
	struct stream_in in;
	struct stream_out out;
	struct named *named;
	struct buf head; /* bytes read before it is known whether the stream is named already */
	bool known, named_already;
	bool same_kernel, same_boot;
};

/* Opens what the deployment would ask prof-bpf for. */
static int open_by_hand(void *ctx, const struct filestore_request *rq)
{
	struct by_hand *h = ctx;
	struct msg_file file;
	char path[1025];
	int fd = -1;

	if (!named_file(h->named, rq->file->file, &file))
		return -ENOENT;
	if (rq->want == PROGRAM_WANTS_NOTHING) {
		fd = finder_open_stream(&file, h->same_kernel);
	} else if (file.path.len < sizeof(path)) {
		memcpy(path, file.path.data, file.path.len);
		path[file.path.len] = '\0';
		fd = finder_debug(rq->want, rq->build_id, rq->name, path);
	}
	filestore_answer(&h->files, rq->id, fd < 0 ? -1 : fd, clock_mono_ns());
	return 0;
}

static void without_by_hand(void *ctx, struct filestore_file *f)
{
	const struct by_hand *h = ctx;
	struct msg_file file;

	if (!named_file(h->named, f->file, &file))
		return;
	if (f->dwarf_lost)
		say_lost(file.path, f->dwarf_kills);
	else
		(f->dwarf_too_large ? say_too_large_by_hand : say_killed)(file.path);
}

static int open_jit_by_hand(void *ctx, const struct jit_request *rq)
{
	struct by_hand *h = ctx;
	struct msg_process process;
	int fd = named_process(h->named, rq->process, &process)
			 ? jitfinder_open(rq->kind, &process, h->same_boot)
			 : -ENOENT;

	jit_answer(&h->jit, rq->id, fd < 0 ? -1 : fd, clock_mono_ns());
	return 0;
}

static int write_out(void *ctx, struct span bytes)
{
	(void)ctx;
	for (size_t done = 0; done < bytes.len;) {
		ssize_t n = write(STDOUT_FILENO, bytes.data + done, bytes.len - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		done += (size_t)n;
	}
	return 0;
}

static bool is_our_kernel(struct str kernel)
{
	struct utsname u;
	size_t len;

	if (uname(&u) < 0)
		return false;
	len = strlen(u.release);
	return kernel.len >= len && memcmp(kernel.data, u.release, len) == 0 &&
	       (kernel.len == len || kernel.data[len] == ' ');
}

/* The stream was recorded since this host was started. By the clock that goes on while it is
 * suspended. */
static bool is_our_boot(const struct msg_hello *m)
{
	uint64_t theirs = m->wall_ns - m->boot_ns, ours = clock_wall_ns() - clock_boot_ns();

	return (theirs > ours ? theirs - ours : ours - theirs) < SAME_BOOT_NS;
}

/* Nothing is waited for here but large files, which are read by pieces. */
static int run_by_pieces(struct by_hand *h)
{
	for (;;) {
		int r = named_run(h->named, clock_mono_ns());

		if (r != NAMED_WAIT)
			return r;
	}
}

/* Takes what was read. 0, enum stream_verdict, -errno. */
static int take_by_hand(struct by_hand *h)
{
	for (;;) {
		struct msg m;
		int r = stream_next(&h->in, &m);

		if (r)
			return r;
		if (m.id == MSG_HELLO && !h->known) {
			h->known = true;
			h->named_already = m.hello.kind == STREAM_NAMED;
			h->same_kernel = is_our_kernel(m.hello.kernel);
			h->same_boot = h->same_kernel && is_our_boot(&m.hello);
			if (h->named_already)
				r = write_out(NULL, buf_span(&h->head));
			buf_done(&h->head);
			if (r)
				return r;
		}
		if (h->named_already)
			continue;
		named_missing(h->named, stream_missing(&h->in));
		if (h->in.new_epoch || named_full(h->named)) {
			r = run_by_pieces(h);
			if (r)
				return r;
		}
		if (h->in.new_epoch) {
			do {
				r = named_forget(h->named, clock_mono_ns());
			} while (r == NAMED_WAIT);
			if (r)
				return r;
			h->in.new_epoch = false;
		}
		r = named_take(h->named, &m, clock_mono_ns());
		if (r == -ENOMEM) {
			filestore_relieve(&h->files);
			r = named_take(h->named, &m, clock_mono_ns());
		}
		if (r)
			return r;
	}
}

static void say_stream(int r, const struct by_hand *h)
{
	switch (r) {
	case STREAM_SCHEMA:
		log_error(
			"standard input: was recorded by a profpipe of another schema; name it with the version that recorded it");
		break;
	case STREAM_MALFORMED:
		if (h->known)
			log_error(
				"standard input: is damaged; what came before the damage was passed on");
		else
			log_error(
				"standard input: is no profpipe stream; give it what prof-bpf -o wrote");
		break;
	case STREAM_AGAIN:
		if (h->known)
			log_error(
				"standard input: is cut short, its end is missing; what is there was passed on");
		else
			log_error("standard input: is %s; give it what prof-bpf -o wrote",
				  h->in.pending.len ? "no whole profpipe stream" : "empty");
		break;
	default:
		log_error("the stream cannot be passed on: %s", strerror(-r));
	}
}

static int stream_by_hand(struct by_hand *h)
{
	static uint8_t chunk[CHUNK];
	int r = STREAM_AGAIN, end;

	while (r == STREAM_AGAIN) {
		ssize_t n = read(STDIN_FILENO, chunk, sizeof(chunk));
		struct span bytes = { .data = chunk, .len = n > 0 ? (size_t)n : 0 };

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			log_error("standard input: %s", strerror(errno));
			return EXIT_FAILURE;
		}
		if (n == 0)
			break;
		if (h->in.ended) {
			log_warning(
				"standard input: bytes after the end of the stream were left out");
			break;
		}
		if (!h->known)
			r = buf_append(&h->head, bytes.data, bytes.len);
		else
			r = h->named_already ? write_out(NULL, bytes) : 0;
		if (r >= 0)
			r = stream_feed(&h->in, bytes);
		if (r == 0 || r == -ENOBUFS)
			r = r ? STREAM_MALFORMED : take_by_hand(h);
		if (r == STREAM_AGAIN && !h->named_already) {
			end = run_by_pieces(h);
			filestore_tick(&h->files, clock_mono_ns());
			jit_tick(&h->jit, clock_mono_ns());
			if (end)
				r = end;
		}
	}
	if (h->in.ended && (r == STREAM_AGAIN || h->named_already))
		r = 0;
	if (r >= 0 && h->known && !h->named_already) {
		end = run_by_pieces(h);
		while (end == 0 && !named_ended(h->named)) {
			end = named_end(h->named, END_PEER_LOST, clock_mono_ns());
			end = end == NAMED_WAIT ? 0 : end;
		}
		if (end == 0)
			end = stream_flush(&h->out);
		r = end < 0 ? end : r;
	}
	if (r)
		say_stream(r, h);
	return r ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int run_by_hand(const struct options *o)
{
	static struct by_hand h;
	uint64_t budget = o->memory ? o->memory : FILESTORE_BUDGET;
	int r, status;

	if (isatty(STDIN_FILENO)) {
		usage(stderr);
		return EXIT_FAILURE;
	}
	if (isatty(STDOUT_FILENO)) {
		log_error("standard output: is a terminal; send it to a file or to prof-export");
		return EXIT_FAILURE;
	}
	signal(SIGPIPE, SIG_IGN);
	h.head = BUF_INIT(4 * MSG_MAX_SIZE);
	filestore_init(&h.files, budget,
		       budget > FILESTORE_DWARF_MAX ? budget : FILESTORE_DWARF_MAX, open_by_hand,
		       &h);
	h.files.without_hook = without_by_hand;
	h.files.without_ctx = &h;
	stream_in_init(&h.in);
	stream_out_init(&h.out, BATCH, write_out, NULL);
	r = named_new(&NAMED_LIMITS, &h.files, &h.out, &h.named);
	if (r == 0)
		r = jit_init(&h.jit, JIT_MEMORY, open_jit_by_hand, &h);
	if (r) {
		log_error("%s", strerror(-r));
		return EXIT_FAILURE;
	}
	named_use_jit(h.named, &h.jit);
	status = stream_by_hand(&h);
	say_keeper();
	named_free(h.named);
	jit_done(&h.jit);
	stream_in_done(&h.in);
	stream_out_done(&h.out);
	buf_done(&h.head);
	return status;
}

/* --- the deployment --- */

static int open_links(const struct deploy *d, struct serve_links *links)
{
	int r;

	r = bus_dial(BUS_NAMED, d->run_dir, d->uid[DEPLOY_EXPORT], DIAL_MS, &links->named);
	if (r) {
		log_error("%s: prof-export cannot be reached: %s", d->run_dir, strerror(-r));
		return r;
	}
	r = bus_dial(BUS_FILES, d->run_dir, d->uid[DEPLOY_BPF], DIAL_MS, &links->files);
	if (r == 0)
		r = fdlane_dial(BUS_FILES, d->run_dir, d->uid[DEPLOY_BPF], DIAL_MS, &links->lane);
	if (r == 0)
		r = bus_dial(BUS_STREAM, d->run_dir, d->uid[DEPLOY_BPF], DIAL_MS, &links->stream);
	if (r)
		log_error("%s: prof-bpf cannot be reached: %s", d->run_dir, strerror(-r));
	return r;
}

static int say_served(int r, const struct serve_counts *c)
{
	if (c->dwarf_too_large)
		log_warning(
			"memory limit: the debug information of %llu files was too much: their functions have the names of the symbol table, without lines and inlined calls; raise --memory-limit",
			(unsigned long long)c->dwarf_too_large);
	if (c->named.unnamed)
		log_warning("memory limit: %llu frames went without names; raise --memory-limit",
			    (unsigned long long)c->named.unnamed);
	switch (r) {
	case 0:
		if (c->keeper_gone)
			log_warning(
				"the process that starts libdw's is gone or was stopped; what came was passed on");
		else if (c->peer_lost)
			log_warning(
				"prof-bpf went before the end of its stream; what came was passed on");
		return c->peer_lost ? DEPLOY_AGAIN : EXIT_SUCCESS;
	case SERVE_LIFE_OVER:
		return EXIT_FAILURE;
	case SERVE_EXPORT_GONE:
		log_error(
			"prof-export is gone before the end of the stream; its own message says why");
		return DEPLOY_AGAIN;
	case SERVE_MALFORMED:
		log_error("prof-bpf sent what is no stream; what came before was passed on");
		return EXIT_FAILURE;
	case SERVE_SCHEMA:
		log_error(
			"prof-bpf is of another build: its messages have another schema; install one version of all tools");
		return EXIT_FAILURE;
	}
	log_error("%s", strerror(-r));
	return EXIT_FAILURE;
}

struct beat {
	const struct deploy *deploy;
	struct status status;
	uint64_t beaten_ns;
};

/* The loop turns: the launcher is to know, once a second. */
static void beat(void *ctx, uint64_t samples)
{
	struct beat *b = ctx;
	const uint64_t now_ns = clock_mono_ns();

	if (now_ns - b->beaten_ns < BEAT_NS)
		return;
	b->beaten_ns = now_ns;
	b->status.samples = samples;
	deploy_status(b->deploy, &b->status, STATUS_RUNNING);
}

static int run_deployed(const struct options *o)
{
	struct sandbox sandbox = { .caps = SANDBOX_NO_CAPS,
				   .max_files = MAX_FILES,
				   .max_memory = MAX_ADDRESS_SPACE };
	static struct beat b;
	struct serve_links links = {
		.life_fd = o->deploy.life_fd,
		.beat = beat,
		.ctx = &b,
		.say_killed = say_killed,
		.say_lost = say_lost,
		.say_too_large = say_too_large,
	};
	struct deploy deploy = o->deploy;
	struct budget budget;
	struct serve_counts counts = { 0 };
	int status = DEPLOY_AGAIN;

	b.deploy = &o->deploy;

	lastword_watch(LASTWORD_SLOW_S);
	deploy_budget(&o->deploy, &budget);
	struct budget most = budget;

	/* Who runs libdw may have what is granted later. */
	budget_symd(&most, budget.symd_most);
	sandbox.max_data = budget_fence(most.symd + 2 * o->memory, THREADS);
	struct heap heap = { .first = budget.dwarf + 2 * o->memory,
			     .most = budget.dwarf_most + 2 * o->memory,
			     .own_fence = budget_fence(
				     most.symd - most.dwarf - KEEPER_BYTES + o->memory, THREADS) };

	deploy.confined = start_dwarf_confined;
	deploy.confined_ctx = &heap;
	if (deploy_enter(&deploy, DEPLOY_SYMD, &sandbox) != 0)
		return EXIT_FAILURE;
	if (open_links(&o->deploy, &links) == 0 && deploy_seal(DEPLOY_SYMD) == 0) {
		deploy_status(&o->deploy, &b.status, STATUS_READY);
		status = say_served(serve_run(&links, &budget, o->memory, &counts), &counts);
	}
	b.status.samples = counts.named.samples;
	deploy_status(&o->deploy, &b.status, status == EXIT_SUCCESS ? STATUS_DONE : STATUS_FAILED);
	fdlane_free(links.lane);
	bus_free(links.stream);
	bus_free(links.files);
	bus_free(links.named);
	return status;
}

/* heap: of who runs libdw, which is started before nothing can be; 0: nobody does. */
static bool confine(enum cell_hand how, uint64_t heap)
{
	if (heap && !start_dwarf((struct heap){ .first = heap, .most = heap }))
		return false;
	const int r = cell_by_hand(how, NULL);

	if (r)
		log_error("cannot be confined: %s", strerror(-r));
	return r == 0;
}

static bool parse_memory(const char *s, uint64_t *ret)
{
	char *end;
	unsigned long mib;

	errno = 0;
	mib = strtoul(s, &end, 10);
	if (errno || end == s || *end || s[0] == '-' || mib < 1 || mib > 65536)
		return false;
	*ret = (uint64_t)mib << 20;
	return true;
}

int main(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "exe", required_argument, NULL, 'e' },
		{ "addresses", no_argument, NULL, 'a' },
		{ "basenames", no_argument, NULL, 's' },
		{ "functions", no_argument, NULL, 'f' },
		{ "inlines", no_argument, NULL, 'i' },
		{ "demangle", no_argument, NULL, 'C' },
		{ "pretty-print", no_argument, NULL, 'p' },
		{ "memory", required_argument, NULL, 'm' },
		{ "describe", required_argument, NULL, 'D' },
		{ "verbose", no_argument, NULL, 'v' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		DEPLOY_OPTIONS,
		{ NULL, 0, NULL, 0 },
	};
	struct options o = { 0 };
	int c;

	stdfds_hold();
	log_init("prof-symd", LOG_WARNING);
	deploy_init(&o.deploy);
	while ((c = getopt_long(argc, argv, "e:asfiCpm:vh", longs, NULL)) != -1) {
		switch (c) {
		case 'e':
			o.file = optarg;
			break;
		case 'a':
			o.show_address = true;
			break;
		case 's':
			o.basenames = true;
			break;
		case 'f':
		case 'i':
		case 'C':
		case 'p':
			break;
		case 'm':
			if (!parse_memory(optarg, &o.memory)) {
				log_error("--memory %s: is no number of MiB from 1 to 65536",
					  optarg);
				return EXIT_FAILURE;
			}
			break;
		case 'D':
			o.described = optarg;
			break;
		case 'v':
			log_init("prof-symd", LOG_INFO);
			break;
		case 'h':
			usage(stdout);
			return stdfds_flush();
		case 'V':
			puts("prof-symd " PROFPIPE_VERSION);
			return stdfds_flush();
		case '?':
			fputs("Try `prof-symd --help`.\n", stderr);
			return EXIT_FAILURE;
		default:
			if (deploy_option(&o.deploy, c, optarg) != 0)
				return EXIT_FAILURE;
		}
	}
	/* Large blocks go back to the system as soon as they are freed, whatever was freed before.
	 */
	heap_setup();
	if (o.described)
		return confine(CELL_READS, 0) ? print_runtime(o.described) : EXIT_FAILURE;
	if (o.file &&
	    !confine(CELL_READS, BY_HAND_HEAP + 2 * (o.memory ? o.memory : ADDRESSES_DWARF)))
		return EXIT_FAILURE;
	if (o.file)
		return print_addresses(&o, argc - optind, argv + optind);
	if (optind < argc) {
		log_error(
			"%s: is no option; addresses need -e FILE, and a stream comes on standard input",
			argv[optind]);
		return EXIT_FAILURE;
	}
	if (o.deploy.run_dir)
		return run_deployed(&o);
	return confine(CELL_READS_BELOW,
		       BY_HAND_HEAP + 2 * (o.memory ? o.memory : FILESTORE_BUDGET))
		       ? run_by_hand(&o)
		       : EXIT_FAILURE;
}
