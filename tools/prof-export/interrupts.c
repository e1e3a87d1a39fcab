/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-export/interrupts.h"

#include <signal.h>
#include <stddef.h>

static volatile sig_atomic_t count;

static void on_signal(int number)
{
	count += number == SIGINT ? 1 : 2;
}

void interrupts_catch(int signal)
{
	const struct sigaction a = { .sa_handler = on_signal };

	sigaction(signal, &a, NULL);
}

int interrupts_count(void)
{
	return count;
}
