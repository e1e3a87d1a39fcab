/* SPDX-License-Identifier: Apache-2.0 */
/* The list of system calls comes from strace runs with libmicrohttpd 0.9.75 of Debian 12. Calls
 * that it can do without fail with an error; all others kill the process. */
#include "tools/prof-metrics/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include "common/cell/confine/baseline.h"
#include "common/cell/confine/landlock.h"
#include "common/cell/confine/sandbox.h"
#include "common/cell/confine/seccomp.h"

#define MAX_FILES 64
#define MAX_MEMORY (256ull << 20)
#define MAX_DATA (8ull << 20) /* its share of the memory (budget.h), plus a margin */
#define OF_SOCKETS (O_APPEND | O_ASYNC | O_DIRECT | O_NOATIME)
#define SETTING(level, name) CALL_IF("setsockopt", SECCOMP_IS(1, level), SECCOMP_IS(2, name))

static const struct seccomp_rule serving[] = {
	CALL("accept"),
	CALL("accept4"),
	CALL("getsockname"),
	CALL_IF("fcntl", SECCOMP_IS(1, F_SETFL), SECCOMP_CLEAR(2, OF_SOCKETS)),
	CALL_IF("ioctl", SECCOMP_IS(1, TCGETS)),
	SETTING(IPPROTO_TCP, TCP_NODELAY),
	SETTING(IPPROTO_TCP, TCP_CORK),
	CALL_FAILS("open", EACCES),
	CALL_FAILS("openat", EACCES),
	CALL_FAILS("membarrier", ENOSYS),
	CALL_FAILS("futex_waitv", ENOSYS),
	SECCOMP_END,
};

int confine_seal(void)
{
	const struct sandbox box = { .caps = SANDBOX_NO_CAPS,
				     .max_files = MAX_FILES,
				     .max_memory = MAX_MEMORY,
				     .max_data = MAX_DATA };
	const struct seccomp_rule self[] = { CALL_IF("tgkill", SECCOMP_IS(0, getpid())),
					     SECCOMP_END };
	const struct seccomp_rule *const lists[] = { baseline_calls, baseline_files,
						     baseline_sockets, serving, self };
	const char *step = "rights";
	int r = sandbox_enter(&box, &step);

	if (r)
		return sandbox_report(step, r);
		/* A kernel may lack one of the two; each alone stops most attacks. */
#ifndef __SANITIZE_ADDRESS__
	if (landlock_version() > 0)
		r = landlock_enter(LANDLOCK_NOTHING, NULL);
	if (r)
		return sandbox_report("Landlock", r);
#endif
	r = seccomp_enter(lists, sizeof(lists) / sizeof(lists[0]), true);
	return r == -EOPNOTSUPP ? 0 : sandbox_report("system calls", r);
}
