/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/* A record of the iterator over kernel symbols: fixed width, no padding. */
#ifndef BPF_KSYMS_H
#define BPF_KSYMS_H

#ifndef __bpf__
#include <assert.h>
#endif

#define KSYM_NAME_MAX 512 /* bytes, a power of two; longer names are truncated */
#define KSYM_MODULE_MAX 64

struct ksym_record {
	unsigned long long address;
	unsigned short name, module; /* lengths of the names that follow */
	unsigned short type;	     /* as in /proc/kallsyms: t T w W */
	unsigned short zero;
};

#ifndef __bpf__
static_assert(sizeof(struct ksym_record) == 16, "no padding");
#endif

#endif
