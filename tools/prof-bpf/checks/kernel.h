/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Detects kernels that a profiler can lock up, by their release and by their code. Pure.
 *
 * Linux 5.18 to 6.3: with CONFIG_HARDENED_USERCOPY, when BPF reads user memory, the kernel looks
 * for the destination among its own mappings, under vmap_area_lock (0aef499f3172 "mm/usercopy:
 * Detect vmalloc overruns"). In a perf interrupt on a cpu that holds this lock it waits forever,
 * and the host hangs. Fixed in 6.4, 6.3.10 and 6.1.36 by d319f344561d "mm: Fix
 * copy_from_user_nofault().", which makes the function ask nmi_uaccess_okay() first. Distributions
 * backported the fix under version numbers of their own, so the code is more reliable than the
 * release.
 */
#ifndef PROF_BPF_CHECKS_KERNEL_H
#define PROF_BPF_CHECKS_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kernel_version {
	unsigned major, minor, patch;
};
/* Parses the version in release ("6.1.0-18-amd64") and version ("#1 SMP Debian 6.1.76-1
 * (2024-02-01)") of uname(2); Debian's is in the latter. Returns false if neither begins like a
 * version. */
bool kernel_version_parse(const char *release, const char *version, struct kernel_version *ret);
bool kernel_older(const struct kernel_version *v, unsigned major, unsigned minor, unsigned patch);
/* Whether kernels of this version may have the bug. */
bool kernel_may_lock_up(const struct kernel_version *v);
/* Whether the version alone shows that the kernel has the bug. */
bool kernel_locks_up(const struct kernel_version *v);

/* Symbols from /proc/kallsyms for the test of the code. */
struct kernel_symbols {
	uint64_t function, function_end; /* copy_from_user_nofault, and the next symbol */
	uint64_t object_size;		 /* __check_object_size; 0: usercopy is not hardened */
	uint64_t uaccess_okay;		 /* nmi_uaccess_okay; 0: it does not exist */
};
/* Takes one line of /proc/kallsyms, without its line feed. */
void kernel_symbols_line(struct kernel_symbols *s, const char *line);
/* Whether the first n bytes of code at `function`, at most up to function_end, have the bug: they
 * call __check_object_size and do not call nmi_uaccess_okay. x86-64. */
bool kernel_code_locks_up(const struct kernel_symbols *s, const uint8_t *code, size_t n);

#endif
