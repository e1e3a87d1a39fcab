/* SPDX-License-Identifier: Apache-2.0 */
#include "common/cell/confine/namespace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include "common/base/files/smallfile.h"

#define MAP_BYTES 16384 /* of an id map, which has at most 340 lines */

static const struct {
	const char *path;
	uint32_t first;
} all[] = {
	[NAMESPACE_PID] = { "/proc/self/ns/pid", 0xeffffffcu },
	[NAMESPACE_USER] = { "/proc/self/ns/user", 0xeffffffdu },
};

int namespace_number(enum namespace_kind kind, uint32_t *ret)
{
	struct stat st;

	if (stat(all[kind].path, &st) < 0)
		return -errno;
	*ret = (uint32_t)st.st_ino;
	return 0;
}

int namespace_is_first(enum namespace_kind kind)
{
	uint32_t number;
	const int r = namespace_number(kind, &number);

	return r ? r : number == all[kind].first ? NAMESPACE_FIRST : NAMESPACE_OTHER;
}

bool namespace_maps(const char *text, uint32_t id)
{
	for (;;) {
		unsigned long long number[3]; /* inside, outside, count */

		for (int i = 0; i < 3; i++) {
			char *end;

			number[i] = strtoull(text, &end, 10);
			if (end == text)
				return false;
			text = end;
		}
		if (id >= number[0] && id - number[0] < number[2])
			return true;
	}
}

static bool file_maps(const char *path, uint32_t id)
{
	char text[MAP_BYTES];

	(void)smallfile_read(AT_FDCWD, path, text, sizeof(text));
	return namespace_maps(text, id);
}

bool namespace_has_id(uint32_t id)
{
	return file_maps("/proc/self/uid_map", id) && file_maps("/proc/self/gid_map", id);
}
