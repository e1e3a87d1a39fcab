/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/* The toy's frames of a sample. */
#include "bpf/shared.bpf.h"
#include "tests/skeleton/toy_walk.h"
#define RUNTIME_WALK toy
#include "bpf/runtime.bpf.h"
