/* SPDX-License-Identifier: Apache-2.0 */
#include "common/cell/budget/priority.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#define NICENESS -15
#define TEXT(n) TEXT_OF(n)
#define TEXT_OF(n) #n

void priority_raise(void)
{
	static const char text[] = TEXT(NICENESS);

	const struct sched_param none = { 0 };

	(void)setpriority(PRIO_PROCESS, 0, NICENESS);
	(void)sched_setscheduler(0, SCHED_OTHER | SCHED_RESET_ON_FORK, &none);
	if (getsid(0) != getpid())
		return;

	int fd = open("/proc/self/autogroup", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	if (write(fd, text, sizeof(text) - 1) < 0) {
		/* No permission, or less than a tenth of a second has passed since the last
		 * change. */
	}
	close(fd);
}

void priority_give_way(int thousandths)
{
	char text[16] = "";
	const int fd = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return;
	if (read(fd, text, sizeof(text) - 1) > 0 && atoi(text) < thousandths) {
		const int n = snprintf(text, sizeof(text), "%d", thousandths);

		if (pwrite(fd, text, (size_t)n, 0) < 0) {
			/* The value is unchanged. */
		}
	}
	close(fd);
}
