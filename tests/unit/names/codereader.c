/* SPDX-License-Identifier: Apache-2.0 */
/* The workers that read perf maps and jitdumps. Their reader of maps does what a bug or an attacker
 * in it could do: a line `@DEED` of a map says what. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include "common/base/system/clock.h"
#include "common/names/jit/codereader.h"
#include "common/names/jit/codewire.h"
#include "common/names/jit/codeworker.h"
#include "common/names/jit/jit.h"
#include "common/names/jit/perfmap.h"
#include "common/names/program/filekeeper.h"
#include "common/names/program/fileworker.h"
#include "tests/unit/forbidden.h"

#define SECOND 1000000000ull
#define HEAP (192u << 20) /* Criterion has some 110 MiB before a test starts */
#define MAX (8u << 20)

/* --- the reader of maps --- */

static void add(struct perfmap *p, const char *name)
{
	(void)codemap_add(&p->code, 0x1000, 0x10, 0, str_from(name), 0);
}

static void send_result(uint32_t found, uint32_t name_len, const char *text, uint32_t text_len)
{
	static uint8_t bytes[512];
	const struct codewire_head h = { .count = 1, .text_len = text_len };
	const uint64_t times[] = { 0, UINT64_MAX };
	const uint32_t state[] = { found, 0 }, texts[] = { 0, name_len, 0, 0, 0, 0 };
	const uint64_t line = 0;
	uint8_t *at = bytes;

	at = (uint8_t *)memcpy(at, &h, sizeof(h)) + sizeof(h);
	at = (uint8_t *)memcpy(at, times, sizeof(times)) + sizeof(times);
	at = (uint8_t *)memcpy(at, state, sizeof(state)) + sizeof(state);
	at = (uint8_t *)memcpy(at, &line, sizeof(line)) + sizeof(line);
	at = (uint8_t *)memcpy(at, texts, sizeof(texts)) + sizeof(texts);
	at = (uint8_t *)memcpy(at, text, text_len) + text_len;
	send(3, bytes, (size_t)(at - bytes), 0);
}

static void act(struct perfmap *p, const char *deed)
{
	if (strncmp(deed, "crash", 5) == 0)
		raise(SIGSEGV);
	else if (strncmp(deed, "killed", 6) == 0)
		syscall(SYS_tgkill, getpid(), getpid(), SIGKILL);
	else if (strncmp(deed, "leave", 5) == 0)
		_exit(0);
	else if (strncmp(deed, "loop", 4) == 0)
		for (volatile unsigned i = 0;; i++)
			;
	else if (strncmp(deed, "sleep", 5) == 0)
		for (;;)
			nanosleep(&(struct timespec){ .tv_sec = 100 }, NULL);
	else if (strncmp(deed, "chatter", 7) == 0)
		send(3, "junk", 4, 0);
	else if (strncmp(deed, "outside", 7) == 0)
		send_result(1, 900, "ab", 2); /* a name that is longer than the text */
	else if (strncmp(deed, "call", 4) == 0)
		add(p, forbidden((unsigned)atoi(deed + 5)) < 0 ? "refused" : "done");
}

int __real_perfmap_feed(struct perfmap *p, struct span bytes);
int __wrap_perfmap_feed(struct perfmap *p, struct span bytes);
int __wrap_perfmap_feed(struct perfmap *p, struct span bytes)
{
	const uint8_t *at = memchr(bytes.data, '@', bytes.len);

	if (at)
		act(p, (const char *)at + 1);
	return __real_perfmap_feed(p, bytes);
}

/* --- the tests --- */

static void start(void)
{
	int control;

	cr_assert_eq(filekeeper_start(&fileworker_class, &codeworker_class, HEAP, &control), 0);
	filekeeper_use(control);
	codereader_use_workers(HEAP);
}

