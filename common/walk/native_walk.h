/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The native walk in user space, including the frames that runtimes take over
 * (bpf/walk/runtime_walk.h). In the kernel each of these runtimes has its own program for them.
 */
#ifndef COMMON_WALK_NATIVE_WALK_H
#define COMMON_WALK_NATIVE_WALK_H

#include "bpf/walk/walk.h"

/* Walks one frame, as walk_step does. Returns WALK_GOES_ON or WALK_IS_OVER (enum walk_next). */
int native_walk_step(struct walk *w);

#endif
