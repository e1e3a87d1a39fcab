/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's side-band records: which processes start, exec, end and map code, read from one perf
 * software event per online cpu, in the order of their time.
 *
 * Only executable mappings are reported; munmap and mremap are not, by anybody. A record's time is
 * CLOCK_MONOTONIC, taken a moment before the record can be read: a horizon of "now" may miss a
 * record that is being written on another cpu, which then comes with the next drain.
 *
 * Source: perf_event_open(2), <linux/perf_event.h>.
 */
#ifndef PROFPIPE_SIDEBAND_H
#define PROFPIPE_SIDEBAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "common/base/span.h"

#define SIDEBAND_RING_BYTES (256u << 10)
#define SIDEBAND_NAME_MAX 4096u

enum sideband_type {
	SIDEBAND_MMAP = 1, /* addr, length, offset, dev_major.., prot, flags, name: the path, or
			      "//anon", "[vdso]" … */
	SIDEBAND_COMM,	   /* tid's new name; exec: it came of an execve, and pid == tid */
	SIDEBAND_FORK, /* tid was made by parent_tid of parent_pid; pid == parent_pid: a thread */
	SIDEBAND_EXIT, /* tid is gone */
	SIDEBAND_LOST, /* the ring of this cpu was full: `count` records are missing before the next
			  one */
	SIDEBAND_KSYMBOL,  /* kernel code came or went (unregister): addr, length, name */
	SIDEBAND_THROTTLE, /* the kernel throttled the event */
};

struct sideband_event {
	enum sideband_type type;
	bool exec, unregister;
	uint16_t ksym_type; /* enum perf_record_ksymbol_type */
	uint32_t cpu, pid, tid, parent_pid, parent_tid;
	uint64_t time_ns;
	uint64_t addr, length, offset; /* bytes */
	uint32_t dev_major, dev_minor;
	uint64_t inode, inode_generation;
	uint32_t prot, flags;
	uint64_t count;
	struct str name; /* borrowed until the callback returns; at most SIDEBAND_NAME_MAX bytes */
};

struct sideband;

/* Opens the events, recording from here on. ring_bytes: per cpu, rounded down to a power of two of
 * pages; halved as often as the memlock limit asks for. A kernel that knows no KSYMBOL records is
 * asked again without. pid: -1 for the whole host (the rule); a pid restricts all to that process,
 * for tests without rights. -EACCES, -EPERM: not allowed; -errno. The caller owns *ret. */
int sideband_new(size_t ring_bytes, int pid, struct sideband **ret);
void sideband_free(struct sideband *s);
/* An event for sideband_cpu, as sideband_new opens them. A descriptor, or -errno: -ENODEV where the
 * cpu is offline. */
int sideband_event_open(unsigned cpu, bool ksymbols);
/* A cpu has come online: takes its event, in the place of one that ended when it went, whose
 * records are drained. What happened on the cpu before is not known. -ENOSPC: there never was to be
 * such a cpu; -errno: as before. */
int sideband_cpu(struct sideband *s, unsigned cpu, int event);
/* An epoll descriptor, readable when records have come, some 256 bytes of them on one cpu: enough
 * for each exec; what is less waits unannounced. Borrowed. */
int sideband_fd(const struct sideband *s);
/* The descriptor is readable no more, until other records come: before sideband_drain. */
void sideband_heard(struct sideband *s);
/* Delivers all records with time <= horizon_ns (CLOCK_MONOTONIC; UINT64_MAX: all), merged over the
 * cpus. Never blocks. How many were delivered. */
size_t sideband_drain(struct sideband *s, uint64_t horizon_ns,
		      void (*fn)(void *ctx, const struct sideband_event *e), void *ctx);

struct sideband_figures {
	unsigned cpus;	   /* rings: the online cpus */
	size_t ring_bytes; /* of each, after what the memlock limit took */
	bool ksymbols;	   /* KSYMBOL records come */
	uint64_t records, malformed;
};
void sideband_figures(const struct sideband *s, struct sideband_figures *ret);
/* Records that the ring i (below figures.cpus) had no room for, since the start, and the cpu it
 * belongs to. */
uint64_t sideband_lost(const struct sideband *s, unsigned i, unsigned *ret_cpu);

/* One record as the kernel lays it out, its header included; for tests and the fuzzer. False when
 * it is none of the above, not of interest, or malformed (*ret_malformed). */
bool sideband_parse(struct span record, struct sideband_event *ret, bool *ret_malformed);

#endif
