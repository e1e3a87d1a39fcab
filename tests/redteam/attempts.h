/* SPDX-License-Identifier: Apache-2.0 */
/* Common parts of the attempts: the kernel without libc, and their orders. Each attempt returns the
 * result of its last system call: >= 0 where it worked, else -errno. */
#ifndef TESTS_REDTEAM_ATTEMPTS_H
#define TESTS_REDTEAM_ATTEMPTS_H

#include <sys/syscall.h>
#include "tests/redteam/takeover.h"

extern struct takeover_orders *takeover_orders;
/* The descriptor of another user's file that the tool was handed. */
extern int takeover_held;
/* The descriptor of the closed folder, as if the tool had been started with it. */
extern int takeover_folder;

static inline long call6(long n, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
	long r;

	__asm__ volatile("syscall"
			 : "=a"(r)
			 : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return r;
}
#define CALL_(n, a, b, c, d, e, f, ...) \
	call6((long)(n), (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))
#define CALL(...) CALL_(__VA_ARGS__, 0, 0, 0, 0, 0, 0)

/* An attempt that is a single call. */
#define AS_CALL(name, ...) \
	long name(void) \
	{ \
		return CALL(__VA_ARGS__); \
	}

/* For a call that returns an address, which differs from an errno only by its range. */
static inline long address_or_error(long at)
{
	return at < 0 && at > -4096 ? at : 0;
}

/* Returns the new end. */
static inline char *append(char *at, const char *text)
{
	while (*text)
		*at++ = *text++;
	*at = '\0';
	return at;
}

/* Another name in the folder of the file that everybody may write. */
static inline const char *beside(char *ret)
{
	append(append(ret, takeover_orders->open_file), "-too");
	return ret;
}

/* The first socket from fd on; -1: there is none below SOCKETS_END. */
int next_socket(int fd);
#define SOCKETS_END 128

#define TRY(name) long name(void);
#define TRY_HELD(name) long name(void);
#define ACT(name) long name(void);
#include "tests/redteam/attempts.def"
#undef TRY
#undef TRY_HELD
#undef ACT

#endif
