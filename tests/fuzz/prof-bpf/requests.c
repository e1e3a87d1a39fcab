/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Input: the requests of a compromised prof-symd to prof-bpf, in any order. It asks for files of
 * the stream, debug files by any name, perf maps and jitdumps, and memory at any addresses; it
 * sends descriptions of files, and bytes that are no stream; and it dies. The target provides all
 * files and memory.
 *
 * An input is a list of steps: a byte that selects the step, one that belongs to it, and its data.
 *
 * Checks:
 * - no name leaves its folder
 * - no more memory is read than allowed
 * - each request is answered once
 * - every descriptor is closed
 * - after a peer broke the rules, nothing of it is read
 */
#include <unistd.h>
#include "common/base/command/log.h"
#include "tests/fuzz/fake_peer.h"
#include "tools/prof-bpf/host/lookups/jitfiles.h"
#include "tools/prof-bpf/host/host.h"
#include "tools/prof-bpf/host/memory/memory.h"
#include "tools/prof-bpf/open/opening/opening.h"
#include "tools/prof-bpf/host/processes/processes.h"
#include "tools/prof-bpf/kernel/loader.h"
#include "tools/prof-bpf/kernel/runtimes.h"
#include "tools/prof-bpf/open/readers/reader.h"
#include "tools/prof-bpf/peers/file_server.h"
#include "tools/prof-bpf/peers/offers.h"
#include "tools/prof-bpf/peers/parser_deaths.h"
#include "tools/prof-bpf/peers/requests.h"
#include "tools/prof-bpf/host/lookups/debugsearch.h"
#include "tools/prof-bpf/host/publish/publish.h"

#define FILES 4
#define MAX_STEPS 40
#define PENDING 256
#define PIECE 64 /* most bytes read at one address */

enum step { ASK_FILE, ASK_DEBUG, ASK_JIT, ASK_MEMORY, DESCRIBE, RAW, COMPLETE, WENT, BUSY, STEPS };

/* A call that waits for the opener or the reader. */
struct pending {
	opener_done *opened;
	reader_done *read;
	void *ctx;
	uint32_t pieces;
	uint64_t lengths[READER_PIECES];
};

static struct {
	struct requests requests;
	struct parser_deaths deaths;
	struct offers offers;
	struct host_file files[FILES];
	struct host_process process;
	struct pending pending[PENDING];
	unsigned pending_count;
	int fds; /* open */
	uint64_t asked, answered;
	struct msg_scratch scratch;
} bench;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* --- functions that requests.c, parser_deaths.c and memory.c call --- */

void __wrap_log_print(enum log_level level, const char *fmt, ...);
void __wrap_log_print(enum log_level level, const char *fmt, ...)
{
}

int __real_close(int fd);
int __wrap_close(int fd);
int __wrap_close(int fd)
{
	if (fd <= FAR_FD) /* the memory with the last word */
		return __real_close(fd);
	must(bench.fds > 0);
	bench.fds--;
	return 0;
}

static int wait_for(struct pending p)
{
	if (bench.pending_count == PENDING)
		return -ENOBUFS;
	bench.pending[bench.pending_count++] = p;
	return 0;
}

struct host_file *host_file(struct host *h, uint32_t id)
{
	return id && id <= FILES ? &bench.files[id - 1] : NULL;
}

struct owner *host_file_owner(const struct host_file *f)
{
	return NULL;
}

struct host_process *host_process(struct host *h, uint32_t id)
{
	return id == bench.process.id ? &bench.process : NULL;
}

int host_open(struct host *h, struct host_file *f, opener_done *done, void *ctx)
{
	return wait_for((struct pending){ .opened = done, .ctx = ctx });
}

int debugsearch_open(struct host *h, struct host_file *f, struct span build_id, struct str name,
		     uint64_t place, opener_done *done, void *ctx)
{
	const struct opener_request q = { .kind = !name.len	 ? OPENER_BUILD_ID
						  : build_id.len ? OPENER_ALT
								 : OPENER_DEBUGLINK,
					  .path = { .data = f->path, .len = f->path_len },
					  .name = name,
					  .build_id = build_id };
	const int r = opening_check(&q);

	if (r)
		return r;
	if (name.len)
		must((build_id.len || !memchr(name.data, '/', name.len)) &&
		     !memchr(name.data, 0, name.len));
	if (build_id.len || !name.len)
		must(build_id.len >= 2 && build_id.len <= 64);
	return wait_for((struct pending){ .opened = done, .ctx = ctx });
}

