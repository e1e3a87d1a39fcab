/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/command/stdfds.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/base/command/exits.h"
#include "common/base/command/log.h"

void stdfds_hold(void)
{
	for (int fd = 0; fd <= 2; fd++) {
		if (fcntl(fd, F_GETFD) >= 0)
			continue;
		/* open returns the lowest free number, which is fd. */
		int got = open("/dev/null", fd ? O_RDONLY : O_WRONLY);

		if (got < 0)
			got = open("/", O_PATH);
		if (got != fd)
			_exit(EXITS_FAILED);
	}
}

int stdfds_flush(void)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return EXITS_DONE;
	stdfds_say(errno);
	return EXITS_FAILED;
}

void stdfds_say(int error)
{
	const char *remedy = "redirect it to a file or a pipe";

	if (error == ENOSPC || error == EDQUOT)
		remedy = "make room, or redirect it to another file system";
	else if (error == EFBIG)
		remedy = "raise the limit of a file's size (ulimit -f)";
	else if (error == EPIPE)
		remedy = "its reader went away before the end";
	log_error("standard output: %s; %s", strerror(error), remedy);
}
