/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels that a profiler can bring down, told by their release and by their code. Pure.
 *
 * Linux 5.18 to 6.3: with CONFIG_HARDENED_USERCOPY a read of user memory by BPF looks for the
 * destination among the kernel's own mappings, under vmap_area_lock (0aef499f3172 "mm/usercopy:
 * Detect vmalloc overruns"). In a perf interrupt whose cpu holds that lock it waits for ever, and
 * the host stands still. Mended in 6.4, 6.3.10 and 6.1.36 by d319f344561d "mm: Fix
 * copy_from_user_nofault().", which makes the function ask nmi_uaccess_okay() first. Distributions
 * took that over under numbers of their own, so the code says more than the release.
 */
#ifndef PROFPIPE_KERNEL_H
#define PROFPIPE_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kernel_version {
	unsigned major, minor, patch;
};
/* The version that release ("6.1.0-18-amd64") and version ("#1 SMP Debian 6.1.76-1 (2024-02-01)")
 * of uname(2) name; Debian's stands in the latter. False: neither begins like one. */
bool kernel_version_parse(const char *release, const char *version, struct kernel_version *ret);
bool kernel_older(const struct kernel_version *v, unsigned major, unsigned minor, unsigned patch);
/* Whether the bug is in kernels of this version at all. */
bool kernel_may_lock_up(const struct kernel_version *v);
/* Whether it is, by the version alone. */
bool kernel_locks_up(const struct kernel_version *v);

/* What the test of the code needs, of /proc/kallsyms. */
struct kernel_symbols {
	uint64_t function, function_end; /* copy_from_user_nofault, and what comes next */
	uint64_t object_size;		 /* __check_object_size; 0: not hardened */
	uint64_t uaccess_okay;		 /* nmi_uaccess_okay; 0: there is none */
};
/* Takes one line of /proc/kallsyms, without its end. */
void kernel_symbols_line(struct kernel_symbols *s, const char *line);
/* Whether n bytes of code at `function`, which end with it or before, are those with the bug: they
 * call __check_object_size, and do not call nmi_uaccess_okay. x86-64. */
bool kernel_code_locks_up(const struct kernel_symbols *s, const uint8_t *code, size_t n);

#endif