void host_runtime(struct host *h, struct host_file *f, const struct runtime_config *c)
{
	must(runtime_mark(c->runtime) && c->ranges <= RUNTIME_RANGES);
}

int jitfiles_open(struct jitfiles *j, uint32_t process, uint32_t pid, uint64_t kind,
		  opener_done *done, void *ctx)
{
	return process % 2 ? -ESRCH : wait_for((struct pending){ .opened = done, .ctx = ctx });
}

int reader_submit(struct workerpool *pool, const struct reader_request *q, reader_done *done,
		  void *ctx)
{
	struct pending p = { .read = done, .ctx = ctx, .pieces = q->pieces };
	uint64_t bytes = 0;

	must(q->pieces <= READER_PIECES);
	for (uint32_t i = 0; i < q->pieces; i++) {
		must(q->lengths[i] && q->lengths[i] <= MEMORY_BYTES);
		bytes += p.lengths[i] = q->lengths[i];
	}
	must(bytes <= MEMORY_BYTES);
	const int e = wait_for(p);

	/* The callee owns it from now on. */
	if (!e && q->fd >= 0)
		close(q->fd);
	return e;
}

int loader_runtime(struct loader *l, enum runtime which)
{
	must(runtime_mark(which) != NULL);
	return bench.asked % 2 ? -EAGAIN : 0;
}

int loader_forget_some(struct loader *l, uint32_t pid, const uint64_t *addresses, size_t n)
{
	must(n && n <= MEMORY_PIECES);
	for (size_t i = 0; i < n; i++)
		must(addresses[i] >= RUNTIME_KEYS);
	return 0;
}

const char *loader_trouble(const struct loader *l)
{
	return "";
}

const char *runtimes_name(enum runtime which)
{
	must(runtime_mark(which) != NULL);
	return "";
}

bool runtimes_is_named(const char *path)
{
	return false;
}

/* Not the process: memory_begin has already refused requests that it refuses without looking at the
 * process. */
struct process *process_find_alive(struct host *h, uint32_t pid)
{
	return NULL;
}

void process_describe(struct host *h, struct process *p, uint32_t uid)
{
}

int __real_memory_begin(struct host *h, const struct msg_memory_request *m, uint64_t now_ns,
			struct memory_read *ret);
int __wrap_memory_begin(struct host *h, const struct msg_memory_request *m, uint64_t now_ns,
			struct memory_read *ret);
int __wrap_memory_begin(struct host *h, const struct msg_memory_request *m, uint64_t now_ns,
			struct memory_read *ret)
{
	const int r = __real_memory_begin(h, m, now_ns, ret);

	if (r != -ESRCH || m->process % 2)
		return r;
	*ret = (struct memory_read){ .process = 1, .pid = (uint32_t)m->pid };
	return 0;
}

int __wrap_memory_end(struct host *h, const struct memory_read *m, uint32_t exe_mode);
int __wrap_memory_end(struct host *h, const struct memory_read *m, uint32_t exe_mode)
{
	return m->pid % 2 ? -EACCES : 0;
}

/* --- the steps --- */

static void count_answers(void *ctx, struct span batch)
{
	struct msg m;

	while (batch.len) {
		must(msg_decode(&batch, &bench.scratch, &m) == 0);
		bench.answered += m.id == MSG_FILE_ANSWER || m.id == MSG_MEMORY_ANSWER;
	}
}

