/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A prof-symd that was taken over, towards a real prof-bpf:
 *   hostile-symd DIR UID COMMAND...
 * UID is prof-bpf's. Runs the commands in order. Each prints its result on a line:
 *   tell PATH       describes the runtime in the file, like prof-symd
 *   lie PATH        describes it wrongly, as a file with the runtime (its mark is right)
 *   wild N          describes all files wrongly, also nonexistent ones, N times
 *   await PID       waits for interpreted frames of the process
 *   watch N PID     waits for N samples of the process: all, complete, with interpreted frames;
 *                   and how many code objects were copied of it since this began
 *   ask PID         asks for memory of the process, under each number that it could have
 *   shapes PID      asks for its memory in odd ways
 *   read PID AT     asks for 64 bytes of it
 *   greedy PATH     describes the Python in the file so that as much as possible is read
 *   crawl PID SECRET  asks for all memory to which its objects lead, and prints how many bytes
 *                   it got, and how many pieces contained the secret
 *   flood PID SECONDS  asks for as much of it as possible
 *   jit PID         asks for the perf map and the jitdump of the process
 *   debug PATH NAME asks for a debug file of that name, for the file
 *   deaf PID        asks without reading answers, until it is dropped; ends
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/wire/bus/bus.h"
#include "common/base/system/clock.h"
#include "common/wire/bus/fdlane.h"
#include "common/wire/stream.h"
#include "common/names/runtime/python/python.h"
#include "tests/hostile/crawl.h"
#include "tests/random.h"

#define SECOND 1000000000ull
#define PATIENCE_NS (60 * SECOND)
#define OPEN_MAX_REQUESTS 60
#define THINGS (1u << 18)
#define FILES 8192
#define STATUSES 200
#define ROOTS 4096

enum { COMPLETE = 1, INTERPRETED = 2 };

struct peer {
	const char *dir;
	uid_t uid;
	struct bus *stream, *files;
	struct fdlane *lane; /* of the files route; NULL until it is needed */
	struct stream_in raw, answers;
	struct stream_out requests;
	struct buf message;
	bool gone; /* the pipe of the files route closed */
	bool deaf; /* answers are not read */
	uint64_t random, next_id, last_file, last_process;
	char *paths[FILES];			/* of files, by id */
	uint64_t pids[THINGS];			/* of processes */
	uint64_t process_of[THINGS];		/* of threads */
	uint8_t frames[THINGS], stacks[THINGS]; /* the flags above */
	uint64_t objects[THINGS]; /* where one of an interpreted frame lies, by process */
	uint32_t copied[THINGS];  /* objects, by process */
	uint64_t watched, samples, complete, interpreted;
	uint64_t sent, answered, given, statuses[STATUSES];
	uint64_t lengths[16], length_count; /* of the last answer */
	struct crawl *crawl;		    /* NULL: it is not under way */
	struct root {
		uint64_t process, address;
	} roots[ROOTS]; /* objects of interpreted frames */
	uint64_t root_count;
	uint64_t file_id, file_status; /* of the last answer about a file */
};

static void die(const char *what, int r)
{
	fprintf(stderr, "hostile-symd: %s: %s\n", what, strerror(r < 0 ? -r : EPROTO));
	_exit(1);
}

static void check(int r, const char *what)
{
	if (r)
		die(what, r);
}

/* --- what comes --- */

static void take_stack(struct peer *p, const struct msg_stack *m)
{
	uint8_t *s = &p->stacks[m->id % THINGS];

	*s = m->reason == 0 ? COMPLETE : 0;
	for (uint32_t i = 0; i < m->frames.len; i++)
		*s |= p->frames[m->frames.data[i] % THINGS];
}

static void take_sample(struct peer *p, const struct msg_sample *m)
{
	uint8_t s = p->stacks[m->stack % THINGS];

	if (p->pids[p->process_of[m->thread % THINGS] % THINGS] != p->watched)
		return;
	p->samples++;
	p->complete += (s & COMPLETE) != 0;
	p->interpreted += (s & INTERPRETED) != 0;
}

static void add_root(struct peer *p, uint64_t process, uint64_t address)
{
	p->objects[process % THINGS] = address;
	for (uint64_t i = 0; i < p->root_count; i++)
		if (p->roots[i].process == process && p->roots[i].address == address)
			return;
	if (p->root_count < ROOTS)
		p->roots[p->root_count++] = (struct root){ process, address };
}

