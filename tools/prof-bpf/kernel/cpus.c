/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/kernel/cpus.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "common/base/command/exits.h"
#include "common/base/command/log.h"
#include "common/cell/confine/baseline.h"
#include "common/cell/confine/landlock.h"
#include "common/wire/bus/scm.h"
#include "tools/prof-bpf/kernel/loader.h"
#include "tools/prof-bpf/kernel/sideband.h"

#define SERVE_FD 3
#define EVERY_MS 1000
#define STOP_MS 1000   /* how long to wait for the helper's end */
#define CPUS_MOST 8192 /* the most cpus that Linux can be built for */

/* --- the command line between the two --- */

/* Indexed by [cycles][ksymbols]. */
static const char *const events_words[2][2] = { { "cpu-clock", "cpu-clock+ksymbols" },
						{ "cycles", "cycles+ksymbols" } };

const char *cpus_events_word(const struct cpus_events *e)
{
	return events_words[e->cycles][e->ksymbols];
}

bool cpus_events_parse(const char *word, struct cpus_events *ret)
{
	for (unsigned i = 0; i < 4; i++) {
		const struct cpus_events e = { .cycles = i & 2, .ksymbols = i & 1 };

		if (strcmp(word, cpus_events_word(&e)) == 0) {
			*ret = e;
			return true;
		}
	}
	return false;
}

/* --- prof-bpf's side --- */

int cpus_start(const struct cpus_config *c, struct cpus *ret)
{
	const struct deploy *d = c->deploy;
	char hz[16], ids[80];
	const char *argv[] = { "prof-cpus", "--cpus", cpus_events_word(&c->events), "-F", hz, NULL,
			       NULL,	    NULL };
	posix_spawn_file_actions_t files;
	char *environment[] = { NULL };
	int pair[2];

	*ret = (struct cpus){ .fd = -1 };
	snprintf(hz, sizeof(hz), "%u", c->hz);
	if (d->ids_given) {
		snprintf(ids, sizeof(ids), "%u:%u:%u:%u:%u", d->gid, d->uid[0], d->uid[1],
			 d->uid[2], d->uid[3]);
		argv[5] = "--ids";
		argv[6] = ids;
	}
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
		return -errno;
	/* The helper gets the socket and stderr. */
	posix_spawn_file_actions_init(&files);
	int r = -posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDWR, 0);
	if (!r)
		r = -posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_RDWR, 0);
	if (!r && pair[1] != SERVE_FD)
		r = -posix_spawn_file_actions_adddup2(&files, pair[1], SERVE_FD);
	if (!r)
		r = -posix_spawn_file_actions_addclosefrom_np(&files, SERVE_FD + 1);
	if (!r)
		r = -posix_spawn(&ret->pid, "/proc/self/exe", &files, NULL, (char *const *)argv,
				 environment);
	posix_spawn_file_actions_destroy(&files);
	close(pair[1]);
	if (r) {
		close(pair[0]);
		ret->pid = 0;
		return r;
	}
	ret->fd = pair[0];
	return 0;
}

/* Whether two descriptors are free. Otherwise a message would be lost with its descriptors, and the
 * filter of system calls does not allow looking at it first (MSG_PEEK). */
static bool has_room(int fd)
{
	const int one = fcntl(fd, F_DUPFD_CLOEXEC, 0), two = fcntl(fd, F_DUPFD_CLOEXEC, 0);

	if (one >= 0)
		close(one);
	if (two >= 0)
		close(two);
	return one >= 0 && two >= 0;
}

int cpus_next(struct cpus *c, uint32_t *ret_cpu, int *ret_sampling, int *ret_sideband)
{
	c->waits = false;
	if (c->fd >= 0) {
		struct pollfd p = { .fd = c->fd, .events = POLLIN };
		int fds[2];
		uint32_t cpu[2]; /* one more than is sent, to detect a wrong size */

		if (poll(&p, 1, 0) != 1)
			return -EAGAIN;
		c->waits = !(p.revents & POLLHUP) && !has_room(c->fd);
		if (c->waits)
			return -EMFILE;
		const ssize_t n = scm_receive(c->fd, cpu, sizeof(cpu), fds, 2, MSG_DONTWAIT);

		if (n == -EAGAIN)
			return -EAGAIN;
		if (n == sizeof(cpu[0]) && fds[0] >= 0 && fds[1] >= 0) {
			*ret_cpu = cpu[0];
			*ret_sampling = fds[0];
			*ret_sideband = fds[1];
			return 0;
		}
		for (int i = 0; i < 2; i++)
			if (fds[i] >= 0)
				close(fds[i]);
		/* Another thread took the descriptors meanwhile. */
		c->waits = n == sizeof(cpu[0]);
		if (c->waits)
			return -ENFILE;
		close(c->fd);
		c->fd = -1;
	}
	if (!c->pid)
		return -EAGAIN;
	/* The helper's socket closes a moment before it can be reaped. */
	c->waits = waitpid(c->pid, &c->wait_status, WNOHANG) == 0;
	if (c->waits)
		return -EAGAIN;
	c->pid = 0;
	return -EPIPE;
}

