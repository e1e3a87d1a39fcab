/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A resource: the origin of a profile, as attributes by the semantic conventions of OpenTelemetry.
 * Keys and values are plain text and numbers, since the Collector does not look up texts of a
 * resource in the dictionary.
 *
 *   service.name              what the process says (OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES),
 *                             the systemd service, the container, the executable or the process's
 *                             name: the first that is known
 *   container.id, container.name, k8s.pod.uid
 *                             by the cgroup (container.h)
 *   process.pid, process.creation.time, process.executable.name, process.executable.path
 *   host.name, host.id, host.arch, os.type, os.version (the kernel's release)
 *   process.command_args, process.environment_variable.NAME: as far as the stream has them
 *   and all others of OTEL_RESOURCE_ATTRIBUTES, except for those that profpipe itself says
 */
#ifndef PROF_EXPORT_OTLP_RESOURCE_H
#define PROF_EXPORT_OTLP_RESOURCE_H

#include "tools/prof-export/model/definitions/epoch.h"
#include "tools/prof-export/model/model.h"

/* Appends the packed Resource of a process. NULL: of samples without one. Errors of buf_append. */
int resource_process(struct buf *b, const struct model *m, const struct epoch_process *p);
/* The same of profpipe itself, which reports what was lost. */
int resource_profiler(struct buf *b, const struct model *m);

#endif
