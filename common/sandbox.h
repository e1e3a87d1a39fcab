/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entering a tool's identity, in the order that the design page fixes: rlimits, ids, capabilities,
 * no_new_privs, undumpable. Called before any thread is started (nng starts its own at its first
 * socket). What else confines a tool without rights is in cell.h.
 */
#ifndef PROFPIPE_SANDBOX_H
#define PROFPIPE_SANDBOX_H

#include <stdbool.h>
#include <sys/resource.h>
#include <sys/types.h>

enum sandbox_caps {
	SANDBOX_NO_CAPS,    /* none, in any set */
	SANDBOX_BPF_CAPS,   /* BPF PERFMON SYS_PTRACE CHECKPOINT_RESTORE DAC_READ_SEARCH SYSLOG, as
			       far as the caller has them */
	SANDBOX_EVENT_CAPS, /* PERFMON */
	SANDBOX_RUN_CAPS,   /* of these what is needed once the programs are loaded and the events
			       open: all but SYSLOG, and PERFMON where SYS_PTRACE is there */
};
struct sandbox {
	bool change_ids; /* false: stay who we are (run by hand) */
	uid_t uid;
	gid_t gid;
	enum sandbox_caps caps;
	unsigned max_files;	       /* RLIMIT_NOFILE; 0 leaves it */
	unsigned long long max_memory; /* RLIMIT_AS in bytes; 0 leaves it */
	unsigned long long max_data; /* RLIMIT_DATA, private memory that can be written; the same */
};
/* Limits are ceilings: one above the present hard limit leaves that. RLIMIT_CORE becomes 0 always.
 * -EBUSY when a thread already runs. After an error the process is half changed: exit. Under
 * AddressSanitizer neither RLIMIT_AS, RLIMIT_DATA nor undumpable is set, since it lives by both.
 *
 * All or nothing for what it was asked: 0, or -errno with *ret_step naming the step that failed
 * (static text). Supplementary groups are dropped when ids change. Verifies afterwards that the ids
 * cannot be taken back. */
int sandbox_enter(const struct sandbox *s, const char **ret_step);
/* A limit, soft and hard, for good: never above what the hard limit allows already. 0, -errno. */
int sandbox_lower(int resource, rlim_t max);
/* Reduces the capabilities further. One thread only, as above; the same errors. */
int sandbox_reduce(enum sandbox_caps caps, const char **ret_step);

#endif
