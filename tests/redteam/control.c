/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The same attempts from a process with all rights that holds a file which it may write (its
 * argument). An attempt that fails here proves nothing when it fails in a tool.
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
	/* A socket like those of tools, and one whose datagrams each name their destination. */
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds) || socketpair(AF_UNIX, SOCK_DGRAM, 0, fds + 2))
		return 1;
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
}
