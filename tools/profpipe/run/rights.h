/* SPDX-License-Identifier: Apache-2.0 */
/* The rights that prof-bpf will need. profpipe checks them before it starts a tool, to explain the
 * common mistake plainly. */
#ifndef PROFPIPE_RUN_RIGHTS_H
#define PROFPIPE_RUN_RIGHTS_H

#include <stddef.h>

/* Writes the missing rights ("CAP_BPF and CAP_PERFMON") to ret; empty if none seems missing.
 * prof_bpf: its path; the file may have capabilities of its own. */
void rights_missing(const char *prof_bpf, char *ret, size_t size);

/* Why nobody can sample in this place, whatever their rights, with the remedy; NULL if no reason is
 * known. prof-bpf itself reports reasons on the kernel's side. */
const char *rights_place(void);

#endif