/* Copies arrive before the crawl. */
static struct copied {
	uint64_t process, address;
	struct span bytes;
} copies[ROOTS * RUNTIME_STEPS];
static uint64_t copy_count;

static void keep_copy(struct peer *p, const struct msg_object *m)
{
	struct span rest = m->bytes, bytes;

	(void)p;
	for (uint32_t i = 0; i < m->addresses.len; i++) {
		if (!span_take(&rest, (size_t)m->lengths.data[i], &bytes) ||
		    copy_count == sizeof(copies) / sizeof(copies[0]))
			return;
		uint8_t *kept = malloc(bytes.len + 1);

		check(kept ? 0 : -ENOMEM, "copy");
		memcpy(kept, bytes.data, bytes.len);
		copies[copy_count++] = (struct copied){ m->process,
							m->addresses.data[i],
							{ .data = kept, .len = bytes.len } };
	}
}

static void take_raw(struct peer *p, const struct msg *m)
{
	switch (m->id) {
	case MSG_FILE:
		if (m->file.id < FILES && !p->paths[m->file.id])
			p->paths[m->file.id] = strndup(m->file.path.data, m->file.path.len);
		if (m->file.id > p->last_file)
			p->last_file = m->file.id;
		break;
	case MSG_PROCESS:
		p->pids[m->process.id % THINGS] = m->process.pid;
		if (m->process.id > p->last_process)
			p->last_process = m->process.id;
		break;
	case MSG_THREAD:
		p->process_of[m->thread.id % THINGS] = m->thread.process;
		break;
	case MSG_FRAME:
		p->frames[m->frame.id % THINGS] = m->frame.kind == MSG_FRAME_INTERPRETED
							  ? INTERPRETED
							  : 0;
		if (m->frame.kind == MSG_FRAME_INTERPRETED)
			add_root(p, m->frame.process, m->frame.offset);
		break;
	case MSG_OBJECT:
		p->copied[m->object.process % THINGS]++;
		keep_copy(p, &m->object);
		break;
	case MSG_STACK:
		take_stack(p, &m->stack);
		break;
	case MSG_SAMPLE:
		take_sample(p, &m->sample);
		break;
	default:
		break;
	}
}

static void take_answer(struct peer *p, const struct msg_memory_answer *m)
{
	p->answered++;
	p->given += m->bytes.len;
	p->statuses[m->status < STATUSES ? m->status : STATUSES - 1]++;
	if (p->crawl)
		crawl_answer(p->crawl, m);
	p->length_count = 0;
	for (uint32_t i = 0; i < m->lengths.len && i < 16; i++)
		p->lengths[p->length_count++] = m->lengths.data[i];
}

static void drain_raw(struct peer *p)
{
	struct msg m;
	int r;

	while ((r = bus_recv(p->stream, &p->message)) == 0 || r == BUS_PEER_CAME) {
		if (r)
			continue;
		check(stream_feed(&p->raw, buf_span(&p->message)), "stream");
		while ((r = stream_next(&p->raw, &m)) == 0)
			take_raw(p, &m);
		check(r == STREAM_AGAIN ? 0 : -EPROTO, "stream");
	}
	if (r == BUS_PEER_WENT)
		die("prof-bpf is gone", -ENOTCONN);
}

static void drain_answers(struct peer *p)
{
	struct msg m;
	int r;

	while ((r = bus_recv(p->files, &p->message)) == 0 || r == BUS_PEER_CAME) {
		if (r)
			continue;
		check(stream_feed(&p->answers, buf_span(&p->message)), "answers");
		while ((r = stream_next(&p->answers, &m)) == 0) {
			if (m.id == MSG_MEMORY_ANSWER)
				take_answer(p, &m.memory_answer);
			if (m.id == MSG_FILE_ANSWER) {
				p->file_id = m.file_answer.id;
				p->file_status = m.file_answer.status;
			}
		}
		check(r == STREAM_AGAIN ? 0 : -EPROTO, "answers");
	}
	p->gone |= r == BUS_PEER_WENT || r < 0;
}

static void pump(struct peer *p, int ms)
{
	struct pollfd fds[] = { { bus_fd(p->stream), POLLIN, 0 }, { bus_fd(p->files), POLLIN, 0 } };

	poll(fds, 2, ms);
	drain_raw(p);
	if (!p->deaf)
		drain_answers(p);
}

