/* SPDX-License-Identifier: Apache-2.0 */
/* The path of another tool of profpipe. */
#ifndef COMMON_BASE_FILES_TOOLPATH_H
#define COMMON_BASE_FILES_TOOLPATH_H

#include <stddef.h>

/* The executable of this name, next to the running binary or where `make install` put it. Returns
 * 0, -ENOENT or -ENAMETOOLONG. */
int toolpath_find(const char *name, char *ret, size_t size);
/* Returns the folder into which `make install` puts the tools. */
const char *toolpath_folder(void);

#endif
