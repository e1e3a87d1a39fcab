/* SPDX-License-Identifier: Apache-2.0 */
/* The path of another tool of profpipe. */
#ifndef COMMON_BASE_TOOLPATH_H
#define COMMON_BASE_TOOLPATH_H

#include <stddef.h>

/* The executable of this name, next to the running binary or where `make install` put it. Returns
 * 0, -ENOENT or -ENAMETOOLONG. */
int tool_path(const char *name, char *ret, size_t size);
/* Where `make install` puts the tools. */
const char *tool_folder(void);

#endif
