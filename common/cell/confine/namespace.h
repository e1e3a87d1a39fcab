/* SPDX-License-Identifier: Apache-2.0 */
/* Whether this process lives in the host's own namespaces, in which the kernel reports ids and
 * rights of processes, and which ids its user namespace has. */
#ifndef COMMON_CELL_CONFINE_NAMESPACE_H
#define COMMON_CELL_CONFINE_NAMESPACE_H

#include <stdbool.h>
#include <stdint.h>

enum namespace_kind { NAMESPACE_PID, NAMESPACE_USER };

enum namespace_place { NAMESPACE_OTHER = 0, NAMESPACE_FIRST = 1 };

/* Whether the namespace is the host's: NAMESPACE_FIRST, NAMESPACE_OTHER, or -errno if /proc/self/ns
 * cannot be read. Source: the fixed inode numbers of include/uapi/linux/nsfs.h (enum init_ns_ino),
 * the same since Linux 3.8. */
int namespace_is_first(enum namespace_kind kind);
/* The inode number of this process's namespace, which identifies it. -errno, as above. */
int namespace_number(enum namespace_kind kind, uint32_t *ret);
/* Whether the text, in the format of /proc/self/uid_map or gid_map, contains an id. Each line has
 * the first id inside, the first id outside, and a count. */
bool namespace_maps(const char *text, uint32_t id);
/* Whether this process could take an id as its user and as its group. Also returns false if these
 * files cannot be read. */
bool namespace_has_id(uint32_t id);

#endif
