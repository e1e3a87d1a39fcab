/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks up a name below a root, as a process with this root does: links never lead above the root,
 * and links of /proc are not followed. openat2 does the same with RESOLVE_IN_ROOT. But a seccomp
 * filter cannot see whether openat2 would write, so prof-bpf may not call it.
 *
 * The kernel gets one name at a time, never follows a link, and never sees "..": a list of
 * descriptors leads back. So if a folder is moved meanwhile, the lookup still reaches only what was
 * below the root when its name was looked up.
 */
#ifndef PROF_BPF_OPEN_OPENING_ROOTED_H
#define PROF_BPF_OPEN_OPENING_ROOTED_H

#include <stdbool.h>
#include <stdint.h>

#define ROOTED_DEPTH 64 /* nested folders */
#define ROOTED_LINKS 40 /* the kernel's limit */

/* Returns an O_PATH descriptor, close-on-exec, of the target of path, which need not begin with a
 * slash. root is borrowed. follow: follow a link in the last name; otherwise open the link itself.
 * may_ask gets an O_PATH descriptor of each folder before a name is looked up in it. If it returns
 * false, the result is -ETIMEDOUT. may_ask NULL: any folder is allowed.
 *
 * Other errors: -ELOOP: too many links, or one of /proc. -ENAMETOOLONG: also if links or folders
 * make it so long. -ENOENT, -ENOTDIR, or another -errno of the kernel. May hang if a file system
 * does. */
int rooted_open(int root, const char *path, bool follow, bool (*may_ask)(void *ctx, int fd),
		void *ctx);

#endif
