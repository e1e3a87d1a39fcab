/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of kernel functions (kallsyms.h), read in a thread. Reading takes a tenth of a second, and
 * new processes cannot wait so long for their tables.
 */
#ifndef PROF_BPF_KERNEL_KERNEL_NAMES_H
#define PROF_BPF_KERNEL_KERNEL_NAMES_H

#include <pthread.h>
#include "tools/prof-bpf/kernel/kallsyms.h"

struct kernel_names {
	struct kallsyms *ready;	 /* NULL until the names are read */
	struct kallsyms *unread; /* owned by the thread until it ends; NULL: there are no names to
				  * read */
	pthread_t thread;
	bool reading; /* the thread was started and not yet joined */
	bool done;    /* the thread is about to end */
	bool logged;  /* the failure was logged */
	int result;
};

/* Opens /proc/kallsyms, which may need rights, in a zeroed *n. Returns 0; -errno: kernel
 * functions have no names. */
int kernel_names_open(struct kernel_names *n);
/* Starts the thread that reads the names. */
void kernel_names_start(struct kernel_names *n);
/* Takes over the names once they are read. wait: wait for them. */
void kernel_names_take(struct kernel_names *n, bool wait);
/* Reads the names again when that is due. */
void kernel_names_tick(struct kernel_names *n, uint64_t now_ns);
void kernel_names_event(struct kernel_names *n, const struct sideband_event *e);
/* Like kallsyms_lookup. Also returns false while the names are being read. */
bool kernel_names_lookup(struct kernel_names *n, uint64_t address, struct str *ret_name,
			 struct str *ret_module, uint64_t *ret_start);
/* Returns how many readings failed. */
uint64_t kernel_names_failures(const struct kernel_names *n);
/* Waits for the thread and frees everything. */
void kernel_names_done(struct kernel_names *n);

#endif
