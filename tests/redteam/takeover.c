/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts: "tool", the process that was started; "keeper" and "worker", its child and grandchild
 * that enter lists of system calls of their own (prof-symd's; the lender of prof-send); "half",
 * which prof-dump starts. A process that a tool forks for another purpose is none of them.
 */
#include "tests/redteam/takeover.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "tests/redteam/attempts.h"

struct takeover_orders *takeover_orders;
int takeover_held = -1;
int takeover_folder = -1;
static const char *wanted = "tool";
static pid_t first, taken_over;
static bool forked; /* by a child of the first */

static const struct attempt {
	const char *name;
	long (*run)(void);
	const char *kind;
} attempts[] = {
#define TRY(f) { #f, f, "" },
#define TRY_HELD(f) { #f, f, " held" },
#define ACT(f) { #f, f, " act" },
#include "tests/redteam/attempts.def"
};

#define ATTEMPTS (sizeof(attempts) / sizeof(attempts[0]))

static void carry_out(bool while_reading)
{
	struct takeover_orders *o = takeover_orders;
	const struct attempt *a = &attempts[o->attempt % ATTEMPTS];
	const bool held = strcmp(a->kind, " held") == 0;

	if (__atomic_load_n(&o->state, __ATOMIC_SEQ_CST) != TAKEOVER_ORDERED ||
	    (held ? takeover_held < 0 : while_reading))
		return;
	o->tried = taken_over;
	__atomic_store_n(&o->state, TAKEOVER_BEGUN, __ATOMIC_SEQ_CST);
	o->result = a->run();
	__atomic_store_n(&o->state, TAKEOVER_DONE, __ATOMIC_SEQ_CST);
}

static void told(int signal)
{
	(void)signal;
	carry_out(false);
}

void takeover_now(void)
{
	if (takeover_orders && getpid() == taken_over)
		carry_out(false);
}

/* Ignores other files: everybody may write those of the test. */
void takeover_holding(int fd)
{
	struct stat st;

	if (!takeover_orders || getpid() != taken_over || CALL(SYS_fstat, fd, &st) ||
	    (st.st_mode & 0777) != 0777)
		return;
	takeover_held = fd;
	carry_out(true);
	takeover_held = -1;
}

void takeover_begin(const char *part)
{
	const struct sigaction act = { .sa_handler = told, .sa_flags = SA_RESTART };

	if (!takeover_orders || strcmp(part, wanted) != 0)
		return;
	if (sigaction(SIGUSR2, &act, NULL))
		_exit(3);
	taken_over = getpid();
	__atomic_store_n(&takeover_orders->self, taken_over, __ATOMIC_SEQ_CST);
}

void takeover_entered(void)
{
	if (!takeover_orders)
		return;
	if (getpid() != first) {
		takeover_begin(forked ? "worker" : "keeper");
		forked = true;
	}
	if (getpid() == taken_over)
		__atomic_fetch_add(&takeover_orders->entered, 1, __ATOMIC_SEQ_CST);
}

__attribute__((constructor)) static void prepare(void)
{
	const char *path = getenv("REDTEAM_ORDERS"), *part = getenv("REDTEAM_PART");

	if (getenv("REDTEAM_LIST")) {
		for (size_t i = 0; i < ATTEMPTS; i++)
			printf("%s%s\n", attempts[i].name, attempts[i].kind);
		exit(0);
	}
	if (!path)
		return;
	if (part)
		wanted = part;

	const int fd = open(path, O_RDWR | O_CLOEXEC);
	void *at = fd < 0 ? MAP_FAILED
			  : mmap(NULL, sizeof(*takeover_orders), PROT_READ | PROT_WRITE, MAP_SHARED,
				 fd, 0);

	if (at == MAP_FAILED) {
		perror(path);
		exit(3);
	}
	close(fd);
	takeover_orders = at;
	first = getpid();
	/* As if the process that started it had left a descriptor open. */
	char folder[sizeof(takeover_orders->open_file)];

	append(folder, takeover_orders->open_file);
	*strrchr(folder, '/') = '\0';
	takeover_folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	takeover_begin("tool");
}
