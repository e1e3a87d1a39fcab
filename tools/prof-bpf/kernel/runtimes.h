/* SPDX-License-Identifier: Apache-2.0 */
/* The BPF programs that read runtimes' frames. They use the maps of the sampling program. */
#ifndef PROF_BPF_KERNEL_RUNTIMES_H
#define PROF_BPF_KERNEL_RUNTIMES_H

#include <stdbool.h>
#include "bpf/runtime.h"

struct bpf_object;
#define RUNTIMES_MAPS 24 /* limit of the sampling program's maps */

struct runtimes;

/* host: the loaded object whose maps the programs share, by name; borrowed. Returns 0, -ENOMEM or
 * -errno. */
int runtimes_new(struct bpf_object *host, struct runtimes **ret);
/* For a forked process. runtimes_maps lists the descriptors of the maps, at most RUNTIMES_MAPS, in
 * a fixed order, and returns their number. runtimes_maps_moved then tells that they are now the
 * descriptors from `first` on. */
unsigned runtimes_maps(const struct runtimes *r, int *ret);
void runtimes_maps_moved(struct runtimes *r, int first);
void runtimes_free(struct runtimes *r);
/* Loads the runtime's program unless it is loaded. Returns 0; -EINVAL: no such runtime; -errno. */
int runtimes_load(struct runtimes *r, enum runtime which);

/* Returns the title of a runtime, such as "Python". */
const char *runtimes_name(enum runtime which);

/* Whether the file is named like a runtime or its library, or like a program that contains one:
 * python3.11, libpython3.11.so.1.0, node. */
bool runtimes_is_named(const char *path);
/* Returns the runtime whose program should be loaded before the file is described, since loading
 * takes long: by the file's name, or by that of a launcher. RUNTIME_NONE: none. */
enum runtime runtimes_early(const char *path);

#endif