/* --- sending --- */

static int send_batch(void *ctx, struct span batch)
{
	struct peer *p = ctx;
	uint64_t end = clock_mono_ns() + PATIENCE_NS;
	int r;

	/* Samples are read meanwhile, or they would be dropped. */
	while ((r = bus_send(p->files, batch)) == -EAGAIN && clock_mono_ns() < end)
		pump(p, 1);
	return r;
}

static void put(struct peer *p, struct msg m)
{
	int r = stream_put(&p->requests, &m);

	if (!r)
		r = stream_flush(&p->requests);
	if (r == -ENOTCONN)
		p->gone = true;
	else
		check(r, "send");
}

static void connect_files(struct peer *p)
{
	check(bus_dial(BUSROUTE_FILES, p->dir, p->uid, 20000, &p->files), "dial");
	stream_in_init(&p->answers);
	stream_out_init(&p->requests, 1, send_batch, p);
	p->gone = false;
	p->sent = p->answered = 0;
	put(p, (struct msg){ .id = MSG_HELLO,
			     .hello = { .schema = MSG_SCHEMA, .build = msg_build() } });
}

static void say_runtime(struct peer *p, uint64_t file, const struct runtime_config *c,
			uint64_t mark)
{
	put(p,
	    (struct msg){ .id = MSG_RUNTIME,
			  .runtime = { .file = file,
				       .name = STR_LIT("CPython 3.99"),
				       .config = { .data = (const uint8_t *)c, .len = sizeof(*c) },
				       .mark = mark } });
}

static struct runtime_config wild_config(struct peer *p)
{
	struct runtime_config c = { .runtime = RUNTIME_PYTHON,
				    .by_loop = (UW_U32)(random_next(&p->random) % RUNTIME_BY_LOOPS),
				    .ranges = (UW_U32)(random_next(&p->random) %
						       (RUNTIME_RANGES + 1)) };
	uint64_t how = random_next(&p->random) % 3;

	for (uint32_t i = 0; i < c.ranges; i++) {
		c.loop[i].start = random_next(&p->random) >> 1;
		c.loop[i].end = c.loop[i].start + 1 + (random_next(&p->random) >> 1);
	}
	for (size_t i = 0; i < sizeof(c.own); i++)
		c.own[i] = (uint8_t)(how == 0 ? random_next(&p->random) : how == 1 ? 0xff : 0);
	return c;
}

static void ask(struct peer *p, uint64_t process, uint64_t pid, const uint64_t *addresses,
		const uint64_t *lengths, uint32_t n)
{
	while (!p->gone && !p->deaf && p->sent - p->answered >= OPEN_MAX_REQUESTS)
		pump(p, 10);
	p->sent++;
	put(p, (struct msg){ .id = MSG_MEMORY_REQUEST,
			     .memory_request = { .id = ++p->next_id,
						 .process = process,
						 .pid = pid,
						 .addresses = { .data = addresses, .len = n },
						 .lengths = { .data = lengths, .len = n } } });
}

static void settle(struct peer *p)
{
	uint64_t end = clock_mono_ns() + PATIENCE_NS;

	while (!p->gone && p->answered < p->sent && clock_mono_ns() < end)
		pump(p, 10);
}

static void forget_answers(struct peer *p)
{
	p->given = 0;
	memset(p->statuses, 0, sizeof(p->statuses));
}

static void print_answers(const struct peer *p)
{
	printf(" given=%llu gone=%d", (unsigned long long)p->given, p->gone);
	for (unsigned i = 0; i < STATUSES; i++) {
		if (p->statuses[i])
			printf(" %s=%llu", i ? strerrorname_np((int)i) : "ok",
			       (unsigned long long)p->statuses[i]);
	}
	printf("\n");
}

/* --- commands --- */

static uint64_t find_file(struct peer *p, const char *path)
{
	uint64_t end = clock_mono_ns() + PATIENCE_NS;

	while (clock_mono_ns() < end) {
		for (uint64_t i = 1; i < FILES; i++) {
			if (p->paths[i] && strcmp(p->paths[i], path) == 0)
				return i;
		}
		pump(p, 50);
	}
	die(path, -ENOENT);
	return 0;
}

