/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-symd/by_hand/recording.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>
#include "common/base/bytes/numbers.h"
#include "common/base/command/exits.h"
#include "common/base/command/log.h"
#include "common/base/files/fd.h"
#include "common/base/system/clock.h"
#include "common/names/jit/jitfinder.h"
#include "common/names/program/finder.h"
#include "common/wire/stream.h"
#include "tools/prof-symd/files/worker_warnings.h"
#include "tools/prof-symd/stream/namer.h"

#define CHUNK (64u << 10)
/* How much a clock may have been adjusted since the recording. */
#define SAME_BOOT_NS 10000000000ull

struct recording {
	struct filestore files;
	struct jit jit;
	struct stream_in in;
	struct stream_out out;
	struct namer *namer;
	struct buf head; /* bytes buffered until it is known whether the stream already has names */
	bool known, named_already;
	bool same_kernel, same_boot;
};

/* Opens the file that a deployment would request from prof-bpf. */
static int open_file(void *ctx, const struct filestore_request *rq)
{
	struct recording *h = ctx;
	struct msg_file file;
	char path[1025];
	int fd = -1;

	if (!namer_file(h->namer, rq->file->file, &file))
		return -ENOENT;
	if (rq->want == PROGRAM_WANTS_NOTHING) {
		fd = finder_open_stream(&file, h->same_kernel);
	} else if (!rq->place && file.path.len < sizeof(path)) {
		memcpy(path, file.path.data, file.path.len);
		path[file.path.len] = '\0';
		fd = finder_debug(rq->want, rq->build_id, rq->name, path);
	}
	filestore_answer(&h->files, rq->id, fd < 0 ? -1 : fd, clock_mono_ns());
	return 0;
}

static void warn_without(void *ctx, struct filestore_file *f)
{
	const struct recording *h = ctx;
	struct msg_file file;

	if (!namer_file(h->namer, f->file, &file))
		return;
	if (f->dwarf_lost)
		worker_warnings_lost(file.path, f->dwarf_kills);
	else
		(f->dwarf_too_large ? worker_warnings_too_large_by_hand
				    : worker_warnings_killed)(file.path);
}

static int open_jit(void *ctx, const struct jit_request *rq)
{
	struct recording *h = ctx;
	struct msg_process process;
	int fd = namer_process(h->namer, rq->process, &process)
			 ? jitfinder_open(rq->kind, &process, h->same_boot)
			 : -ENOENT;

	jit_answer(&h->jit, rq->id, fd < 0 ? -1 : fd, clock_mono_ns());
	return 0;
}

static void say_code_lost(void *ctx, uint64_t process, uint32_t pid)
{
	worker_warnings_code_lost(pid);
}

