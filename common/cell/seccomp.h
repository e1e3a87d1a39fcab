/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which system calls a tool may make, as a list that the kernel holds it to (seccomp(2), by
 * libseccomp). Whatever the lists do not name kills the process; numbers that came after Linux
 * 5.17, which a newer libc may try before it does without, fail with ENOSYS unless they are named.
 *
 * Filters add up: a second one can only take away. One that is entered for all threads reaches
 * those that nng has started.
 */
#ifndef PROFPIPE_SECCOMP_H
#define PROFPIPE_SECCOMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SECCOMP_ARGS 4	   /* conditions of a rule */
#define SECCOMP_NEWEST 450 /* set_mempolicy_home_node, of Linux 5.17 */

/* (argument `number` & mask) == value; mask 0: there is no such condition. Pointers cannot be
 * looked behind. A rule has one condition for an argument at most. */
struct seccomp_arg {
	unsigned number;
	uint64_t mask, value;
};
/* A call that is allowed where all its conditions hold, or fails. A call may have several rules; of
 * those without a condition only one. */
struct seccomp_rule {
	const char *call; /* its name; NULL ends a list */
	int error;	  /* 0: allowed; else it fails with this errno */
	struct seccomp_arg args[SECCOMP_ARGS];
	int number; /* for calls that libseccomp has no name for; 0: by name */
};

/* How lists are written: { CALL("read"), CALL_IF("kill", SECCOMP_IS(1, 0)), CALL_FAILS("clone3",
 * ENOSYS), CALLS_END }. */
#define CALL(name) \
	{ \
		.call = (name) \
	}
#define CALL_IF(name, ...) \
	{ \
		.call = (name), .args = { __VA_ARGS__ } \
	}
#define CALL_FAILS(name, errno_) \
	{ \
		.call = (name), .error = (errno_) \
	}
#define CALL_FAILS_IF(name, errno_, ...) \
	{ \
		.call = (name), .error = (errno_), .args = { __VA_ARGS__ } \
	}
#define CALL_NUMBER(name, n) \
	{ \
		.call = (name), .number = (n) \
	}
#define CALLS_END \
	{ \
		.call = NULL \
	}

/* The whole of an int argument; bits of one that have to be clear, set, or so. */
#define SECCOMP_IS(n, v) \
	{ \
		.number = (n), .mask = UINT32_MAX, .value = (uint32_t)(v) \
	}
#define SECCOMP_CLEAR(n, bits) \
	{ \
		.number = (n), .mask = (bits), .value = 0 \
	}
#define SECCOMP_SET(n, bits) \
	{ \
		.number = (n), .mask = (bits), .value = (bits) \
	}
#define SECCOMP_BITS(n, bits, v) \
	{ \
		.number = (n), .mask = (bits), .value = (v) \
	}

/* Whether the kernel has filters, and nobody forbids them. */
bool seccomp_available(void);
/* Enters a filter of all the given lists together; a NULL list is empty. Sets no_new_privs. Names
 * that this machine has no call for are passed over. all_threads: for every thread of the process,
 * and else for the caller's and those it starts. Nothing under AddressSanitizer, which needs more.
 *
 * -EOPNOTSUPP: the kernel has no filters. -EINVAL: a rule is wrong. -ENOMEM, or another -errno of
 * the kernel's. After an error no filter was entered. */
int seccomp_enter(const struct seccomp_rule *const lists[], size_t count, bool all_threads);

#endif