/* A file with this text. shared: it is one of others. */
static int file_of(const char *text, bool shared)
{
	const int fd = memfd_create("map", MFD_CLOEXEC);

	cr_assert(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	cr_assert_eq(fchmod(fd, shared ? 0666 : 0600), 0);
	return fd;
}

static struct codereader *open_map(const char *text, bool shared)
{
	struct codereader *c;

	cr_assert_eq(codereader_open(file_of(text, shared), MSG_JIT_PERF_MAP, false, MAX, &c), 0);
	return c;
}

static int read_map(struct codereader *c)
{
	struct codefile_progress p;
	int r;

	do
		r = codereader_read(c, 1 << 20, &p);
	while (r == CODEREADER_LATER && usleep(10000) == 0);
	return r;
}

/* Whether the first address has this name; NULL: none. */
static bool has_name(struct codereader *c, uint64_t address, const char *name)
{
	struct codefile_answer answers[CODEREADER_BATCH];
	const struct names *names;
	const int r = codereader_find(c, &address, 1, 5, answers, &names);

	if (r)
		return false;
	return answers[0].found ? name && str_eq(names->calls[0].name, str_from(name)) : !name;
}

Test(codereader, a_worker_names_what_it_reads)
{
	start();
	struct codereader *c = open_map("1000 10 f\n2000 10 _Z1gv\n", true);
	struct codefile_answer answers[CODEREADER_BATCH];
	const uint64_t addresses[] = { 0x2004, 0x3000, 0x100f };
	const struct names *names;

	cr_assert_eq(codereader_find(c, addresses, 3, 5, answers, &names), CODEREADER_ANEW);
	cr_assert_eq(read_map(c), 0);
	cr_assert_eq(codereader_find(c, addresses, 3, 5, answers, &names), 0);
	cr_assert(answers[0].found && !answers[1].found && answers[2].found);
	cr_assert_eq(names->count, 2);
	cr_expect(str_eq(names->calls[0].name, STR_LIT("g()")));
	cr_expect(str_eq(names->calls[0].system_name, STR_LIT("_Z1gv")));
	cr_expect(str_eq(names->calls[1].name, STR_LIT("f")));
	cr_expect_gt(codereader_bytes(c), 1000);
	codereader_free(c);
}

Test(codereader, the_worker_reads_appended_lines)
{
	start();
	const int fd = file_of("1000 10 f\n", true);
	struct codereader *c;

	cr_assert_eq(codereader_open(dup(fd), MSG_JIT_PERF_MAP, false, MAX, &c), 0);
	cr_assert_eq(read_map(c), 0);
	cr_expect(has_name(c, 0x2000, NULL));
	cr_assert_eq(write(fd, "2000 10 g", 9), 9);
	cr_assert_eq(read_map(c), 0);
	cr_expect(has_name(c, 0x2000, NULL), "the line may go on");
	cr_assert_eq(codereader_flush(c), 0);
	cr_expect(has_name(c, 0x2000, "g"));
	codereader_free(c);
	close(fd);
}

/* The other file of its class is read again; the file of the other class is still known. */
static void costs_its_file_only(const char *text)
{
	start();
	struct codereader *bad = open_map(text, true), *good = open_map("1000 10 f\n", true);
	struct codereader *roots = open_map("1000 10 r\n", false);

	cr_assert_eq(read_map(roots), 0);
	cr_assert_eq(read_map(good), 0);
	cr_expect(has_name(good, 0x1000, "f"));
	cr_assert_eq(read_map(bad), CODEREADER_LOST, "%s", text);
	cr_expect(has_name(roots, 0x1000, "r"));
	cr_assert_eq(read_map(good), 0);
	cr_expect(has_name(good, 0x1000, "f"));
	cr_expect_eq(read_map(bad), CODEREADER_LOST);
	cr_expect(has_name(good, 0x1000, "f"));
	codereader_free(bad);
	codereader_free(good);
	codereader_free(roots);
}

Test(codereader, one_that_crashes_the_worker_is_lost)
{
	costs_its_file_only("@crash\n");
}

Test(codereader, a_file_of_a_containers_root_costs_the_hosts_root_nothing)
{
	start();
	struct codereader *roots = open_map("1000 10 r\n", false), *bad;

	cr_assert_eq(codereader_open(file_of("@crash\n", false), MSG_JIT_PERF_MAP, true, MAX, &bad),
		     0);
	cr_assert_eq(read_map(roots), 0);
	cr_expect_eq(read_map(bad), CODEREADER_LOST);
	cr_expect(has_name(roots, 0x1000, "r"));
	codereader_free(bad);
	codereader_free(roots);
}

Test(codereader, one_that_makes_it_leave_is_lost)
{
	costs_its_file_only("@leave\n");
}

Test(codereader, one_that_takes_too_much_cpu_time_is_lost)
{
	const uint64_t begun_ns = clock_mono_ns();

	costs_its_file_only("@loop\n");
	cr_expect_lt(clock_mono_ns() - begun_ns, 30 * SECOND);
}

Test(codereader, one_that_makes_it_silent_is_lost)
{
	costs_its_file_only("@sleep\n");
}

Test(codereader, nonsense_is_no_answer)
{
	costs_its_file_only("@chatter\n");
}

Test(codereader, a_name_outside_of_its_text_is_no_answer)
{
	costs_its_file_only("@outside\n");
}

Test(codereader, one_killed_from_outside_is_tried_once_more)
{
	start();
	struct codereader *c = open_map("1000 10 f\n", true);

	cr_assert_eq(read_map(c), 0);
	/* The worker sends SIGKILL to itself, since the test does not know its pid. */
	struct codereader *killer = open_map("@killed\n", true);

	cr_expect_neq(read_map(killer), 0);
	cr_expect_neq(read_map(killer), 0);
	cr_expect_eq(read_map(killer), CODEREADER_LOST);
	cr_assert_eq(read_map(c), 0);
	cr_expect(has_name(c, 0x1000, "f"));
	codereader_free(killer);
	codereader_free(c);
}

#ifndef __SANITIZE_ADDRESS__ /* it has neither the limits nor the filter of system calls */
static bool is_forbidden(unsigned call)
{
	char text[32];

	start();
	snprintf(text, sizeof(text), "@call %u\n", call);
	struct codereader *c = open_map(text, call % 2);
	const bool forbidden = read_map(c) == CODEREADER_LOST || has_name(c, 0x1000, "refused");

	codereader_free(c);
	return forbidden;
}

/* A process for each call: the successors of a worker that died start later and later. */
Test(codereader, a_worker_may_do_nothing_else)
{
	pid_t pids[FORBIDDEN_TO_CODE];

	for (unsigned i = 0; i < FORBIDDEN_TO_CODE; i++) {
		pids[i] = fork();
		if (pids[i] == 0)
			_exit(is_forbidden(i) ? 7 : 8);
	}
	for (unsigned i = 0; i < FORBIDDEN_TO_CODE; i++) {
		int status;

		cr_assert_eq(waitpid(pids[i], &status, 0), pids[i]);
		cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 7, "call %u: %x", i, status);
	}
}
#endif

