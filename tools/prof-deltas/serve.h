/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The service: requests for rows come over the bus, their descriptors over the lane, in either
 * order; answers go back over the bus. One request is worked on at a time, and the others wait
 * their turn.
 */
#ifndef PROF_DELTAS_SERVE_H
#define PROF_DELTAS_SERVE_H

#include <sys/types.h>

struct serve;

struct serve_config {
	const char *run_dir;
	uid_t peer;  /* prof-bpf's uid */
	int life_fd; /* borrowed; -1: none */
	int dial_ms; /* prof-bpf may take so long to be there */
};

/* Dials prof-bpf. -ETIMEDOUT, -errno; the caller owns *ret. */
int serve_new(const struct serve_config *c, struct serve **ret);
/* Takes NULL. */
void serve_free(struct serve *s);

enum serve_verdict {
	SERVE_SCHEMA = 1,    /* prof-bpf speaks another schema */
	SERVE_MALFORMED = 2, /* what it sent is no message of the schema */
};
/* Serves until the peer goes or life_fd reaches its end, then 0. enum serve_verdict; -ETIMEDOUT:
 * the peer takes no answers; -errno. */
int serve_run(struct serve *s);

#endif
