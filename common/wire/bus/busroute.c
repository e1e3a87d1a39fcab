/* SPDX-License-Identifier: Apache-2.0 */
#include "common/wire/bus/busroute.h"

#include <errno.h>
#include <stdio.h>

/* A batch exceeds the sender's batch size by at most one message, and no tool sets that size above
 * MSG_MAX_SIZE. */
static const struct busroute routes[BUSROUTES] = {
	[BUSROUTE_ROWS] = { .listener = "bpf",
			    .name = "rows",
			    .max = MSG_MAX_SIZE,
			    .from_listener = { MSG_BPF_TO_DELTAS, BUSROUTE_DEPTH },
			    .from_dialer = { MSG_DELTAS_TO_BPF, 8 } },
	[BUSROUTE_STREAM] = { .listener = "bpf",
			      .name = "stream",
			      .max = 2 * MSG_MAX_SIZE,
			      .from_listener = { MSG_RAW_STREAM, BUSROUTE_DEPTH },
			      .from_dialer = { MSG_NO_WAY, 1 } },
	/* An answer may contain memory of a process. */
	[BUSROUTE_FILES] = { .listener = "bpf",
			     .name = "files",
			     .max = 160u << 10,
			     .from_listener = { MSG_BPF_TO_SYMD, BUSROUTE_DEPTH },
			     .from_dialer = { MSG_SYMD_TO_BPF, BUSROUTE_DEPTH } },
	[BUSROUTE_NAMED] = { .listener = "export",
			     .name = "named",
			     .max = 2 * MSG_MAX_SIZE,
			     .from_listener = { MSG_NO_WAY, 1 },
			     .from_dialer = { MSG_NAMED_STREAM, BUSROUTE_DEPTH } },
	/* prof-send takes each request at once, so few need to wait. */
	[BUSROUTE_EXPORT] = { .listener = "export",
			      .name = "otlp",
			      .max = 2 * MSG_MAX_SIZE,
			      .from_listener = { MSG_EXPORT_TO_SEND, 4 },
			      .from_dialer = { MSG_NO_WAY, 1 } },
};

const struct busroute *busroute_of(enum busroute_id id)
{
	return &routes[id];
}

int busroute_path(enum busroute_id id, const char *run_dir, const char *ending, char *ret,
		  size_t size)
{
	const int n = snprintf(ret, size, "%s/%s/%s.%s", run_dir, routes[id].listener,
			       routes[id].name, ending);

	return n > 0 && (size_t)n < size ? 0 : -ENAMETOOLONG;
}