/* Ends the opener's or reader's call at this place; `how` selects the result. */
static void complete(unsigned i, uint8_t how)
{
	static const uint8_t bytes[PIECE];
	static uint64_t got[READER_PIECES];
	const char *mark = runtime_mark(RUNTIME_PYTHON);
	const struct pending p = bench.pending[i];

	bench.pending[i] = bench.pending[--bench.pending_count];
	if (p.opened) {
		const int status = how < 0x40 ? 0 : how < 0x80 ? OPENER_TIMEOUT : -EACCES;
		const struct opener_result r = { .status = status,
						 .fd = status ? -1 : FAR_FD + 1 + how,
						 .file = { .size = how } };

		bench.fds += !status;
		p.opened(p.ctx, &r);
		return;
	}
	const int status = how < 0xc0 ? 0 : -ETIMEDOUT;
	struct reader_result r = { .status = status,
				   .bytes = BUF_INIT(MEMORY_BYTES),
				   .pieces = status ? 0 : p.pieces,
				   .lengths = got };
	const bool is_mark = p.pieces == 1 && p.lengths[0] == strlen(mark) + 1 && how & 1;

	/* Of each piece, the beginning is there. */
	for (uint32_t k = 0; k < r.pieces; k++) {
		got[k] = p.lengths[k] < PIECE || is_mark ? p.lengths[k] : PIECE;
		must(buf_append(&r.bytes, is_mark ? (const void *)mark : bytes, got[k]) == 0);
	}
	p.read(p.ctx, &r);
	buf_done(&r.bytes);
}

static struct msg_list take_numbers(struct span *rest, uint64_t *into, uint8_t n)
{
	uint16_t v;
	uint32_t i = 0;

	for (; i < n && span_read(rest, &v, sizeof(v)); i++)
		into[i] = v < 0xff00 ? v : (uint64_t)v << 48 | v;
	return (struct msg_list){ .data = into, .len = i };
}

static struct span take_bytes(struct span *rest, size_t max)
{
	struct span bytes = { 0 };
	uint8_t n = 0;

	(void)span_read(rest, &n, 1);
	size_t len = n < rest->len ? n : rest->len;

	(void)span_take(rest, len < max ? len : max, &bytes);
	return bytes;
}

static struct str take_text(struct span *rest, size_t max)
{
	const struct span s = take_bytes(rest, max);

	return (struct str){ .data = (const char *)s.data, .len = (uint32_t)s.len };
}

static void describe(struct stream_out *out, uint8_t which, struct span *rest)
{
	struct runtime_config c = { .runtime = RUNTIME_PYTHON,
				    .ranges = 1,
				    .loop = { { 0x1000, 0x2000 } } };
	struct msg m = { .id = MSG_RUNTIME, .runtime = { .file = which % 8, .mark = which } };
	struct span bytes;

	m.runtime.name = take_text(rest, 64);
	bytes = take_bytes(rest, sizeof(c));
	memcpy(&c, bytes.data ? bytes.data : (const uint8_t *)&c, bytes.len);
	/* Empty: prof-symd knows no such build. Otherwise too short, or complete. */
	m.runtime.config = (struct span){ .data = (const uint8_t *)&c,
					  .len = which & 0x80	? 0
						 : which & 0x40 ? bytes.len
								: sizeof(c) };
	fake_peer_say(out, &m, 1);
}

static void ask(struct stream_out *out, enum step what, uint8_t which, struct span *rest)
{
	uint64_t addresses[READER_PIECES], lengths[READER_PIECES];
	struct msg m = { .id = MSG_FILE_REQUEST,
			 .file_request = { .id = which, .file = which % 8 } };

	if (what == ASK_DEBUG) {
		m.id = MSG_DEBUG_REQUEST;
		m.debug_request.build_id = take_bytes(rest, 64);
		m.debug_request.name = take_text(rest, 255);
	} else if (what == ASK_JIT) {
		m.id = MSG_JIT_REQUEST;
		m.jit_request = (struct msg_jit_request){
			.id = which, .process = which % 4, .pid = which, .kind = which >> 6
		};
	} else if (what == ASK_MEMORY) {
		uint8_t n[2] = { 0 };

		(void)span_read(rest, n, sizeof(n));
		m.id = MSG_MEMORY_REQUEST;
		m.memory_request.process = which % 4;
		m.memory_request.pid = which;
		m.memory_request.addresses = take_numbers(rest, addresses, n[0]);
		m.memory_request.lengths = take_numbers(rest, lengths, n[1]);
	}
	/* Or more requests than one peer may have at once. */
	const unsigned times = which < 0xf8 ? 1 : FILE_SERVER_OPEN_MAX + 1;

	bench.asked += times;
	fake_peer_say(out, &m, times);
}

