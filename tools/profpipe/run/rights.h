/* SPDX-License-Identifier: Apache-2.0 */
/* Whether prof-bpf will have the rights it needs, told before anything is started: the common
 * mistake deserves a plain answer. */
#ifndef PROFPIPE_RIGHTS_H
#define PROFPIPE_RIGHTS_H

#include <stddef.h>

/* Writes what is missing ("CAP_BPF and CAP_PERFMON") to ret; empty when nothing is, as far as can
 * be told from here. prof_bpf: its path, which may carry capabilities of its own. */
void rights_missing(const char *prof_bpf, char *ret, size_t size);

/* Why nobody could sample from here, whatever their rights, with the remedy; NULL: nothing is known
 * against it. What concerns the kernel's side alone prof-bpf says. */
const char *rights_place(void);

#endif
