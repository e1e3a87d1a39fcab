/* SPDX-License-Identifier: Apache-2.0 */
/* Warnings about debug information that prof-symd cannot use. path: of the file, untrusted bytes.
 */
#ifndef PROF_SYMD_DWARF_WARNINGS_H
#define PROF_SYMD_DWARF_WARNINGS_H

#include "common/base/span.h"

/* libdw's worker was killed while it read the file, which is tried once more. */
void dwarf_warnings_killed(struct str path);
/* The file was given up: libdw's worker crashed on it, or was killed so many times. */
void dwarf_warnings_lost(struct str path, unsigned kills);
/* The file's DWARF needs more memory than there is: in a deployment, and by hand. */
void dwarf_warnings_too_large(struct str path);
void dwarf_warnings_too_large_by_hand(struct str path);
/* Warns if the keeper of libdw's workers is gone. For runs by hand, in which nobody restarts
 * prof-symd. */
void dwarf_warnings_keeper_gone(void);

#endif