/* The newest process with that number; 0: none is known. */
static uint64_t find_process(const struct peer *p, uint64_t pid)
{
	for (uint64_t i = p->last_process; i > 0; i--) {
		if (p->pids[i % THINGS] == pid)
			return i;
	}
	return 0;
}

static uint64_t find_object(const struct peer *p, uint64_t pid)
{
	uint64_t at = p->objects[find_process(p, pid) % THINGS];

	return at ? at : 0x400000;
}

static void describe(const char *path, struct runtime_build *ret)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct symfile *f;

	check(fd < 0 ? -errno : symfile_open(fd, &f), path);
	check(runtime_describe(f, ret), path);
	check(runtime_find_mark(f, ret), path);
	check(ret->known ? 0 : -ENOENT, path);
	symfile_free(f);
}

static void tell(struct peer *p, const char *path, bool lie)
{
	struct runtime_build b;
	uint64_t file = find_file(p, path);

	describe(path, &b);
	if (lie)
		b.config = wild_config(p);
	say_runtime(p, file, &b.config, b.mark);
	printf("%s %s\n", lie ? "lie" : "tell", path);
}

static void wild(struct peer *p, uint64_t times)
{
	uint64_t n = 0;

	while (n < times && !p->gone) {
		for (uint64_t i = 0; i <= p->last_file + 2 && !p->gone; i++, n++) {
			const struct runtime_config c = wild_config(p);
			const uint64_t odd[] = { 0, random_next(&p->random), UINT64_MAX, 64 };

			say_runtime(p, i <= p->last_file ? i : random_next(&p->random), &c,
				    odd[n % 4]);
		}
		pump(p, 1);
	}
	printf("wild %llu gone=%d\n", (unsigned long long)n, p->gone);
}

static void await(struct peer *p, uint64_t pid)
{
	uint64_t end = clock_mono_ns() + PATIENCE_NS;

	p->watched = pid;
	p->interpreted = 0;
	while (!p->interpreted && clock_mono_ns() < end)
		pump(p, 50);
	printf("await %llu\n", (unsigned long long)p->interpreted);
}

static void watch(struct peer *p, uint64_t n, uint64_t pid)
{
	uint64_t end = clock_mono_ns() + PATIENCE_NS;

	p->watched = pid;
	p->samples = p->complete = p->interpreted = 0;
	while (p->samples < n && clock_mono_ns() < end)
		pump(p, 50);
	printf("watch samples=%llu complete=%llu interpreted=%llu copied=%u\n",
	       (unsigned long long)p->samples, (unsigned long long)p->complete,
	       (unsigned long long)p->interpreted, p->copied[find_process(p, pid) % THINGS]);
}

static void ask_all(struct peer *p, uint64_t pid, uint64_t address)
{
	const uint64_t length = 64;

	forget_answers(p);
	for (uint64_t i = 1; i <= p->last_process + 64 && !p->gone; i++)
		ask(p, i, pid, &address, &length, 1);
	settle(p);
	printf("ask %llu", (unsigned long long)pid);
	print_answers(p);
}

static void shape(struct peer *p, uint64_t process, uint64_t pid, const char *name,
		  uint64_t address, uint64_t length, uint32_t n)
{
	uint64_t addresses[256], lengths[256];

	for (uint32_t i = 0; i < n; i++) {
		addresses[i] = address;
		lengths[i] = length;
	}
	forget_answers(p);
	ask(p, process, pid, addresses, lengths, n);
	settle(p);
	printf("shape %s", name);
	print_answers(p);
}

static void shapes(struct peer *p, uint64_t pid, uint64_t at)
{
	uint64_t process = find_process(p, pid);

	shape(p, process, pid, "plain", at, 64, 1);
	shape(p, process, pid, "unaligned", at + 3, 61, 1);
	shape(p, process, pid, "overlapping", at + 1, 512, 256);
	shape(p, process, pid, "kernel", 0xffffffff81000000, 64, 1);
	shape(p, process, pid, "noncanonical", 0x8000000000000000, 64, 256);
	shape(p, process, pid, "wraps", UINT64_MAX - 8, 64, 1);
	shape(p, process, pid, "null", 0, 64, 1);
	shape(p, process, pid, "nothing", at, 0, 1);
	shape(p, process, pid, "huge", at, UINT64_MAX, 1);
	shape(p, process, pid, "sum", at, UINT64_MAX / 2 + 1, 2);
	shape(p, process, pid, "most", at, 512, 256);
	shape(p, process, pid, "more", at, 513, 256);
	shape(p, UINT64_MAX, pid, "process", at, 64, 1);
	shape(p, process, UINT64_MAX, "pid", at, 64, 1);
}

