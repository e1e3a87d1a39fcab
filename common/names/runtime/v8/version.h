/* SPDX-License-Identifier: Apache-2.0 */
/* The version of V8 in a file. */
#ifndef COMMON_NAMES_RUNTIME_V8_VERSION_H
#define COMMON_NAMES_RUNTIME_V8_VERSION_H

#include "common/names/elf/elfview.h"

struct v8_version {
	uint32_t major, minor, build, patch;
};
/* Reads the version of V8 in a file. Returns 0, SYMFILE_NONE (the file does not tell, so it
 * contains no V8 that other functions know), -ENOMEM or -errno. */
int v8_version(const struct elfview *im, struct v8_version *ret);
/* Takes a version from its text, as "12.9.202.13-rusty". Returns false if it is not one of V8. */
bool v8_version_of(const char *text, struct v8_version *ret);

#endif
