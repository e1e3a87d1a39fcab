/* SPDX-License-Identifier: Apache-2.0 */
/* Whether prof-bpf will have the rights it needs, told before anything is started: the common
 * mistake deserves a plain answer. */
#ifndef PROFPIPE_RIGHTS_H
#define PROFPIPE_RIGHTS_H

#include <stddef.h>

/* Writes what is missing ("CAP_BPF and CAP_PERFMON") to ret; empty when nothing is, as far as can
 * be told from here. prof_bpf: its path, which may carry capabilities of its own. */
void rights_missing(const char *prof_bpf, char *ret, size_t size);

#endif
