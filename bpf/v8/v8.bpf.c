/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/* V8's walk as programs for samples. */
#include "bpf/programs/shared.bpf.h"
#include "bpf/v8/v8_walk.h"
#define RUNTIME_WALK v8
#define RUNTIME_TAKES
#define RUNTIME_DESCRIBES V8_TOLD_WORDS
#include "bpf/programs/runtime.bpf.h"