Test(codereader, workers_that_die_again_and_again_begin_later_and_later)
{
	start();
	unsigned waits = 0;
	const uint64_t begun_ns = clock_mono_ns();

	for (unsigned i = 0; i < 4; i++) {
		struct codereader *c = open_map("@crash\n", true);
		struct codefile_progress p;

		while (codereader_read(c, 1 << 20, &p) == CODEREADER_LATER) {
			cr_assert(p.behind);
			usleep(10000);
			waits++;
		}
		codereader_free(c);
	}
	cr_expect_gt(waits, 3);
	cr_expect_gt(clock_mono_ns() - begun_ns, 7 * CODEREADER_REST_NS);
}

/* --- with what holds them --- */

static unsigned finds;

int __real_codereader_find(struct codereader *c, const uint64_t *addresses, unsigned count,
			   uint64_t time_ns, struct codefile_answer ret[static CODEREADER_BATCH],
			   const struct names **ret_names);
int __wrap_codereader_find(struct codereader *c, const uint64_t *addresses, unsigned count,
			   uint64_t time_ns, struct codefile_answer ret[static CODEREADER_BATCH],
			   const struct names **ret_names);
int __wrap_codereader_find(struct codereader *c, const uint64_t *addresses, unsigned count,
			   uint64_t time_ns, struct codefile_answer ret[static CODEREADER_BATCH],
			   const struct names **ret_names)
{
	finds++;
	return __real_codereader_find(c, addresses, count, time_ns, ret, ret_names);
}

