/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/* CPython's frames of a sample. */
#include "bpf/shared.bpf.h"
#include "bpf/python/python_walk.h"
#define RUNTIME_WALK python
#include "bpf/runtime.bpf.h"
