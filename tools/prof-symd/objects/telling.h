/* SPDX-License-Identifier: Apache-2.0 */
/* What a look-up of an object tells: its names, or a placeholder with the reason why it has none. A
 * program cannot give a function a name that looks like a placeholder. */
#ifndef PROF_SYMD_OBJECTS_TELLING_H
#define PROF_SYMD_OBJECTS_TELLING_H

#include "tools/prof-symd/objects/object_names.h"

/* Makes *ret a placeholder, such as "[python: gone]". what: the reason. */
void telling_reason(struct names *ret, const struct runtime_build *b, const char *what);
/* Copies the names of an object, and the line of the mark's position. Returns false if the object
 * is internal to the runtime. */
bool telling_names(const struct runtime_build *b, const struct object_names *names, uint64_t mark,
		   struct names *ret);

#endif
