/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/* HotSpot's frames of a sample. */
#include "bpf/shared.bpf.h"
#include "bpf/hotspot/hotspot_walk.h"
#define RUNTIME_WALK hotspot
#define RUNTIME_TAKES
#define RUNTIME_ENDS
#include "bpf/runtime.bpf.h"
