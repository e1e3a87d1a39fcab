/* SPDX-License-Identifier: Apache-2.0 */
/* The start of sampling. It waits for the peers, and for the facts that they should know by
 * then. */
#ifndef PROF_BPF_RUN_STARTING_H
#define PROF_BPF_RUN_STARTING_H

#include <stdbool.h>

struct prof;
struct host_file;

/* Whether files mapped now belong to the programs that the run samples. Before sampling begins,
 * only their files are offered. */
bool starting_is_chosen(const struct prof *p);
/* Records that such a file is mapped. Returns whether it gets a slot before its first sample. */
bool starting_takes_file(struct prof *p);
/* Begins to load a runtime's program if the selected programs have just mapped a file of it
 * (runtimes_early). */
void starting_load_early(struct prof *p, const struct host_file *f);
/* Starts sampling once all peers are connected. It then waits for the rows of mapped files, for
 * reports on their interpreters and the programs of these, and until prof-export can check samples,
 * but only for a limited time. */
void starting_try(struct prof *p);

#endif