struct bench {
	struct jit jit;
	int fd[2];
	unsigned lost;
	struct names names;
};

static int ask(void *ctx, const struct jit_request *rq)
{
	struct bench *b = ctx;
	const int fd = rq->kind == MSG_JIT_PERF_MAP ? b->fd[rq->process - 1] : -1;

	jit_answer(&b->jit, rq->id, fd < 0 ? -1 : dup(fd), SECOND);
	return 0;
}

static void say_lost(void *ctx, uint64_t process, uint32_t pid)
{
	struct bench *b = ctx;

	cr_expect(process == 1 && pid == 11);
	b->lost++;
}

Test(codereader, a_lost_file_is_counted_and_costs_no_other_names)
{
	static struct bench b;
	uint64_t now_ns = SECOND;
	int r;

	start();
	cr_assert_eq(jit_init(&b.jit, MAX, ask, &b), 0);
	b.jit.say_lost = say_lost;
	b.jit.say_lost_ctx = &b;
	b.fd[0] = file_of("1000 10 evil\n", true);
	b.fd[1] = file_of("1000 10 f\n2000 10 g\n", true);
	cr_expect_eq(jit_lookup(&b.jit, 2, 12, 0x1000, 5, now_ns, &b.names), 0);
	cr_expect_eq(jit_lookup(&b.jit, 1, 11, 0x1000, 5, now_ns, &b.names), 0);
	cr_assert_eq(write(b.fd[0], "@crash\n", 7), 7);
	now_ns += SECOND;
	cr_expect_eq(jit_lookup(&b.jit, 1, 11, 0x9000, 5, now_ns, &b.names), JIT_UNKNOWN);
	cr_expect_eq(b.lost, 1);
	cr_expect_eq(b.jit.lost, 1);
	cr_expect_eq(jit_settle(&b.jit, 1, now_ns), 0, "nothing more can come");
	/* It is read again. */
	for (unsigned i = 0; (r = jit_lookup(&b.jit, 2, 12, 0x2000, 5, now_ns, &b.names)) != 0;
	     i++) {
		cr_assert(r == JIT_LATER && i < 1000, "%d", r);
		usleep(10000);
		now_ns += 20000000;
		jit_tick(&b.jit, now_ns);
	}
	cr_expect(str_eq(b.names.calls[0].name, STR_LIT("g")));
	cr_expect_eq(b.lost, 1);
	jit_done(&b.jit);
	cr_expect_eq(jit_bytes(&b.jit), 0);
}

Test(codereader, frames_of_a_stack_are_one_request)
{
	static struct bench b;
	const uint64_t addresses[] = { 0x1000, 0x2000, 0x3000 };

	start();
	cr_assert_eq(jit_init(&b.jit, MAX, ask, &b), 0);
	b.fd[0] = file_of("1000 10 f\n2000 10 g\n", true);
	jit_want(&b.jit, 1, 11, SECOND);
	jit_expect(&b.jit, 1, addresses, 3);
	cr_expect_eq(jit_lookup(&b.jit, 1, 11, 0x2000, 5, SECOND, &b.names), 0);
	cr_expect(str_eq(b.names.calls[0].name, STR_LIT("g")));
	/* The other names are known without the worker. */
	finds = 0;
	cr_expect_eq(jit_lookup(&b.jit, 1, 11, 0x1000, 5, SECOND, &b.names), 0);
	cr_expect(str_eq(b.names.calls[0].name, STR_LIT("f")));
	cr_expect_eq(jit_lookup(&b.jit, 1, 11, 0x3000, 5, SECOND, &b.names), JIT_UNKNOWN);
	cr_expect_eq(finds, 0);
	jit_done(&b.jit);
}
