/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/* The numbers in errors.def as enums, for the kernel's programs and for user space. */
#ifndef BPF_REASONS_H
#define BPF_REASONS_H

enum walk_reason {
#define WALK_REASON(n, NAME, word, text) WALK_##NAME = n,
#include "bpf/errors.def"
	WALK_REASONS
};
enum lost_reason {
#define LOST_REASON(n, NAME, word, text) LOST_##NAME = n,
#include "bpf/errors.def"
	LOST_REASONS
};
enum unnamed_reason {
#define UNNAMED_REASON(n, NAME, word, text) UNNAMED_##NAME = n,
#include "bpf/errors.def"
	UNNAMED_REASONS
};

#endif
