/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/* What the walks of runtimes share. Each walk defines:
 *
 * 	struct NAME_walk {
 * 		struct NAME_config config;
 * 		__u64 base; to add to the config's addresses
 * 		struct runtime_copies copies; for env_object
 * 		... };
 * 	bool NAME_begin(const struct walk *w, struct NAME_walk *p); true: the thread has frames
 * 	int NAME_step(struct walk *w, struct NAME_walk *p); one frame; 0: there is a caller
 *
 * The caller sets the first three fields. The process may be hostile and the config may be wrong,
 * so a walk is bounded and only reads. The verifier checks the step once. */
#ifndef BPF_RUNTIME_WALK_H
#define BPF_RUNTIME_WALK_H

#include "bpf/walk.h"

struct runtime_copies {
	struct runtime_copy what;
	__u32 left; /* how many more objects env_object may copy for this sample */
};

/* Copies an object of this process, unless that was done before. */
#ifdef __bpf__
ENV_INLINE void env_object(const struct walk *w, struct runtime_copies *c, __u64 address,
			   __u64 check);
#else
/* The process is stopped, so names are read afterwards. */
ENV_INLINE void env_object(const struct walk *w, struct runtime_copies *c, __u64 address,
			   __u64 check)
{
	(void)w, (void)c, (void)address, (void)check;
}
#endif

ENV_INLINE bool runtime_read(__u64 addr, __u64 *ret)
{
	return addr >= 4096 && addr < WALK_ADDRESS_END &&
	       env_read_user(ret, sizeof(*ret), addr) == 0;
}

#endif
