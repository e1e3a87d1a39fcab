/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/files/toolpath.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

const char *toolpath_folder(void)
{
	return PROFPIPE_LIBEXECDIR;
}

int toolpath_find(const char *name, char *ret, size_t size)
{
	/* The places to look, in this order: next to this binary, as in the build; where `make
	 * install` puts tools, relative to this binary; the folder that the build names. */
	static const char *const between[] = { "", "../libexec/profpipe/" };
	char self[4096];
	const ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	int used;

	self[n > 0 ? n : 0] = '\0';
	const char *slash = strrchr(self, '/');

	for (size_t i = 0; slash && i < sizeof(between) / sizeof(between[0]); i++) {
		used = snprintf(ret, size, "%.*s%s%s", (int)(slash + 1 - self), self, between[i],
				name);
		if (used > 0 && (size_t)used < size && access(ret, X_OK) == 0)
			return 0;
	}
	used = snprintf(ret, size, "%s/%s", toolpath_folder(), name);
	if (used < 0 || (size_t)used >= size)
		return -ENAMETOOLONG;
	return access(ret, X_OK) == 0 ? 0 : -ENOENT;
}
