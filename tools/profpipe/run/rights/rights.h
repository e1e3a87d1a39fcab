/* SPDX-License-Identifier: Apache-2.0 */
/* The rights that prof-bpf will need. profpipe checks them before it starts a tool, so that it can
 * explain the most common mistake. */
#ifndef PROFPIPE_RUN_RIGHTS_RIGHTS_H
#define PROFPIPE_RUN_RIGHTS_RIGHTS_H

#include <stddef.h>

/* Writes the missing rights ("CAP_BPF and CAP_PERFMON") to ret; an empty text if none seems
 * missing. prof_bpf: path of the tool, which may have file capabilities. */
void rights_missing(const char *prof_bpf, char *ret, size_t size);

/* Explains why nobody can sample in this environment, whatever their rights, with the remedy; NULL
 * if no reason is known. prof-bpf itself reports problems of the kernel. */
const char *rights_place(void);

#endif
