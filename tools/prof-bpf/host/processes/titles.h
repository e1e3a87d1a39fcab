/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Titles: the names that programs give their threads through a runtime, as Java's threads have
 * them. The kernel's programs send a title before the first sample that has it (struct
 * sample_thread). A thread that runs virtual threads has many, one after the other.
 *
 * A thread has an id for itself and one for each of its titles. New titles are limited like new
 * names (PROCESSES_RENAMES): beyond that, samples have the thread without a title. So a process can
 * neither fill the table nor show a title that is not that of the sample.
 */
#ifndef PROF_BPF_HOST_PROCESSES_TITLES_H
#define PROF_BPF_HOST_PROCESSES_TITLES_H

#include "tools/prof-bpf/host/processes/processes.h"
#include "tools/prof-bpf/kernel/record.h"

/* Sets the title that a thread has from now on. Without memory, the thread has none. */
void titles_take(struct process_thread *t, const struct record_title *title);
/* Returns the thread with the title that it has in a sample; t itself if there is none. */
struct process_thread *titles_of(struct host *h, struct process_thread *t, const struct sample *s);

#endif
