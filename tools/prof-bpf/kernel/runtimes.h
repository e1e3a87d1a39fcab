/* SPDX-License-Identifier: Apache-2.0 */
/* The BPF programs that read runtimes' frames. */
#ifndef PROF_BPF_KERNEL_RUNTIMES_H
#define PROF_BPF_KERNEL_RUNTIMES_H

#include <stdbool.h>
#include "bpf/runtime.h"

struct bpf_object;
struct runtimes;

/* host: the loaded object whose maps the programs share, by name; borrowed. -ENOMEM, -errno. */
int runtimes_new(struct bpf_object *host, struct runtimes **ret);
void runtimes_free(struct runtimes *r);
/* Loads the runtime's program unless it is loaded. 0, -EINVAL: no such runtime; -errno. */
int runtimes_load(struct runtimes *r, enum runtime which);

/* The title of a runtime, such as "Python". */
const char *runtimes_name(enum runtime which);

/* Whether the file is named like a runtime or its library: python3.11, libpython3.11.so.1.0. */
bool runtimes_is_named(const char *path);

#endif
