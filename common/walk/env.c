/* SPDX-License-Identifier: Apache-2.0 */
#include "bpf/walk/env.h"

const struct env *env_current;
