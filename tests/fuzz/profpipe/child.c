/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Input: what a tool writes into its two pipes to the launcher: log lines and status words, in
 * pieces. The launcher prints them: the progress line, the summary and its JSON.
 *
 * An input is a list of steps: a byte that selects the pipe, one for the length, and the bytes;
 * they are made into a status word, complete or not. The launcher shows nothing that controls a
 * terminal, no more lines than allowed, and each under the tool's own name.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/base/bytes/span.h"
#include "tests/fuzz/must.h"
#include "tools/profpipe/run/children/child.h"
#include "tools/profpipe/run/summary/summary.h"

#define STATUS_FD 1000000 /* a descriptor number that is not open, nor is the next */
#define LOG_FD 1000001
#define MAX_STEPS 32

enum step { LOG, STATUS, STATUS_BYTES, LOG_ENDS, STATUS_ENDS, SHOW, STEPS };

static struct {
	struct span log, status;
	bool log_ended, status_ended;
	unsigned open, lines;
} pipes;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

ssize_t __real_read(int fd, void *to, size_t n);
ssize_t __wrap_read(int fd, void *to, size_t n);
ssize_t __wrap_read(int fd, void *to, size_t n)
{
	if (fd < STATUS_FD)
		return __real_read(fd, to, n);
	struct span *from = fd == LOG_FD ? &pipes.log : &pipes.status;

	if (n > from->len)
		n = from->len;
	if (!n && !(fd == LOG_FD ? pipes.log_ended : pipes.status_ended)) {
		errno = EAGAIN;
		return -1;
	}
	if (n)
		(void)span_read(from, to, n);
	return (ssize_t)n;
}

int __real_close(int fd);
int __wrap_close(int fd);
int __wrap_close(int fd)
{
	if (fd < STATUS_FD)
		return __real_close(fd);
	must(pipes.open--);
	return 0;
}

static bool is_plain(uint8_t c)
{
	return c >= 0x20 && c != 0x7f;
}

static void show(void *ctx, const struct child *c, const char *line)
{
	must(strncmp(line, "prof-bpf:", 9) == 0);
	must(++pipes.lines <= CHILD_LINES_MAX + 1);
	for (const char *at = line; *at; at++)
		must(is_plain((uint8_t)*at));
}

/* Our own escape sequence may only begin the progress line. */
static ssize_t print(void *ctx, const char *text, size_t n)
{
	static const char again[] = "\r\033[K";
	size_t i = 0;

	if (n >= sizeof(again) - 1 && memcmp(text, again, sizeof(again) - 1) == 0)
		i = sizeof(again) - 1;
	for (; i < n; i++)
		must(is_plain((uint8_t)text[i]) || text[i] == '\n');
	return (ssize_t)n;
}

static void print_all(const struct status *st)
{
	static FILE *out;
	static int null = -1;
	const struct summary_cost cost = { .tool = "prof-bpf", .cpu_s = 1 };
	const struct summary s = { .figures = *st,
				   .hz = 99,
				   .format = "html",
				   .output = "flame.html",
				   .costs = &cost,
				   .cost_count = 1 };

	if (!out) {
		out = fopencookie(NULL, "w", (cookie_io_functions_t){ .write = print });
		null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	}
	must(out && null >= 0);
	summary_progress(out, 1, st, "sampling");
	must(fflush(out) == 0);
	summary_print(out, &s);
	must(fflush(out) == 0);
	must(summary_json(null, &s) == 0);
}

/* Sends a status word with fields from the input; its magic is right if `which` is even. */
static void say_status(struct child *c, uint8_t which, struct span bytes)
{
	static struct status st;

	memset(&st, which, sizeof(st));
	if (bytes.data)
		memcpy(&st, bytes.data, bytes.len);
	if (!(which & 1))
		st.magic = STATUS_MAGIC;
	if (which & 2 && bytes.data)
		memcpy(st.top[which >> 4 & 7].name, bytes.data,
		       bytes.len < STATUS_NAME ? bytes.len : STATUS_NAME);
	pipes.status = (struct span){ .data = (const uint8_t *)&st,
				      .len = which & 4 ? sizeof(st) - which : sizeof(st) };
	child_read(c, show, NULL);
}

static void step(struct child *c, const uint8_t head[3], struct span *rest)
{
	struct span bytes = { 0 };
	const size_t n = head[2] < rest->len ? head[2] : rest->len;

	switch (head[0] % STEPS) {
	case LOG:
		(void)span_take(rest, n, &pipes.log);
		break;
	case STATUS:
		(void)span_take(rest, n, &bytes);
		say_status(c, head[1], bytes);
		return;
	case STATUS_BYTES:
		(void)span_take(rest, n, &pipes.status);
		break;
	case LOG_ENDS:
		pipes.log_ended = true;
		break;
	case STATUS_ENDS:
		pipes.status_ended = true;
		break;
	default:
		child_show_pending(c, UINT64_MAX, show, NULL);
	}
	/* As if the tool had logged nearly as much as allowed. */
	if (head[1] == 0xff && c->lines < CHILD_LINES_MAX - 2) {
		c->lines = CHILD_LINES_MAX - 2;
		pipes.lines = c->lines - (c->pending_ns != 0);
	}
	child_read(c, show, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct child c;
	struct span rest = { .data = data, .len = size };
	uint8_t head[3];

	memset(&pipes, 0, sizeof(pipes));
	/* Not the large texts; clearing their lengths is enough. */
	memset(&c, 0, offsetof(struct child, line));
	c.pending_ns = 0;
	c.name = "prof-bpf";
	c.pidfd = c.life = -1;
	c.status = STATUS_FD;
	c.log = LOG_FD;
	pipes.open = 2;
	for (int i = 0; i < MAX_STEPS && span_read(&rest, head, sizeof(head)); i++)
		step(&c, head, &rest);
	pipes.log_ended = pipes.status_ended = true;
	pipes.log.len = pipes.status.len = 0;
	child_read(&c, show, NULL);
	child_show_pending(&c, UINT64_MAX, show, NULL);
	if (c.last.phase)
		print_all(&c.last);
	must(c.log < 0 && c.status < 0 && pipes.open == 0);
	return 0;
}
