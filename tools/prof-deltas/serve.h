/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The service. Requests for rows come over the bus, their descriptors over the lane, in either
 * order. Answers go back over the bus. It works on one request at a time; the others wait. prof-bpf
 * may ask it to give up the current request for now (lastword.h).
 */
#ifndef PROF_DELTAS_SERVE_H
#define PROF_DELTAS_SERVE_H

#include "common/cell/dial.h"

struct serve;

/* Connects to prof-bpf. Returns 0; -ETIMEDOUT or -errno, logged. The caller owns *ret. The service
 * also reads the life pipe of d->deploy, which it borrows. */
int serve_new(const struct dial *d, struct serve **ret);
/* Accepts NULL. */
void serve_free(struct serve *s);

enum serve_verdict {
	SERVE_SCHEMA = 1,    /* prof-bpf comes from another build */
	SERVE_MALFORMED = 2, /* prof-bpf sent something that is not a message of the schema */
};
/* Serves until the peer disconnects or life_fd reaches its end, and then returns 0. Otherwise
 * returns enum serve_verdict; -ETIMEDOUT: the peer takes no answers; or -errno. */
int serve_run(struct serve *s);

#endif
