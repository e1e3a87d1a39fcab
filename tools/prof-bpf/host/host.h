/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host: the processes, threads and executable mappings that samples refer to, and the mapped
 * files.
 *
 * A process is (pid, start time, exec count). Each exec makes a new object, and a sample gets the
 * object of its time. Objects are kept for HOST_GRACE_NS after their end, for late samples. A
 * process and its forks share an array of mappings until one of them changes it.
 *
 * A file is identified by fstat of the open descriptor: (device, inode, ctime, size). The opener
 * opens it through map_files, and its mappings are published after that. An opening is skipped if
 * device, inode and generation in the mapping's record are known, in two cases: the file is still
 * open and unchanged; or only root can write to it and it was checked within HOST_RECHECK_NS.
 *
 * Order of use:
 *
 * - open the side-band events
 * - host_new and host_scan
 * - host_event for each record, in order
 * - host_sample for samples not newer than the records
 * - host_tick, which opens and publishes what has changed
 *
 * No function here blocks, except for reads of /proc.
 */
#ifndef PROF_BPF_HOST_HOST_H
#define PROF_BPF_HOST_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "bpf/sample.h"
#include "common/base/bytes/span.h"
#include "tools/prof-bpf/host/processes/host_types.h"
#include "tools/prof-bpf/kernel/sideband.h"
#include "tools/prof-bpf/open/opener.h"

struct host;
struct runtime_config;

/* Makes the host; the caller owns *ret. Calls file_needs_rows for the vDSO. Returns 0 or -errno. */
int host_new(const struct host_config *c, struct host **ret);
void host_free(struct host *h);

/* Selects a process that runs, or that the next records will report. May be called at any time.
 * Returns 0; -ESRCH: there is none. */
int host_select(struct host *h, uint32_t pid);
/* Selects the living children of selected processes, and their descendants. Returns 0 or -errno of
 * /proc. */
int host_select_children(struct host *h);
/* Flags a process MSG_PROCESS_SELF, now or when it becomes known. */
void host_mark_self(struct host *h, uint32_t pid);
/* Reads the running processes from /proc. Returns 0 or -errno. */
int host_scan(struct host *h);
void host_event(struct host *h, const struct sideband_event *e);
/* Opens and publishes what has changed, and drops old entries. Calls the config's callbacks.
 * now_ns: CLOCK_MONOTONIC. heard_ns: all records up to this time have been taken. */
void host_tick(struct host *h, uint64_t now_ns, uint64_t heard_ns);

struct host_sample_ref {
	struct host_process *process;
	struct host_thread *thread;
};
/* Finds the process and thread of a sample, as of its time, or makes them from the sample. Returns
 * 0, -ENOBUFS at the limit of processes (counted), or -ENOMEM. */
int host_sample(struct host *h, const struct sample *s, struct host_sample_ref *ret);
/* Returns a number that changes whenever publish_mappings may give others for the sample. */
uint64_t host_changes(struct host *h, const struct sample *s);
/* Takes the name that a program gave a thread, which is valid from the next sample on. */
struct record_title;
void host_title(struct host *h, const struct sample *s, const struct record_title *title);

/* Whether mappings of this generation were the process's own. If not, the sample was walked with
 * another program's mappings and its frames are wrong. */
bool host_walked_with(const struct host_process *p, uint32_t generation);
/* Returns how many user frames, from the leaf on, were walked with the mappings of the sample's
 * time. The frame after them is at an address where another file was mapped since. */
unsigned host_frames_that_hold(const struct host_process *p, const struct sample *s);
/* Whether mappings displaced others after time_ns. publish_mappings leaves such places out. */
bool host_mapped_since(const struct host_process *p, uint64_t time_ns);

/* Return the file in a slot of the tables, or with an id; NULL if it is gone. */
struct host_file *host_slot_file(struct host *h, uint16_t slot);
struct host_file *host_file(struct host *h, uint32_t id);
/* Reports a sample of the process in the file of this slot. */
void host_slot_used(struct host *h, uint16_t slot, const struct host_process *by);
/* Returns the owner whose samples the file got its slot for, or without a slot, the owner charged
 * for the file. Borrowed; NULL: there is none. */
struct owner *host_file_owner(const struct host_file *f);
/* Calls fn with each known process, living or recently ended. */
void host_each_process(struct host *h, void (*fn)(void *ctx, struct host_process *p), void *ctx);
/* Returns the process with this id, living or recently ended; NULL if it is forgotten. */
struct host_process *host_process(struct host *h, uint32_t id);

/* Opens a file again, for prof-symd or for evicted rows. done gets a descriptor of the same file
 * (identity checked), or a status. It is called from here if the file is still open, otherwise from
 * workerpool_run. Returns 0, or -errno, in which case done is not called. */
int host_open(struct host *h, struct host_file *f, opener_done *done, void *ctx);
/* The kernel's walk stopped at a file without a slot, which may have one by now: publishes the
 * process again. */
void host_is_behind(struct host *h, struct host_process *p);
/* Records that the file contains a runtime, whose config walks read from now on. */
void host_runtime(struct host *h, struct host_file *f, const struct runtime_config *c);
/* Calls fn for each executable mapping of a file that contains a runtime. */
typedef void host_mapping(void *ctx, struct host_file *f, uint64_t start, uint64_t end,
			  uint64_t offset);
void host_runtime_mappings(const struct host_process *p, host_mapping *fn, void *ctx);
/* Returns the runtime in the file of a slot, borrowed, or NULL. */
const struct runtime_config *host_slot_runtime(struct host *h, uint16_t slot);
/* Requests evicted rows again: file_needs_rows will be called with a descriptor. If the file cannot
 * be opened, the tables are told that it has no rows. */
void host_want_rows(struct host *h, struct host_file *f);
/* Whether nothing is being opened or waits for the next tick. */
bool host_settled(const struct host *h);

/* Takes constant time, independent of the number of processes. */
void host_figures(const struct host *h, struct host_figures *ret);
/* Goes through all processes. */
void host_sizes(const struct host *h, struct host_sizes *ret);
/* Returns the ledger of all owners, borrowed. */
struct owners *host_owners(struct host *h);

#endif
