/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The same attempts from a process that nothing was taken from, holding a file that it may write
 * (its argument): what does not work from here proves nothing when it does not work from a tool.
 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>
#include "tests/redteam/attempts.h"

int main(int argc, char **argv)
{
	int fds[4];

	takeover_held = argc > 1 ? open(argv[1], O_RDWR) : -1;
	/* A socket as tools have one, and one that is told with each datagram where it goes. */
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds) || socketpair(AF_UNIX, SOCK_DGRAM, 0, fds + 2))
		return 1;
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
}
