/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/* HotSpot's walk as programs for samples. */
#include "bpf/programs/shared.bpf.h"
#include "bpf/hotspot/hotspot_walk.h"
#define RUNTIME_WALK hotspot
#define RUNTIME_TAKES
#define RUNTIME_ENDS
#include "bpf/programs/runtime.bpf.h"
