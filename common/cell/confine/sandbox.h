/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sandbox: a tool's identity, entered in this order: rlimits, ids, capabilities, no_new_privs,
 * undumpable. It is a part of step 3 of HACKING.md, "The order of main". The process must have one
 * thread; nng starts threads with its first socket. cell.h confines the tools without rights
 * further.
 */
#ifndef COMMON_CELL_CONFINE_SANDBOX_H
#define COMMON_CELL_CONFINE_SANDBOX_H

#include <stdbool.h>
#include <sys/resource.h>
#include <sys/types.h>

enum sandbox_caps {
	SANDBOX_NO_CAPS,    /* no capability in any set */
	SANDBOX_BPF_CAPS,   /* BPF PERFMON SYS_PTRACE CHECKPOINT_RESTORE DAC_READ_SEARCH SYSLOG, if
			       the caller has them */
	SANDBOX_EVENT_CAPS, /* PERFMON */
	SANDBOX_LOAD_CAPS,  /* for loading programs: BPF PERFMON */
	SANDBOX_RUN_CAPS,   /* after programs are loaded and events are open: of SANDBOX_BPF_CAPS
			       only BPF and SYS_PTRACE; PERFMON if there is no SYS_PTRACE */
	SANDBOX_OPEN_CAPS,  /* for opening files: SYS_PTRACE CHECKPOINT_RESTORE DAC_READ_SEARCH */
};
struct sandbox {
	bool change_ids; /* false: keep the caller's ids (when run by hand) */
	uid_t uid;
	gid_t gid;
	enum sandbox_caps caps;
	unsigned max_files;	       /* RLIMIT_NOFILE; 0 leaves it */
	unsigned long long max_memory; /* RLIMIT_AS in bytes; 0 leaves it */
	unsigned long long max_data;   /* RLIMIT_DATA, private writable memory; 0 leaves it */
};
/* Enters the identity. If a limit is above the present hard limit, the hard limit is kept.
 * RLIMIT_CORE always becomes 0. Supplementary groups are dropped if ids change. Verifies afterwards
 * that the ids cannot be restored. Under AddressSanitizer, RLIMIT_AS, RLIMIT_DATA and undumpable
 * are not set, because it cannot run with them.
 *
 * 0; -EBUSY: another thread runs; -errno with *ret_step naming the failed step (static text). After
 * an error the process is partly changed and must exit. */
int sandbox_enter(const struct sandbox *s, const char **ret_step);
/* Lowers a soft and hard limit permanently; never raises the hard limit. 0, -errno. */
int sandbox_lower(int resource, rlim_t max);
/* Reduces the capabilities further. The process must have only one thread. Errors of
 * sandbox_enter. */
int sandbox_reduce(enum sandbox_caps caps, const char **ret_step);
/* Logs that the tool cannot be confined, unless r is 0. step: the step that failed; NULL: not
 * known. Returns r. */
int sandbox_report(const char *step, int r);

#endif
