/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The same attempts from a process that nothing was taken from, holding a file that it may write
 * (its argument): what does not work from here proves nothing when it does not work from a tool.
 */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
#include "tests/redteam/attempts.h"

int main(int argc, char **argv)
{
	takeover_held = argc > 1 ? open(argv[1], O_RDWR) : -1;
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
}
