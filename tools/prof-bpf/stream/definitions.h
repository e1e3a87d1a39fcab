/* SPDX-License-Identifier: Apache-2.0 */
/* Stream definitions of the host's files, processes and threads. The strings are borrowed from the
 * host. */
#ifndef PROF_BPF_STREAM_DEFINITIONS_H
#define PROF_BPF_STREAM_DEFINITIONS_H

#include "tools/prof-bpf/host/host.h"
#include "tools/prof-bpf/stream/emit.h"

struct emit_file definition_of_file(struct host_file *f);
/* exe is filled with the process's executable, if that is known. */
struct emit_process definition_of_process(struct host_process *p, struct emit_file *exe);
struct emit_thread definition_of_thread(struct host_thread *t);

#endif
