/* SPDX-License-Identifier: Apache-2.0 */
/* Files in a folder of their own, opened at once (open_now) or by the workers (ask). */
#ifndef TESTS_UNIT_OPENER_FIXTURE_H
#define TESTS_UNIT_OPENER_FIXTURE_H

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>
#include "common/base/system/clock.h"
#include "tools/prof-bpf/open/opener.h"
#include "tools/prof-bpf/open/opening/opening.h"
#include "tools/prof-bpf/open/workers/workerpool.h"

struct answer {
	unsigned calls;
	struct opener_result r;
};

static char dir[64];
static int proc = -1;

static inline void set_up(void)
{
	proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	snprintf(dir, sizeof(dir), "/tmp/opener-XXXXXX");
	cr_assert_not_null(mkdtemp(dir));
}

static inline void clean_up(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", dir);
	(void)!system(command);
	close(proc);
}

static inline const char *path_of(const char *name)
{
	static char paths[4][256];
	static unsigned next;
	char *p = paths[next++ % 4];

	snprintf(p, sizeof(paths[0]), "%s/%s", dir, name);
	return p;
}

static inline void write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "we");

	cr_assert_not_null(f, "%s", path);
	fputs(text, f);
	fclose(f);
}

static inline void take(void *ctx, const struct opener_result *r)
{
	struct answer *a = ctx;

	a->calls++;
	a->r = *r;
}

/* The first byte that can be read, or -1. */
static inline int first_byte(const struct opener_result *r)
{
	uint8_t c;

	return r->fd >= 0 && pread(r->fd, &c, 1, 0) == 1 ? c : -1;
}

/* The strings of q end with NUL. */
static inline void open_now(const struct opener_request *q, struct opener_result *ret)
{
	struct opener_request checked = *q;

	*ret = (struct opener_result){ .fd = -1, .status = opening_check(q) };
	if (ret->status)
		return;
	checked.path.data = q->path.len ? q->path.data : "";
	checked.name.data = q->name.len ? q->name.data : "";
	struct opening o = { .proc = proc, .may_copy = true, .copy_max = OPENER_COPY_MAX };
	opening_run(&o, &checked, ret);
}

static inline struct opener_result open_path(const char *path)
{
	struct opener_request q = { .kind = OPENER_PATH, .path = str_from(path) };
	struct opener_result r;

	open_now(&q, &r);
	return r;
}

/* A child that maps fd, or a file, says where and waits. */
static inline pid_t start_mapper(int fd, uint64_t *ret_at)
{
	int fds[2];

	cr_assert_eq(pipe(fds), 0);
	pid_t pid = fork();
	if (pid == 0) {
		void *at = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
		uint64_t where = at == MAP_FAILED ? 0 : (uint64_t)at;

		(void)!write(fds[1], &where, sizeof(where));
		close(fd);
		for (;;)
			pause();
	}
	cr_assert_eq(read(fds[0], ret_at, sizeof(*ret_at)), sizeof(*ret_at));
	cr_assert_neq(*ret_at, 0);
	close(fds[0]);
	close(fds[1]);
	return pid;
}

static inline void stop(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static inline struct opener_result open_mapped(pid_t pid, uint64_t at)
{
	struct opener_request q = {
		.kind = OPENER_MAPPING, .pid = (uint32_t)pid, .start = at, .end = at + 4096
	};
	struct opener_result r;

	open_now(&q, &r);
	return r;
}

/* --- by workers --- */

static struct workerpool *pool;
static struct opener *opener;

static inline void start(void)
{
	cr_assert_eq(workerpool_start("/proc", &pool), 0);
	cr_assert_eq(opener_new(pool, 1u << 20, &opener), 0);
}

static inline void finish(void)
{
	workerpool_free(pool);
	opener_free(opener);
}

static inline void run_until(const struct answer *a, unsigned calls, int timeout_ms)
{
	uint64_t until = clock_mono_ns() + (uint64_t)timeout_ms * 1000000;

	while (a->calls < calls && clock_mono_ns() < until) {
		struct pollfd p = { .fd = workerpool_fd(pool), .events = POLLIN };

		(void)poll(&p, 1, 20);
		workerpool_run(pool, clock_mono_ns());
	}
}

static inline struct opener_result ask(const struct opener_request *q, int timeout_ms)
{
	struct answer a = { 0 };
	uint64_t ticket;

	cr_assert_eq(opener_submit(opener, q, take, &a, &ticket), 0);
	run_until(&a, 1, timeout_ms);
	cr_assert_eq(a.calls, 1);
	return a.r;
}

#endif
