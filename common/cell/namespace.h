/* SPDX-License-Identifier: Apache-2.0 */
/* Whether we live in the host's own namespaces: what the kernel says of processes (ids, rights) is
 * said in those. */
#ifndef PROFPIPE_NAMESPACE_H
#define PROFPIPE_NAMESPACE_H

#include <stdbool.h>

enum namespace_kind { NAMESPACE_PID, NAMESPACE_USER };

/* 1: the first one; 0: another one; -errno where /proc/self/ns cannot be asked. Source: the fixed
 * inode numbers of include/uapi/linux/nsfs.h (enum init_ns_ino), the same since Linux 3.8. */
int namespace_is_first(enum namespace_kind kind);

#endif
