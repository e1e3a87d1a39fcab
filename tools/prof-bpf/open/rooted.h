/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finding a name below a root, as the process does that has this root: links lead no further than
 * the root, and the links of /proc nowhere. What openat2 does with RESOLVE_IN_ROOT; but a seccomp
 * filter cannot see whether openat2 would write, so that prof-bpf is not allowed to call it.
 *
 * The kernel is given one name at a time, is never told to follow a link, and never sees "..": the
 * way back is a list of descriptors. A folder that is moved meanwhile can so lead to nothing that
 * was not below the root when its name was looked up.
 */
#ifndef PROFPIPE_ROOTED_H
#define PROFPIPE_ROOTED_H

#include <stdbool.h>
#include <stdint.h>

#define ROOTED_DEPTH 64 /* folders in each other */
#define ROOTED_LINKS 40 /* as the kernel has it */

/* An O_PATH descriptor, close-on-exec, of what path leads to; it need not begin with a slash. root:
 * borrowed. follow: if the last name is a link it is followed, and else that is what is opened.
 * may_ask is told the device (major << 32 | minor) of each folder before a name is looked up in it;
 * false: not now, -ETIMEDOUT. NULL: any will do.
 * -ELOOP: too many links, or one of /proc's; -ENAMETOOLONG: also when links or folders make it so;
 * -ENOENT, -ENOTDIR, another -errno of the kernel's. May hang where a file system does. */
int rooted_open(int root, const char *path, bool follow, bool (*may_ask)(void *ctx, uint64_t dev),
		void *ctx);

#endif
