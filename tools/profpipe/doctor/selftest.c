/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/profpipe/doctor/selftest.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "common/base/bytes/str.h"
#include "common/base/command/exits.h"
#include "common/base/system/clock.h"
#include "tools/profpipe/options/options.h"
#include "tools/profpipe/run/record.h"

#define RUN_MS 240000 /* record's own deadlines end it before this */
#define OUTPUT_MAX (4u << 20)
#define SPIN_NS 500000u
/* Fewer samples than this may be an accident of one run. */
#define SAMPLES_ENOUGH 20
#define COMPLETE_ENOUGH 2 /* one in this many stacks must be complete */

/* --- the two processes --- */

/* Spends half of its time in user code and half in the kernel. */
static __attribute__((noinline, noreturn)) void spin(void)
{
	static unsigned char bytes[16384];

	for (;;) {
		const uint64_t since = clock_mono_ns();

		while (clock_mono_ns() - since < SPIN_NS)
			for (volatile int i = 0; i < 1000; i++)
				;
		while (clock_mono_ns() - since < 2 * SPIN_NS)
			if (getrandom(bytes, sizeof(bytes), 0) < 0)
				break;
	}
}

static pid_t start_spinner(pid_t parent)
{
	const pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(EXITS_DONE);
		spin();
	}
	return pid;
}

static pid_t start_run(pid_t parent, pid_t spinner, double seconds, bool unsafe, int output,
		       int said)
{
	const pid_t pid = fork();

	if (pid != 0)
		return pid;
	static char path[32];
	static struct options o;

	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent || dup2(said, STDERR_FILENO) < 0)
		_exit(EXITS_FAILED);
	snprintf(path, sizeof(path), "/dev/fd/%d", output);
	o = (struct options){ .sampling = { .hz = SELFTEST_HZ,
					    .seconds = seconds,
					    .pids = { (uint32_t)spinner },
					    .pid_count = 1,
					    .ignore_unsafe_kernel = unsafe },
			      .output = path,
			      .format = FORMAT_FOLDED,
			      .reporting = REPORTING_DEFAULTS,
			      .quiet = true };
	_exit(record_run(&o));
}

/* Waits for the run, and returns its exit status or -ETIMEDOUT. */
static int await_run(pid_t pid)
{
	const int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd p = { .fd = pidfd, .events = POLLIN };
	int status = 0;
	const bool ended = pidfd >= 0 && poll(&p, 1, RUN_MS) == 1;

	if (pidfd >= 0)
		close(pidfd);
	if (!ended)
		kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	return !ended ? -ETIMEDOUT : WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

/* Maps the contents of a memfd; NULL if it is empty. The caller unmaps *ret_n bytes. */
static const char *map_text(int fd, size_t *ret_n)
{
	const off_t end = lseek(fd, 0, SEEK_END);

	if (end <= 0)
		return NULL;
	*ret_n = (size_t)end < OUTPUT_MAX ? (size_t)end : OUTPUT_MAX;
	const char *text = mmap(NULL, *ret_n, PROT_READ, MAP_PRIVATE, fd, 0);

	return text == MAP_FAILED ? NULL : text;
}

/* Copies the last line of the log, which the run has escaped. */
static void take_trouble(int fd, int status, struct selftest *t)
{
	static const char head[] = "profpipe: error: ";
	size_t n = 0;
	const char *text = map_text(fd, &n), *at = text;

	if (status < 0)
		snprintf(t->trouble, sizeof(t->trouble), "the run did not end");
	if (!text)
		return;
	while (n && text[n - 1] == '\n')
		n--;
	const char *line = n ? memrchr(text, '\n', n) : NULL;

	at = line ? line + 1 : text;
	size_t len = (size_t)(text + n - at);

	if (str_starts((struct str){ .data = at, .len = (uint32_t)len }, head)) {
		at += sizeof(head) - 1;
		len -= sizeof(head) - 1;
	}
	if (status > 0)
		snprintf(t->trouble, sizeof(t->trouble), "%.*s", (int)len, at);
	munmap((void *)(uintptr_t)text, n);
}

static int run_once(double seconds, bool ignore_unsafe_kernel, struct selftest *ret)
{
	const pid_t parent = getpid();
	pid_t spinner = -1, run = -1;
	size_t n = 0;
	int r = 0;

	*ret = (struct selftest){ .seconds = seconds };
	const int output = memfd_create("profile", 0), said = memfd_create("said", MFD_CLOEXEC);

	if (output < 0 || said < 0)
		r = -errno;
	if (!r) {
		spinner = start_spinner(parent);
		r = spinner < 0 ? -errno : 0;
	}
	if (!r) {
		run = start_run(parent, spinner, seconds, ignore_unsafe_kernel, output, said);
		r = run < 0 ? -errno : 0;
	}
	if (!r) {
		take_trouble(said, await_run(run), ret);
		const char *text = map_text(output, &n);

		if (text) {
			folded_counts_add(&ret->seen, text, n);
			munmap((void *)(uintptr_t)text, n);
		}
	}
	if (spinner > 0) {
		kill(spinner, SIGKILL);
		waitpid(spinner, NULL, 0);
	}
	if (output >= 0)
		close(output);
	if (said >= 0)
		close(said);
	return r;
}

int selftest_run(bool ignore_unsafe_kernel, struct selftest *ret)
{
	static const double seconds[] = { 0.5, 10 };
	int r = 0;

	for (size_t i = 0; i < sizeof(seconds) / sizeof(seconds[0]); i++) {
		r = run_once(seconds[i], ignore_unsafe_kernel, ret);
		if (r || ret->trouble[0] ||
		    (ret->seen.samples >= SAMPLES_ENOUGH &&
		     ret->seen.complete >= ret->seen.samples / COMPLETE_ENOUGH))
			break;
	}
	return r;
}