void cpus_stop(struct cpus *c)
{
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
	c->waits = false;
	/* The helper only has to end. If it is stopped, the kernel kills it when this process
	 * ends. */
	for (int i = 0; c->pid > 0 && i < STOP_MS && waitpid(c->pid, NULL, WNOHANG) == 0; i++)
		usleep(1000);
	c->pid = 0;
}

/* --- the helper --- */

/* mmap of events is not allowed: the ring of an event would reveal which programs run. */
static const struct seccomp_rule serve_calls[] = {
	CALL_IF("perf_event_open", SECCOMP_IS(1, -1), SECCOMP_IS(3, -1),
		SECCOMP_IS(4, PERF_FLAG_FD_CLOEXEC)),
	CALL("read"),
	CALL("sendmsg"),
	CALL("poll"),
	CALL_NUMBER("uretprobe", 335),
	CALL_NUMBER("uprobe", 336),
	SECCOMP_END,
};

/* Opens an event that counts time while its cpu is online. Once the cpu was offline, it never
 * counts again. */
static int canary_open(unsigned cpu)
{
	struct perf_event_attr a = { .size = sizeof(a),
				     .type = PERF_TYPE_SOFTWARE,
				     .config = PERF_COUNT_SW_CPU_CLOCK };

	return (int)syscall(SYS_perf_event_open, &a, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

static int send_events(uint32_t cpu, int sampling, int sideband)
{
	const int fds[] = { sampling, sideband };
	const ssize_t n = scm_send(SERVE_FD, &cpu, sizeof(cpu), fds, 2, MSG_DONTWAIT);

	return n < 0 ? (int)n : 0;
}

/* Sends the events of a cpu. Returns false if it must be tried again at the next look. */
static bool give(const struct cpus_config *c, unsigned cpu)
{
	const int sampling = loader_event_open(c->hz, c->events.cycles, cpu),
		  sideband = sideband_event_open(cpu, c->events.ksymbols);
	const int r = sampling < 0   ? sampling
		      : sideband < 0 ? sideband
				     : send_events(cpu, sampling, sideband);

	if (sampling >= 0)
		close(sampling);
	if (sideband >= 0)
		close(sideband);
	return r == 0;
}

struct watched {
	int canary; /* -1: the cpu was offline at the last look */
	uint64_t count;
};

/* Checks one cpu. Returns 0; -EACCES or -EPERM: no event can be opened here
 * (perf_event_paranoid). */
static int look(const struct cpus_config *c, struct watched *w, unsigned cpu, bool first)
{
	uint64_t count = 0;

	if (w->canary >= 0 &&
	    (read(w->canary, &count, sizeof(count)) != sizeof(count) || count == w->count)) {
		close(w->canary);
		w->canary = -1;
	}
	w->count = count;
	if (w->canary >= 0)
		return 0;
	w->canary = canary_open(cpu);
	w->count = 0;
	if (w->canary < 0)
		return errno == EACCES || errno == EPERM ? -errno : 0;
	/* The cpus that were online at the start are already sampled. */
	if (first || give(c, cpu))
		return 0;
	close(w->canary);
	w->canary = -1;
	return 0;
}

int cpus_serve(const struct cpus_config *c)
{
	struct sandbox sandbox = { .caps = SANDBOX_EVENT_CAPS, .max_files = 0 };
	const struct seccomp_rule *const lists[] = { baseline_calls, serve_calls };
	const long conf = sysconf(_SC_NPROCESSORS_CONF);
	const unsigned n = conf < 1 ? 1 : conf > CPUS_MOST ? CPUS_MOST : (unsigned)conf;
	struct watched *w = calloc(n, sizeof(*w));
	struct pollfd p = { .fd = SERVE_FD, .events = POLLIN };

	prctl(PR_SET_NAME, "prof-cpus");
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	if (!w || deploy_enter(c->deploy, DEPLOY_BPF, &sandbox))
		return EXITS_FAILED;
	/* If the helper is stopped, it does not notice that the other end closes. Set this now,
	 * since entering the identity clears it. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* If one restriction is not available, the others are still useful. */
	(void)landlock_enter(LANDLOCK_NOTHING, NULL);
	const int r = seccomp_enter(lists, 2, true);
	if (r && r != -EOPNOTSUPP && r != -EPERM && r != -EACCES && r != -ENOSYS) {
		log_error("system calls cannot be restricted: %s; this is a bug: report this line",
			  strerror(-r));
		return EXITS_FAILED;
	}
	for (unsigned i = 0; i < n; i++)
		w[i].canary = -1;
	for (bool first = true;; first = false) {
		for (unsigned i = 0; i < n; i++)
			if (look(c, &w[i], i, first))
				return EXITS_DONE;
		if (poll(&p, 1, EVERY_MS) != 0)
			break;
	}
	return EXITS_DONE;
}
