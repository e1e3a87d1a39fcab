/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/*
 * Kernel symbols for hosts where /proc/kallsyms shows no addresses: the ksym iterator (kernel 6.0)
 * shows them despite kptr_restrict. It writes one record per text symbol: struct ksym_record, then
 * the names of the symbol and the module, without NUL.
 */
#include <linux/bpf.h>
#include <stdbool.h>
#include <stddef.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include "bpf/ksyms.h"

char LICENSE[] SEC("license") = "GPL";

/* Declares only the used fields of the kernel's structs (CO-RE). The sizes of the names differ
 * between kernels, so only their offsets are used. */
struct seq_file;
struct bpf_iter_meta {
	struct seq_file *seq;
} __attribute__((preserve_access_index));
struct kallsym_iter {
	unsigned long value;
	char type;
	char name[128];
	char module_name[56];
} __attribute__((preserve_access_index));
struct bpf_iter__ksym {
	struct bpf_iter_meta *meta;
	struct kallsym_iter *ksym;
} __attribute__((preserve_access_index));

struct out {
	struct ksym_record head;
	char text[KSYM_NAME_MAX + KSYM_MODULE_MAX];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct out);
} outs SEC(".maps");

SEC("iter/ksym")
int on_symbol(struct bpf_iter__ksym *ctx)
{
	struct kallsym_iter *k = ctx->ksym;
	__u32 zero = 0;

	if (!k)
		return 0;
	char type = k->type;
	if (type != 't' && type != 'T' && type != 'w' && type != 'W')
		return 0;
	struct out *o = bpf_map_lookup_elem(&outs, &zero);
	if (!o)
		return 0;
	long name = bpf_probe_read_kernel_str(o->text, KSYM_NAME_MAX, k->name);
	if (name <= 1)
		return 0;
	name--;
	/* The mask is for the verifier: bpf_probe_read_kernel_str never returns more than the given
	 * size. */
	name &= KSYM_NAME_MAX - 1;
	long module = bpf_probe_read_kernel_str(o->text + name, KSYM_MODULE_MAX, k->module_name);
	module = module > 1 ? module - 1 : 0;
	module &= KSYM_MODULE_MAX - 1;
	o->head.address = k->value;
	o->head.type = type;
	o->head.name = name;
	o->head.module = module;
	o->head.zero = 0;
	bpf_seq_write(ctx->meta->seq, o, sizeof(o->head) + name + module);
	return 0;
}
