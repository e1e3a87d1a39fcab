/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/* What the runtimes' walks stand on, besides the native one's. Each is
 *
 *	struct NAME_walk {
 *		struct NAME_config config;
 *		__u64 base; of the config's addresses
 *		struct runtime_copies copies; for env_object
 *		... };
 *	bool NAME_begin(const struct walk *w, struct NAME_walk *p); true: the thread has frames
 *	int NAME_step(struct walk *w, struct NAME_walk *p); one frame; 0: there is a caller
 *
 * with these three set. What is read is memory of a process that may be hostile, by a config that
 * may be wrong: bounded, and only read. A verifier looks at the step once.
 */
#ifndef PROFPIPE_RUNTIME_WALK_H
#define PROFPIPE_RUNTIME_WALK_H

#include "bpf/walk.h"

struct runtime_copies {
	struct runtime_copy what;
	__u32 left; /* how many more env_object may take, of this sample */
};

/* Where it is not known yet what lies at an object of this process, takes that. */
#ifdef __bpf__
ENV_INLINE void env_object(const struct walk *w, struct runtime_copies *c, __u64 address,
			   __u64 check);
#else
/* It stands still: names are read afterwards. */
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
