/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists of allowed system calls, which the kernel enforces (seccomp(2), through libseccomp). A call
 * that no list contains kills the process. Calls newer than Linux 5.17 fail with ENOSYS unless a
 * list contains them: a newer libc may try them first, and then falls back.
 *
 * A second filter can only remove calls. A filter for all threads includes those that nng has
 * started.
 */
#ifndef COMMON_CELL_CONFINE_SECCOMP_H
#define COMMON_CELL_CONFINE_SECCOMP_H

#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SECCOMP_ARGS 4	   /* conditions of a rule */
#define SECCOMP_NEWEST 450 /* set_mempolicy_home_node, of Linux 5.17 */

/* (argument `number` & mask) == value; mask 0: no condition. A filter can see pointers, but not
 * what they point to. A rule has at most one condition for each argument. */
struct seccomp_arg {
	unsigned number;
	uint64_t mask, value;
};
/* A call that is allowed, or fails, if all conditions are met. A call may have several rules, but
 * only one without a condition. */
struct seccomp_rule {
	const char *call; /* its name; NULL ends a list */
	int error;	  /* 0: the call is allowed; else it fails with this errno */
	struct seccomp_arg args[SECCOMP_ARGS];
	int number; /* number of a call that libseccomp cannot name; 0: use the name */
};

/* How to write a list:
 * { CALL("read"), CALL_IF("kill", SECCOMP_IS(1, 0)), CALL_FAILS("clone3", ENOSYS), SECCOMP_END }.
 */
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
#define SECCOMP_END \
	{ \
		.call = NULL \
	}

/* Conditions on argument n: its value as an int; bits that must be clear; bits that must be set;
 * bits that must have this value. */
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

/* Flags by which open could write, create, truncate or delete. Lists that allow only reading
 * require all of them to be clear. */
#define SECCOMP_OPEN_WRITES (O_ACCMODE | O_CREAT | O_TRUNC | O_APPEND | (O_TMPFILE & ~O_DIRECTORY))

/* Whether the kernel supports filters and permits us to enter one. */
bool seccomp_available(void);
/* Enters one filter of all given lists; a list may be NULL. Sets no_new_privs. Skips names that are
 * not system calls of this machine. all_threads: for every thread of the process; else for the
 * calling thread and its later threads. Does nothing under AddressSanitizer, which needs more
 * calls.
 *
 * 0; -EOPNOTSUPP: the kernel has no filters; -EINVAL: a rule is wrong; -ENOMEM, or another -errno
 * of the kernel. After an error no filter was entered. */
int seccomp_enter(const struct seccomp_rule *const lists[], size_t count, bool all_threads);
/* Whether seccomp_enter failed because filters are missing or forbidden here, so that the tool
 * continues without one. */
bool seccomp_is_missing(int r);

#endif
