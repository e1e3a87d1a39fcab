/* SPDX-License-Identifier: Apache-2.0 */
/* The extractor: by hand, prof-bpf starts its own prof-deltas with a private run folder, as the
 * launcher would. */
#ifndef PROF_BPF_PEERS_EXTRACTOR_H
#define PROF_BPF_PEERS_EXTRACTOR_H

#include <stddef.h>
#include <sys/types.h>

struct extractor {
	char dir[64]; /* the run folder, owned; extractor_stop removes it */
	pid_t pid;    /* 0: not running */
	int life;     /* prof-deltas exits when this is closed; -1: none */
};
/* Makes the run folder with its `bpf/`. Returns 0 or -errno. */
int extractor_folder(struct extractor *x);
/* Starts prof-deltas from the folder of this binary, or from where `make install` put it. Its
 * errors go to our stderr. Returns 0 or -errno. */
int extractor_start(struct extractor *x);
/* Ends prof-deltas and removes the folder. Accepts a zeroed struct. */
void extractor_stop(struct extractor *x);

#endif
