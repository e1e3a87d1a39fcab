/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host: the processes, threads and executable mappings that samples refer to, and the files
 * behind the mappings.
 *
 * A process is (pid, start time, exec count). Each exec makes a new object, and a sample gets the
 * object of its time. Objects are kept for HOST_GRACE_NS after their end, for late samples. A
 * process and its forks share an array of mappings until one of them changes it.
 *
 * A file is known by fstat of the open descriptor: (device, inode, ctime, size). The opener opens
 * it through map_files, and its mappings are published after that. An opening is skipped if device,
 * inode and generation in the mapping's record are known, in two cases: the file is still open and
 * unchanged; or only root can write to it and it was checked within HOST_RECHECK_NS.
 *
 * Order of use:
 *
 * - open the side-band events
 * - host_new and host_scan
 * - host_event for each record, in order
 * - host_sample for samples not newer than the records
 * - host_tick, which opens and publishes what has changed
 *
 * Nothing here waits, except for /proc.
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

/* -errno. The caller owns *ret. Calls file_needs_rows for the vDSO. */
int host_new(const struct host_config *c, struct host **ret);
void host_free(struct host *h);

/* Selects a process that runs, or that the next records will name. At any time. -ESRCH: there is
 * none. */
int host_select(struct host *h, uint32_t pid);
/* Selects the children of selected processes, and their descendants, that live now. 0, -errno of
 * /proc. */
int host_select_children(struct host *h);
/* Flags a process PROCESS_SELF, now or when it becomes known. */
void host_mark_self(struct host *h, uint32_t pid);
/* Reads the running processes from /proc. -errno. */
int host_scan(struct host *h);
void host_event(struct host *h, const struct sideband_event *e);
/* Opens and publishes what has changed, and drops what is old. Calls back. now_ns: CLOCK_MONOTONIC.
 * heard_ns: all records up to this time have been taken. */
void host_tick(struct host *h, uint64_t now_ns, uint64_t heard_ns);

struct host_sample_ref {
	struct host_process *process;
	struct host_thread *thread;
};
/* Finds the process and thread of a sample, as of its time, or makes them from the sample. 0,
 * -ENOBUFS at the ceiling of processes (counted), -ENOMEM. */
int host_sample(struct host *h, const struct sample *s, struct host_sample_ref *ret);
/* Takes the name that a program gave a thread, which holds from the next sample on. */
struct record_title;
void host_title(struct host *h, const struct sample *s, const struct record_title *title);

/* Whether mappings of this generation were the process's own. If not, the sample was walked with
 * another program's mappings and its frames are wrong. */
bool host_walked_with(const struct host_process *p, uint32_t generation);
/* How many user frames, from the leaf on, were walked with the mappings of the sample's time. The
 * frame behind them is in a place that another file has taken. */
unsigned host_frames_that_hold(const struct host_process *p, const struct sample *s);
/* Whether mappings displaced others after time_ns: publish_mappings leaves those out. */
bool host_mapped_since(const struct host_process *p, uint64_t time_ns);

/* The file in a slot of the tables, or with an id; NULL if it is gone. */
struct host_file *host_slot_file(struct host *h, uint16_t slot);
struct host_file *host_file(struct host *h, uint32_t id);
/* A sample of the process lies in the file of this slot. */
void host_slot_used(struct host *h, uint16_t slot, const struct host_process *by);
/* Whose samples the file got its slot for; NULL: it has none. Borrowed. */
struct owner *host_file_owner(const struct host_file *f);
/* Calls fn with each known process, living or recently ended. */
void host_each_process(struct host *h, void (*fn)(void *ctx, struct host_process *p), void *ctx);
/* The process with this id, living or recently ended; NULL if it is forgotten. */
struct host_process *host_process(struct host *h, uint32_t id);

/* Opens a file again, for prof-symd or for evicted rows. done gets a descriptor of the same file
 * (identity checked), or a status. It is called from here if the file is still open, else from
 * workerpool_run. 0, or -errno, and done is not called. */
int host_open(struct host *h, struct host_file *f, opener_done *done, void *ctx);
/* The kernel's walk stopped at a file without a slot, which may have one by now: publishes the
 * process again. */
void host_is_behind(struct host *h, struct host_process *p);
/* The file holds a runtime, which walks read from now on. */
void host_runtime(struct host *h, struct host_file *f, const struct runtime_config *c);
/* Calls fn with each executable mapping of a file that holds a runtime. */
typedef void host_mapping(void *ctx, struct host_file *f, uint64_t start, uint64_t end,
			  uint64_t offset);
void host_runtime_mappings(const struct host_process *p, host_mapping *fn, void *ctx);
/* The runtime in the file of a slot, or NULL. Borrowed. */
const struct runtime_config *host_slot_runtime(struct host *h, uint16_t slot);
/* Evicted rows are wanted again: file_needs_rows will be called with a descriptor. If the file
 * cannot be opened, the tables learn that it has no rows. */
void host_want_rows(struct host *h, struct host_file *f);
/* Whether nothing is being opened or waits for the next tick. */
bool host_settled(const struct host *h);

/* Takes the same time however many processes there are. */
void host_figures(const struct host *h, struct host_figures *ret);
/* Walks over all processes. */
void host_sizes(const struct host *h, struct host_sizes *ret);
/* The ledger of all owners. Borrowed. */
struct owners *host_owners(struct host *h);

#endif
