/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/* The toy JIT's frames of a sample. */
#include "bpf/programs/shared.bpf.h"
#include "tests/skeleton/toyjit_walk.h"
#define RUNTIME_WALK toyjit
#define RUNTIME_TAKES
#include "bpf/programs/runtime.bpf.h"