static int write_out(void *ctx, struct span bytes)
{
	return fd_write_all(STDOUT_FILENO, bytes.data, bytes.len);
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

/* Whether the stream was recorded since this host booted, by the clock that includes suspend. */
static bool is_our_boot(const struct msg_hello *m)
{
	uint64_t recorded_ns = m->wall_ns - m->boot_ns, own_ns = clock_wall_ns() - clock_boot_ns();

	return (recorded_ns > own_ns ? recorded_ns - own_ns : own_ns - recorded_ns) < SAME_BOOT_NS;
}

/* Calls namer_run until nothing waits. Here only large perf maps and jitdumps wait, since they are
 * read in pieces. */
static int run_namer(struct recording *h)
{
	for (;;) {
		int r = namer_run(h->namer, clock_mono_ns());

		if (r != NAMER_WAIT)
			return r;
	}
}

/* The bytes that were read behind the end of the stream. */
static size_t behind_end(const struct recording *h)
{
	return h->in.ended ? h->in.pending.len - h->in.taken : 0;
}

/* Takes the messages that were read. Returns 0 if bytes follow the end of the stream, else enum
 * stream_verdict or -errno. */
static int take(struct recording *h)
{
	while (!h->in.ended) {
		struct msg m;
		int r = stream_next(&h->in, &m);

		if (r)
			return r;
		if (m.id == MSG_HELLO && !h->known) {
			h->known = true;
			h->named_already = m.hello.kind == MSG_STREAM_NAMED;
			h->same_kernel = is_our_kernel(m.hello.kernel);
			h->same_boot = h->same_kernel && is_our_boot(&m.hello);
		}
		if (h->named_already)
			continue;
		namer_missing(h->namer, stream_missing(&h->in));
		namer_skipped(h->namer, &h->in.skipped);
		if (h->in.new_epoch || namer_full(h->namer)) {
			r = run_namer(h);
			if (r)
				return r;
		}
		if (h->in.new_epoch) {
			do {
				r = namer_forget(h->namer, clock_mono_ns());
			} while (r == NAMER_WAIT);
			if (r)
				return r;
			h->in.new_epoch = false;
		}
		r = namer_take(h->namer, &m, clock_mono_ns());
		if (r == -ENOMEM) {
			filestore_relieve(&h->files);
			r = namer_take(h->namer, &m, clock_mono_ns());
		}
		if (r)
			return r;
	}
	return behind_end(h) ? 0 : STREAM_AGAIN;
}

static void say_stream(int r, const struct recording *h)
{
	switch (r) {
	case STREAM_SCHEMA:
		log_error("standard input: recorded by a profpipe with another schema; "
			  "use prof-symd of that version");
		break;
	case STREAM_MALFORMED:
		if (h->known)
			log_error("standard input: damaged; "
				  "the part before the damage was passed on");
		else
			log_error("standard input: not a profpipe stream; "
				  "pass a recording, such as one of prof-bpf -o");
		break;
	case STREAM_AGAIN:
		if (h->known)
			log_error("standard input: cut short, its end is missing; "
				  "the part that is there was passed on");
		else
			log_error(
				"standard input: %s; pass a recording, such as one of prof-bpf -o",
				h->in.pending.len ? "not a whole profpipe stream" : "empty");
		break;
	default:
		log_error("the stream cannot be passed on: %s; %s", strerror(-r),
			  r == -ENOMEM ? "free memory on this host"
				       : "see where standard output goes");
	}
}

/* Logs once that the stream has parts of a newer version, which are skipped. A stream that already
 * has names is passed on byte by byte. */
static void say_skipped(const struct recording *h)
{
	const struct stream_skipped *s = &h->in.skipped;

	if (!h->named_already && (s->messages || s->fields))
		log_warning("standard input: %llu messages and %llu fields of a newer version were "
			    "skipped; use prof-symd of that version",
			    (unsigned long long)s->messages, (unsigned long long)s->fields);
}

/* Passes on a stream that already has names, up to its end. Its first bytes wait in h->head. */
static int pass_on(struct recording *h, struct span bytes)
{
	struct span whole = h->head.len ? buf_span(&h->head) : bytes;

	whole.len -= behind_end(h);
	const int r = h->named_already ? write_out(NULL, whole) : 0;

	buf_done(&h->head);
	return r;
}

static int run(struct recording *h)
{
	static uint8_t chunk[CHUNK];
	int r = STREAM_AGAIN, end;

	while (r == STREAM_AGAIN) {
		ssize_t n = read(STDIN_FILENO, chunk, sizeof(chunk));
		struct span bytes = { .data = chunk, .len = n > 0 ? (size_t)n : 0 };

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			log_error("standard input: %s; pass a recording, such as one of prof-bpf "
				  "-o",
				  strerror(errno));
			return EXITS_FAILED;
		}
		if (n == 0)
			break;
		if (!h->known)
			r = buf_append(&h->head, bytes.data, bytes.len);
		if (r >= 0)
			r = stream_feed(&h->in, bytes);
		if (r == 0 || r == -ENOBUFS)
			r = r ? STREAM_MALFORMED : take(h);
		if (r >= 0 && h->known) {
			end = pass_on(h, bytes);
			r = end ? end : r;
		}
		if (r == STREAM_AGAIN && !h->named_already) {
			end = run_namer(h);
			filestore_tick(&h->files, clock_mono_ns());
			jit_tick(&h->jit, clock_mono_ns());
			if (end)
				r = end;
		}
	}
	if (behind_end(h))
		log_warning("standard input: ignored bytes after the end of the stream");
	if (h->in.ended && r == STREAM_AGAIN)
		r = 0;
	if (r >= 0 && h->known && !h->named_already) {
		end = run_namer(h);
		while (end == 0 && !namer_ended(h->namer)) {
			end = namer_end(h->namer, MSG_END_PEER_LOST, clock_mono_ns());
			end = end == NAMER_WAIT ? 0 : end;
		}
		if (end == 0)
			end = stream_flush(&h->out);
		r = end < 0 ? end : r;
	}
	say_skipped(h);
	if (r)
		say_stream(r, h);
	return r ? EXITS_FAILED : EXITS_DONE;
}

int recording_name(uint64_t memory, enum reporting_names names)
{
	static struct recording h;
	uint64_t budget = memory ? memory : FILESTORE_BUDGET;
	int r, status;

	if (isatty(STDIN_FILENO)) {
		log_error("standard input: is a terminal; pass a recording, "
			  "or name a file with -e FILE");
		return EXITS_USAGE;
	}
	if (isatty(STDOUT_FILENO)) {
		log_error("standard output: is a terminal; send it to a file or to prof-export");
		return EXITS_USAGE;
	}
	signal(SIGPIPE, SIG_IGN);
	h.head = BUF_INIT(4 * MSG_MAX_SIZE);
	filestore_init(&h.files, budget, numbers_larger(budget, FILESTORE_DWARF_MAX), open_file,
		       &h);
	h.files.without_hook = warn_without;
	h.files.without_ctx = &h;
	stream_in_init(&h.in);
	stream_out_init(&h.out, STREAM_BATCH, write_out, NULL);
	r = namer_new(&NAMER_LIMITS, &h.files, &h.out, &h.namer);
	if (r == 0)
		r = jit_init(&h.jit, JIT_MEMORY, open_jit, &h);
	if (r) {
		log_error("naming cannot begin: %s; free memory on this host", strerror(-r));
		return EXITS_FAILED;
	}
	h.jit.say_lost = say_code_lost;
	namer_use_jit(h.namer, &h.jit);
	namer_leave_out(h.namer, names);
	status = run(&h);
	worker_warnings_keeper_gone();
	worker_warnings_codes_lost(h.jit.lost);
	namer_free(h.namer);
	jit_done(&h.jit);
	stream_in_done(&h.in);
	stream_out_done(&h.out);
	buf_done(&h.head);
	return status;
}
