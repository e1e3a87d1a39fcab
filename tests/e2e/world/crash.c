/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded into a parser, which then dies when it reads the head of a marked file. The mark is in
 * the padding of e_ident, which no other code reads: "CRASH", and how.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static volatile int *volatile nowhere = (volatile int *)8;

static void look(const char *bytes, ssize_t n)
{
	if (n < 15 || memcmp(bytes, "\177ELF", 4) != 0 || memcmp(bytes + 9, "CRASH", 5) != 0)
		return;
	switch (bytes[14]) {
	case 'a':
		abort();
	case 's':
		*nowhere = 1;
		break;
	case 'f': /* for the first lives only */
		if (!getenv("DEADLY"))
			break;
		kill(getpid(), SIGKILL);
		break;
	case 'k':
		kill(getpid(), SIGKILL);
		break;
	case 'x':
		_exit(3);
	case 'r': { /* all of the stack */
		char big[1 << 16];

		memcpy(big, bytes, 16);
		__asm__ volatile("" ::"r"(big) : "memory");
		look(big, n);
		__asm__ volatile("" ::"r"(big) : "memory");
		break;
	}
	case 'l':
		for (;;)
			__asm__ volatile("" ::: "memory");
	}
}

ssize_t pread64(int fd, void *data, size_t size, off64_t offset)
{
	static ssize_t (*next)(int, void *, size_t, off64_t);

	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "pread64");

	const ssize_t n = next(fd, data, size, offset);

	if (offset == 0)
		look(data, n);
	return n;
}

ssize_t pread(int fd, void *data, size_t size, off_t offset)
{
	return pread64(fd, data, size, offset);
}
