/* SPDX-License-Identifier: Apache-2.0 */
/* The BPF programs that read runtimes' frames. They use the maps of the sampling program. */
#ifndef PROF_BPF_KERNEL_RUNTIMES_H
#define PROF_BPF_KERNEL_RUNTIMES_H

#include <stdbool.h>
#include "bpf/runtime.h"

struct bpf_object;
#define RUNTIMES_MAPS 24 /* of the sampling program, at most */

struct runtimes;

/* host: the loaded object whose maps the programs share, by name; borrowed. -ENOMEM, -errno. */
int runtimes_new(struct bpf_object *host, struct runtimes **ret);
/* For a process that was forked: the descriptors of the maps, at most RUNTIMES_MAPS, in an order
 * that stays. Returns how many. Then: they are now the ones from `first` on. */
unsigned runtimes_maps(const struct runtimes *r, int *ret);
void runtimes_maps_moved(struct runtimes *r, int first);
void runtimes_free(struct runtimes *r);
/* Loads the runtime's program unless it is loaded. 0, -EINVAL: no such runtime; -errno. */
int runtimes_load(struct runtimes *r, enum runtime which);

/* The title of a runtime, such as "Python". */
const char *runtimes_name(enum runtime which);

/* Whether the file is named like a runtime or its library, or a program that has one:
 * python3.11, libpython3.11.so.1.0, node. */
bool runtimes_is_named(const char *path);

#endif
