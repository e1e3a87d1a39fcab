/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/profpipe/run/rights/rights.h"

#include <cap-ng.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/xattr.h>
#include <unistd.h>
#include "common/cell/confine/namespace.h"

void rights_missing(const char *prof_bpf, char *ret, size_t size)
{
	ret[0] = '\0';
	/* If the file has capabilities, the kernel grants them to every caller. */
	if (getxattr(prof_bpf, "security.capability", NULL, 0) > 0 || capng_get_caps_process())
		return;
	/* Otherwise only root's capabilities and ambient ones survive an exec. */
	const capng_type_t set = geteuid() == 0 ? CAPNG_EFFECTIVE : CAPNG_AMBIENT;

	if (capng_have_capability(set, CAP_SYS_ADMIN))
		return;
	const bool bpf = capng_have_capability(set, CAP_BPF),
		   perfmon = capng_have_capability(set, CAP_PERFMON);

	snprintf(ret, size, "%s%s%s", bpf ? "" : "CAP_BPF", bpf || perfmon ? "" : " and ",
		 perfmon ? "" : "CAP_PERFMON");
}

const char *rights_place(void)
{
	const int first = namespace_is_first(NAMESPACE_USER);

	if (first < 0)
		return "/proc is not mounted, or does not show this process; "
		       "mount -t proc proc /proc";
	return first == NAMESPACE_FIRST
		       ? NULL
		       : "this is a user namespace, and the kernel ignores its capabilities for "
			 "sampling; run profpipe outside, as the host's root "
			 "(rootless containers cannot sample)";
}
