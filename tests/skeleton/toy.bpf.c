/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/* The toy's frames of a sample. */
#include "bpf/programs/shared.bpf.h"
#include "tests/skeleton/toy_walk.h"
#define RUNTIME_WALK toy
#include "bpf/programs/runtime.bpf.h"
