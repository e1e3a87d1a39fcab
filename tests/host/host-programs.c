/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that are hard to follow: `host-programs KIND` does what KIND says, prints "ready PID"
 * for each process whose mappings are to be compared, and waits to be killed. `host-programs` alone
 * lists the kinds.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void fail(const char *what)
{
	fprintf(stderr, "host-programs: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void ready(void)
{
	printf("ready %d\n", getpid());
	fflush(stdout);
}

static void wait_for_ever(void)
{
	for (;;)
		pause();
}

static void *map(void *at, size_t size, int prot, int flags, int fd, off_t offset)
{
	void *p = mmap(at, size, prot, MAP_PRIVATE | flags, fd, offset);

	if (p == MAP_FAILED)
		fail("mmap");
	return p;
}

static int open_self(void)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		fail("/proc/self/exe");
	return fd;
}

#define RX (PROT_READ | PROT_EXEC)

/* Runs from memory: a copy of itself in a memfd. */
static void memfd(void)
{
	int self = open_self(), fd = memfd_create("host-programs", MFD_CLOEXEC);
	struct stat st;
	char name[] = "host-programs", kind[] = "plain", *argv[] = { name, kind, NULL },
	     *envp[] = { NULL };

	if (fd < 0 || fstat(self, &st) ||
	    sendfile(fd, self, NULL, (size_t)st.st_size) != st.st_size)
		fail("memfd");
	fexecve(fd, argv, envp);
	fail("fexecve");
}

static void plain(void)
{
	ready();
}

static void split(void)
{
	int fd = open_self();
	char *p = map(NULL, 20 * 4096, PROT_NONE, MAP_ANONYMOUS, -1, 0);

	map(p, 16 * 4096, RX, MAP_FIXED, fd, 0);
	map(p + 4 * 4096, 2 * 4096, RX, MAP_FIXED | MAP_ANONYMOUS, -1, 0);
	map(p + 8 * 4096, 4096, RX, MAP_FIXED, fd, 4096);
	map(p + 15 * 4096, 2 * 4096, RX, MAP_FIXED, fd, 0);
	ready();
}

static void jit(void)
{
	char *p = map(NULL, 64 * 4096, PROT_READ | PROT_WRITE, MAP_ANONYMOUS, -1, 0);

	for (unsigned i = 0; i < 3000; i++) {
		char *page = p + (i * 7 % 64) * 4096;

		if (mprotect(page, 4096, PROT_READ | PROT_WRITE))
			fail("mprotect");
		*page = (char)i;
		if (mprotect(page, 4096, RX))
			fail("mprotect");
	}
	if (mprotect(p, 64 * 4096, RX))
		fail("mprotect");
	ready();
}

static void late_exec_right(void)
{
	int fd = open_self();
	char *p = map(NULL, 3 * 4096, PROT_READ, 0, fd, 0);

	if (mprotect(p + 4096, 4096, RX))
		fail("mprotect");
	ready();
}

/* A hundred thousand, if the limit allows it. */
static void many(void)
{
	FILE *f = fopen("/proc/sys/vm/max_map_count", "re");
	unsigned long max = 65530;

	if (f && fscanf(f, "%lu", &max) != 1)
		max = 65530;
	if (f)
		fclose(f);
	unsigned long n = max > 110000 ? 100000 : max - 2000;
	char *room = map(NULL, n * 8192, PROT_NONE, MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	int fd = open_self();

	munmap(room, n * 8192);
	for (unsigned long i = 0; i < n; i++)
		map(room + i * 8192, 4096, RX, MAP_FIXED | (i % 2 ? MAP_ANONYMOUS : 0),
		    i % 2 ? -1 : fd, 0);
	fprintf(stderr, "%lu mappings\n", n);
	ready();
}

static void forks(void)
{
	int fd = open_self();

	for (unsigned i = 0; i < 3; i++) {
		pid_t pid = fork();

		if (pid < 0)
			fail("fork");
		if (pid)
			continue;
		map(NULL, (i + 1) * 4096, RX, 0, fd, 0);
		prctl(PR_SET_PDEATHSIG, 9);
		ready();
		wait_for_ever();
	}
	map(NULL, 8 * 4096, RX, 0, fd, 0);
	ready();
}

static void execs(void)
{
	const char *left = getenv("LEFT");
	int n = left ? atoi(left) : 5;
	char more[16];

	if (n == 0) {
		ready();
		return;
	}
	snprintf(more, sizeof(more), "%d", n - 1);
	setenv("LEFT", more, 1);
	execl("/proc/self/exe", "host-programs", "execs", (char *)NULL);
	fail("exec");
}

static void spawn_by_vfork(void)
{
	for (volatile unsigned i = 0; i < 20; i++) {
		pid_t pid = vfork();

		if (pid == 0) {
			execl("/bin/true", "true", (char *)NULL);
			_exit(1);
		}
		waitpid(pid, NULL, 0);
	}
	ready();
}

static void *sleep_thread(void *arg)
{
	usleep(100000);
	ready();
	wait_for_ever();
	return NULL;
}

static void leader_gone(void)
{
	pthread_t t;

	pthread_create(&t, NULL, sleep_thread, NULL);
	pthread_exit(NULL);
}

static void *exec_thread(void *arg)
{
	execl("/proc/self/exe", "host-programs", "plain", (char *)NULL);
	fail("exec");
	return NULL;
}

static void exec_by_thread(void)
{
	pthread_t t;

	pthread_create(&t, NULL, exec_thread, NULL);
}

static void *map_thread(void *arg)
{
	for (unsigned i = 0; i < 50; i++)
		map(NULL, 4096, RX, i % 2 ? MAP_ANONYMOUS : 0, i % 2 ? -1 : *(int *)arg, 0);
	return NULL;
}

static void threads(void)
{
	pthread_t t[8];
	int fd = open_self();

	for (unsigned i = 0; i < 8; i++)
		pthread_create(&t[i], NULL, map_thread, &fd);
	for (unsigned i = 0; i < 8; i++)
		pthread_join(t[i], NULL);
	ready();
}

static void odd_name(void)
{
	prctl(PR_SET_NAME, ") S 1 (\n\\");
	ready();
}

static const struct {
	const char *name;
	void (*run)(void);
} kinds[] = {
	{ "plain", plain },
	{ "memfd", memfd },
	{ "split", split },
	{ "jit", jit },
	{ "late-exec-right", late_exec_right },
	{ "many", many },
	{ "forks", forks },
	{ "execs", execs },
	{ "vfork", spawn_by_vfork },
	{ "leader-gone", leader_gone },
	{ "exec-by-thread", exec_by_thread },
	{ "threads", threads },
	{ "odd-name", odd_name },
};

int main(int argc, char **argv)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (argc < 2) {
			printf("%s\n", kinds[i].name);
		} else if (strcmp(kinds[i].name, argv[1]) == 0) {
			kinds[i].run();
			wait_for_ever();
		}
	}
	return argc < 2 ? 0 : 2;
}