static void step(struct stream_out *out, enum step what, uint8_t which, struct span *rest)
{
	switch (what) {
	case ASK_FILE:
	case ASK_DEBUG:
	case ASK_JIT:
	case ASK_MEMORY:
		ask(out, what, which, rest);
		break;
	case DESCRIBE:
		describe(out, which, rest);
		break;
	case RAW:
		fake_peer_say_bytes(take_bytes(rest, 255));
		break;
	case COMPLETE:
		if (bench.pending_count)
			complete(which % bench.pending_count, (uint8_t)(which * 7));
		break;
	case WENT:
		fake_peer.went = fake_peer.connected;
		fake_peer.last = (struct lastword){ .kind = which % 3,
						    .end = which / 3 % 3,
						    .id = which / 9 % 6 };
		break;
	case BUSY:
	case STEPS:
		fake_peer.busy = which & 1;
		break;
	}
}

static void begin(struct requests *rq)
{
	fake_peer_reset();
	fake_peer.sent = count_answers;
	bench.asked = bench.answered = bench.pending_count = 0;
	bench.fds = 0;
	bench.process = (struct host_process){ .id = 2, .pid = 2, .uid = 1000 };
	for (uint32_t i = 0; i < FILES; i++)
		bench.files[i] = (struct host_file){ .id = i + 1,
						     .inode = i,
						     .slot = (uint16_t)(i + 1),
						     .uid = 1000 * (i / 2),
						     .path = (char *)"/usr/bin/a",
						     .path_len = 10 };
	bench.offers = (struct offers){ 0 };
	bench.deaths = (struct parser_deaths){ 0 };
	must(quarantine_new(&bench.deaths.quarantine) == 0);
	*rq = (struct requests){ .offers = &bench.offers,
				 .deaths = &bench.deaths,
				 .may_read_memory = true };
	const struct file_server_config c = { .run_dir = "/nowhere",
					      .want_file = requests_file,
					      .want_debug = requests_debug,
					      .want_jit = requests_jit,
					      .want_memory = requests_memory,
					      .take_runtime = requests_runtime,
					      .peer_died = requests_peer_died,
					      .ctx = rq };

	must(file_server_new(&c, &rq->file_server) == 0);
}

static void end(struct requests *rq)
{
	fake_peer.busy = fake_peer.has_batch = false;
	while (bench.pending_count)
		complete(0, 0xff);
	must(file_server_run(rq->file_server) == 0);
	must(file_server_run(rq->file_server) == 0);
	must(!fake_peer.connected || file_server_idle(rq->file_server));
	must(bench.answered <= bench.asked && bench.fds == 0);
	requests_done(rq);
	file_server_free(rq->file_server);
	quarantine_free(bench.deaths.quarantine);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct requests *rq = &bench.requests;
	struct span rest = { .data = data, .len = size };
	uint64_t epoch = 0, now_ns = 1;
	struct stream_out out;
	bool raw = false;
	uint8_t head[2];

	begin(rq);
	stream_out_init(&out, 4096, fake_peer_keep, NULL);
	fake_peer_come(&out, ++epoch);
	for (int i = 0; i < MAX_STEPS && span_read(&rest, head, sizeof(head)); i++) {
		const enum step what = (enum step)(head[0] % STEPS);

		step(&out, what, head[1], &rest);
		raw |= what == RAW;
		now_ns += 200000000;
		must(file_server_run(rq->file_server) == 0);
		requests_tick(rq, now_ns);
		requests_loaded(rq);
		if (fake_peer.dropped && !(head[0] & 0x40))
			fake_peer.went = fake_peer.connected;
		if (!fake_peer.connected && !fake_peer.came)
			fake_peer_come(&out, ++epoch);
	}
	/* Requests in raw bytes were not counted. */
	if (raw)
		bench.asked = UINT64_MAX;
	end(rq);
	stream_out_done(&out);
	buf_done(&fake_peer.batch);
	fake_peer.batch = (struct buf){ 0 };
	return 0;
}
