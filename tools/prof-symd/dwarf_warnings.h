/* SPDX-License-Identifier: Apache-2.0 */
/* Warnings about debug information that prof-symd goes without, for each way that it runs in. path:
 * of the file, a stranger's bytes. */
#ifndef PROFPIPE_DWARF_WARNINGS_H
#define PROFPIPE_DWARF_WARNINGS_H

#include "common/base/span.h"

/* libdw's process was killed over the file, and reads it once more. */
void dwarf_warnings_killed(struct str path);
/* libdw's process died on the file, or was killed over it so many times. */
void dwarf_warnings_lost(struct str path, unsigned kills);
/* The file's DWARF takes more memory than there is: in a deployment, and by hand. */
void dwarf_warnings_too_large(struct str path);
void dwarf_warnings_too_large_by_hand(struct str path);
/* By hand, where nobody starts it again: warns if the process that starts libdw's is gone. */
void dwarf_warnings_keeper_gone(void);

#endif
