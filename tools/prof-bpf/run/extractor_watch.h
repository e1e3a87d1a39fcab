/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watches whether prof-deltas waits in the kernel for a file. Some file systems read only under the
 * file's lock, which its owner can hold for ever, and the kernel does not end such a process. Then
 * its requests go to another prof-deltas, which the launcher starts.
 */
#ifndef PROF_BPF_RUN_EXTRACTOR_WATCH_H
#define PROF_BPF_RUN_EXTRACTOR_WATCH_H

#include <stdint.h>

#define EXTRACTOR_WATCH_NS 500000000ull /* interval between two looks */
#define EXTRACTOR_WATCH_LOOKS 4		/* looks in sequence that show no cpu time */

struct row_server;

/* All zero at first. */
struct extractor_watch {
	uint32_t pid;
	uint64_t cpu_ns, looked_ns;
	unsigned looks;
};

/* Call it often. proc: an open /proc. */
void extractor_watch_look(struct extractor_watch *w, int proc, struct row_server *r,
			  uint64_t now_ns);

#endif