static void flood(struct peer *p, uint64_t pid, uint64_t at, uint64_t ns)
{
	uint64_t process = find_process(p, pid), since = clock_mono_ns(), addresses[128],
		 lengths[128];

	for (unsigned i = 0; i < 128; i++) {
		addresses[i] = at;
		lengths[i] = 1024;
	}
	forget_answers(p);
	/* A busy machine may need longer to request all of that. */
	while (!p->gone && (clock_mono_ns() - since < ns ||
			    (!p->statuses[EAGAIN] && clock_mono_ns() - since < 10 * ns)))
		ask(p, process, pid, addresses, lengths, 128);
	settle(p);
	printf("flood ms=%llu", (unsigned long long)((clock_mono_ns() - since) / 1000000));
	print_answers(p);
}

static void greedy(struct peer *p, const char *path)
{
	struct runtime_build b;

	describe(path, &b);
	/* As far as prof-bpf allows: the constants, some of which are texts, and the type. */
	b.config.copy =
		(struct runtime_copy){ .steps = 4,
				       .more = 2,
				       .step = { { .bytes = 320 },
						 { .pointer = 24, .bytes = 4224 },
						 { .pointer = 8, .bytes = 4224 },
						 { .from = 1, .pointer = 24, .bytes = 4224 },
						 { .from = 1, .pointer = 32, .bytes = 4224 },
						 { .from = 1, .pointer = 40, .bytes = 4224 } } };
	say_runtime(p, find_file(p, path), &b.config, b.mark);
	printf("greedy %s\n", path);
}

static void crawl(struct peer *p, uint64_t pid, const char *secret)
{
	const uint64_t end = clock_mono_ns() + 20 * SECOND, process = find_process(p, pid);
	struct crawl *c = calloc(1, sizeof(*c));
	uint64_t roots = 0, root = 0, tries = 0, pass = 0;
	uint32_t n;

	check(c ? 0 : -ENOMEM, "crawl");
	c->secret = secret;
	for (uint64_t i = 0; i < copy_count; i++)
		if (copies[i].process == process)
			crawl_take(c, copies[i].address, copies[i].bytes);
	const uint64_t copied = c->bytes;

	p->crawl = c;
	forget_answers(p);
	while (!p->gone && clock_mono_ns() < end) {
		const uint64_t again = p->statuses[EAGAIN];

		for (; root < p->root_count; root++)
			if (p->roots[root].process == process) {
				crawl_add(c, p->roots[root].address);
				roots++;
			}
		n = crawl_next(c);
		/* Again, because an answer may have made earlier requests reachable. */
		if (!n && pass++ == 0) {
			crawl_again(c);
			continue;
		}
		if (!n)
			break;
		ask(p, process, pid, c->asked, c->lengths, n);
		settle(p);
		tries++;
		if (p->statuses[EAGAIN] != again)
			usleep(20000);
		else
			crawl_done(c, n);
	}
	p->crawl = NULL;
	printf("crawl tries=%llu roots=%llu copied=%llu bytes=%llu found=%llu left=%u",
	       (unsigned long long)tries, (unsigned long long)roots, (unsigned long long)copied,
	       (unsigned long long)c->bytes, (unsigned long long)c->found, crawl_left(c));
	print_answers(p);
	free(c);
}

/* Prints the answer to the request that was just made: an errno, or the first bytes of a file. */
static void print_file(struct peer *p, const char *what, const char *name)
{
	const uint64_t end = clock_mono_ns() + 10 * SECOND;
	unsigned char bytes[4] = { 0 };
	uint64_t id = 0;
	int fd = -1;

	p->file_id = 0;
	while (p->file_id != p->next_id && !p->gone && clock_mono_ns() < end)
		pump(p, 10);
	printf("%s %s ", what, name);
	if (p->file_id != p->next_id) {
		printf("%s\n", p->gone ? "gone" : "silence");
		return;
	}
	if (p->file_status) {
		printf("%s\n", strerrorname_np((int)p->file_status));
		return;
	}
	while (clock_mono_ns() < end && id != p->next_id) {
		if (fd >= 0)
			close(fd);
		fd = -1;
		if (fdlane_recv(p->lane, &id, &fd) < 0)
			usleep(1000);
	}
	const ssize_t n = fd >= 0 ? pread(fd, bytes, sizeof(bytes), 0) : -1;

	printf("given %zd %02x%02x%02x%02x\n", n, bytes[0], bytes[1], bytes[2], bytes[3]);
	if (fd >= 0)
		close(fd);
}

