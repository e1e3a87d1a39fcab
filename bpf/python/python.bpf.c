/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/* CPython's walk as a program for samples. */
#include "bpf/programs/shared.bpf.h"
#include "bpf/python/python_walk.h"
#define RUNTIME_WALK python
#include "bpf/programs/runtime.bpf.h"
