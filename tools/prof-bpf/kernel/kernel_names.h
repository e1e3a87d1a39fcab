/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names of kernel functions (kallsyms.h), read in a thread: that takes a tenth of a second,
 * which the tables of new processes cannot wait for.
 */
#ifndef PROFPIPE_KERNEL_NAMES_H
#define PROFPIPE_KERNEL_NAMES_H

#include <pthread.h>
#include "tools/prof-bpf/kernel/kallsyms.h"

struct kernel_names {
	struct kallsyms *ready;	 /* NULL until read */
	struct kallsyms *unread; /* the thread's, until it has ended; NULL: they cannot be read */
	pthread_t thread;
	bool reading; /* the thread was started and not joined */
	bool done;    /* it is about to end */
	bool logged;  /* that they cannot be read */
	int result;
};

/* Opens /proc/kallsyms, which may need rights. A zeroed *n. -errno: kernel functions have no
 * names. */
int kernel_names_open(struct kernel_names *n);
/* Starts to read. */
void kernel_names_start(struct kernel_names *n);
/* Takes the names over once they are there. wait: waits for them. */
void kernel_names_take(struct kernel_names *n, bool wait);
/* Reads them again where that is due. */
void kernel_names_tick(struct kernel_names *n, uint64_t now_ns);
void kernel_names_event(struct kernel_names *n, const struct sideband_event *e);
/* As kallsyms_lookup. False also while they are being read. */
bool kernel_names_lookup(struct kernel_names *n, uint64_t address, struct str *ret_name,
			 struct str *ret_module, uint64_t *ret_start);
/* How often they could not be read. */
uint64_t kernel_names_failures(const struct kernel_names *n);
/* Waits for the thread. */
void kernel_names_done(struct kernel_names *n);

#endif
