/* SPDX-License-Identifier: Apache-2.0 */
/* The programs that read runtimes' frames. */
#ifndef PROFPIPE_RUNTIMES_H
#define PROFPIPE_RUNTIMES_H

#include <stdbool.h>
#include "bpf/runtime.h"

struct bpf_object;
struct runtimes;

/* host: the loaded object whose maps the programs share, by name; borrowed. -ENOMEM, -errno. */
int runtimes_new(struct bpf_object *host, struct runtimes **ret);
void runtimes_free(struct runtimes *r);
/* Loads the runtime's program, if it is not there yet. 0, -EINVAL: no such; -errno. */
int runtimes_load(struct runtimes *r, enum runtime which);

/* Objects that were met before are copied again with the next sample of each. -ENOMEM, -errno. */
int runtimes_forget(struct runtimes *r);

/* "Python". */
const char *runtimes_name(enum runtime which);

/* Whether a file is called like a runtime, or its library: python3.11, libpython3.11.so.1.0. */
bool runtimes_is_named(const char *path);

#endif
