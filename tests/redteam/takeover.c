/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/redteam/takeover.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include "tests/redteam/attempts.h"

struct takeover_orders *takeover_orders;
int takeover_held = -1;
static pid_t taken_over; /* its helpers, which it forks, are others */

static const struct attempt {
	const char *name;
	long (*run)(void);
	bool held;
} attempts[] = {
#define TRY(f) { #f, f, false },
#define TRY_HELD(f) { #f, f, true },
#include "tests/redteam/attempts.def"
};

#define ATTEMPTS (sizeof(attempts) / sizeof(attempts[0]))

static void carry_out(bool while_reading)
{
	struct takeover_orders *o = takeover_orders;
	const struct attempt *a = &attempts[o->attempt % ATTEMPTS];

	if (__atomic_load_n(&o->state, __ATOMIC_SEQ_CST) != TAKEOVER_ORDERED ||
	    (a->held ? takeover_held < 0 : while_reading))
		return;
	__atomic_store_n(&o->state, TAKEOVER_BEGUN, __ATOMIC_SEQ_CST);
	o->result = a->run();
	__atomic_store_n(&o->state, TAKEOVER_DONE, __ATOMIC_SEQ_CST);
}

static void told(int signal)
{
	carry_out(false);
}

void takeover_holding(int fd)
{
	if (!takeover_orders || getpid() != taken_over)
		return;
	takeover_held = fd;
	carry_out(true);
	takeover_held = -1;
}

__attribute__((constructor)) static void prepare(void)
{
	const char *path = getenv("REDTEAM_ORDERS");
	struct sigaction act = { .sa_handler = told, .sa_flags = SA_RESTART };

	if (getenv("REDTEAM_LIST")) {
		for (size_t i = 0; i < ATTEMPTS; i++)
			printf("%s%s\n", attempts[i].name, attempts[i].held ? " held" : "");
		exit(0);
	}
	if (!path)
		return;

	const int fd = open(path, O_RDWR | O_CLOEXEC);
	void *at = fd < 0 ? MAP_FAILED
			  : mmap(NULL, sizeof(*takeover_orders), PROT_READ | PROT_WRITE, MAP_SHARED,
				 fd, 0);

	if (at == MAP_FAILED || sigaction(SIGUSR2, &act, NULL)) {
		perror(path);
		exit(3);
	}
	close(fd);
	takeover_orders = at;
	taken_over = getpid();
}