static void want_lane(struct peer *p)
{
	if (!p->lane)
		check(fdlane_dial(BUSROUTE_FILES, p->dir, p->uid, 20000, &p->lane), "dial");
}

static void jit(struct peer *p, uint64_t pid)
{
	static const char *const names[] = { [MSG_JIT_PERF_MAP] = "map", [MSG_JIT_DUMP] = "dump" };
	const uint64_t kinds[] = { MSG_JIT_PERF_MAP, MSG_JIT_DUMP }, process = find_process(p, pid);

	want_lane(p);
	for (size_t i = 0; i < 2; i++) {
		put(p, (struct msg){ .id = MSG_JIT_REQUEST,
				     .jit_request = { .id = ++p->next_id,
						      .process = process,
						      .pid = pid,
						      .kind = kinds[i] } });
		print_file(p, "jit", names[kinds[i]]);
	}
}

static void debug(struct peer *p, const char *path, const char *name)
{
	want_lane(p);
	put(p, (struct msg){ .id = MSG_DEBUG_REQUEST,
			     .debug_request = {
				     .id = ++p->next_id,
				     .file = find_file(p, path),
				     .name = { .data = name, .len = (uint32_t)strlen(name) } } });
	print_file(p, "debug", name);
}

/* Until it is disconnected for having too many open. */
static void deaf(struct peer *p, uint64_t pid, uint64_t at)
{
	uint64_t process = find_process(p, pid), n = 0, length = 131072;

	p->deaf = true;
	while (!p->gone && n++ < 100000)
		ask(p, process, pid, &at, &length, 1);
	printf("deaf %s\n", p->gone ? "thrown out" : "heard");
	_exit(0);
}

static uint64_t number(char **at)
{
	return *at ? strtoull(*at, NULL, 10) : 0;
}

int main(int argc, char **argv)
{
	struct peer *p = calloc(1, sizeof(*p));

	if (!p || argc < 4)
		return 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	p->dir = argv[1];
	p->uid = (uid_t)strtoul(argv[2], NULL, 10);
	p->random = 0x9e3779b97f4a7c15;
	check(bus_dial(BUSROUTE_STREAM, p->dir, p->uid, 20000, &p->stream), "dial");
	stream_in_init(&p->raw);
	connect_files(p);
	for (char **a = argv + 3; *a; a++) {
		const char *what = *a;
		uint64_t n = (a++, number(a));

		if (!strcmp(what, "tell") || !strcmp(what, "lie")) {
			tell(p, *a, what[0] == 'l');
		} else if (!strcmp(what, "greedy")) {
			greedy(p, *a);
		} else if (!strcmp(what, "wild")) {
			wild(p, n);
		} else if (!strcmp(what, "await")) {
			await(p, n);
		} else if (!strcmp(what, "watch")) {
			a++;
			watch(p, n, number(a));
		} else if (!strcmp(what, "ask")) {
			ask_all(p, n, find_object(p, n));
		} else if (!strcmp(what, "shapes")) {
			shapes(p, n, find_object(p, n));
		} else if (!strcmp(what, "read")) {
			a++;
			shape(p, find_process(p, n), n, "read", number(a), 64, 1);
		} else if (!strcmp(what, "flood")) {
			a++;
			flood(p, n, find_object(p, n), number(a) * SECOND);
		} else if (!strcmp(what, "crawl")) {
			a++;
			crawl(p, n, *a);
		} else if (!strcmp(what, "jit")) {
			jit(p, n);
		} else if (!strcmp(what, "debug")) {
			const char *path = *a;

			debug(p, path, *++a);
		} else if (!strcmp(what, "deaf")) {
			deaf(p, n, find_object(p, n));
		} else {
			return 2;
		}
	}
	_exit(0);
}
