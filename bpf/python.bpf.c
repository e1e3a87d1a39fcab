/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/* CPython's frames of a sample. Loaded when the first such process is seen, in a hurry: so nothing
 * of the kernel's types is relocated (CO-RE), for which libbpf reads all of them. */
#include "bpf/sample.bpf.h"
#include "bpf/python_walk.h"

char LICENSE[] SEC("license") = "GPL";

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct python_walk);
} pythons SEC(".maps");

static __always_inline __u64 env_tls(void)
{
	const struct walk *w = scratch();

	return w ? w->tls : 0;
}

static __always_inline bool env_probed(__u64 *pc, __u64 *sp, bool leaf)
{
	return false;
}

static __always_inline struct python_walk *state(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&pythons, &zero);
}

#define STEPS_AT_ONCE 32

__attribute__((noinline)) int step(void)
{
	struct walk *w = scratch();
	struct python_walk *p = state();

	return w && p ? python_step(w, p) : 1;
}

__attribute__((noinline)) int steps(void)
{
	for (int i = 0; i < STEPS_AT_ONCE; i++) {
		if (step())
			return 1;
	}
	return 0;
}

static __always_inline bool begin(struct walk *w)
{
	const struct runtime_entry *e = runtime_entry(w);
	struct python_walk *p = state();

	if (!e || !p)
		return false;
	__u32 position = e->config;
	p->base = e->base;
	const struct slab *s = env_slab(position, RUNTIME_CONFIG_WORDS);
	if (!s)
		return false;
	const struct runtime_config *c = ENV_AT(s, position, struct runtime_config,
						RUNTIME_CONFIG_WORDS);
	__builtin_memcpy(&p->config, c->own, sizeof(p->config));
	return python_begin(w, p);
}

SEC("perf_event")
int on_python(struct bpf_perf_event_data *ctx)
{
	struct walk *w = scratch();

	if (!w)
		return 0;
	if (begin(w)) {
		for (int i = 0; i <= RUNTIME_MAX_ITEMS / STEPS_AT_ONCE; i++) {
			if (steps())
				break;
		}
	}
	runtime_done(ctx, w);
	return 0;
}
