/* SPDX-License-Identifier: Apache-2.0 */
/* The half of prof-dump without rights: taken over before it begins, or with the first file. */
#include "tests/redteam/takeover.h"
#include "tools/prof-dump/space/space.h"
#include "tools/prof-dump/walker.h"

int __real_walker_run(int socket, const struct walker_options *o);
int __wrap_walker_run(int socket, const struct walker_options *o);
int __real_space_add(struct space *s, int fd, uint64_t dev, uint64_t inode, const char *path,
		     uint32_t *ret_file);
int __wrap_space_add(struct space *s, int fd, uint64_t dev, uint64_t inode, const char *path,
		     uint32_t *ret_file);

int __wrap_walker_run(int socket, const struct walker_options *o)
{
	takeover_begin("half");
	takeover_now();
	return __real_walker_run(socket, o);
}

int __wrap_space_add(struct space *s, int fd, uint64_t dev, uint64_t inode, const char *path,
		     uint32_t *ret_file)
{
	if (fd >= 0)
		takeover_holding(fd);
	return __real_space_add(s, fd, dev, inode, path, ret_file);
}
