/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's side-band records: which processes start, exec, exit and map code. They come from
 * one perf software event per online cpu, and are merged by time.
 *
 * The kernel reports only executable mappings, and no munmap or mremap. A record's time is
 * CLOCK_MONOTONIC, taken a moment before the record can be read. So a horizon of "now" may miss a
 * record that another cpu is still writing; the next drain delivers it.
 *
 * Source: perf_event_open(2), <linux/perf_event.h>.
 */
#ifndef PROF_BPF_KERNEL_SIDEBAND_H
#define PROF_BPF_KERNEL_SIDEBAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "common/base/bytes/span.h"
#include "common/base/bytes/str.h"

#define SIDEBAND_RING_BYTES (256u << 10)
#define SIDEBAND_NAME_MAX 4096u

enum sideband_type {
	/* addr, length, offset, dev_major.., prot, flags, name: the path, or "//anon", "[vdso]"
	 * … */
	SIDEBAND_MMAP = 1,
	SIDEBAND_COMM, /* tid has a new name; exec: set by an execve, and then pid == tid */
	/* A thread of parent_pid created tid. If pid == parent_pid, it is a thread. */
	SIDEBAND_FORK,
	SIDEBAND_EXIT, /* tid has exited */
	/* The ring of this cpu was full: `count` records are missing before the next one. */
	SIDEBAND_LOST,
	SIDEBAND_KSYMBOL,  /* kernel code appeared or disappeared (unregister): addr, length,
			    * name */
	SIDEBAND_THROTTLE, /* the kernel throttled the event */
};

struct sideband_event {
	enum sideband_type type;
	bool exec, unregister;
	uint32_t cpu, pid, tid, parent_pid;
	uint64_t time_ns;
	uint64_t addr, length, offset; /* bytes */
	uint32_t dev_major, dev_minor;
	uint64_t inode, inode_generation;
	uint32_t prot, flags;
	uint64_t count;
	struct str name; /* borrowed until the callback returns; at most SIDEBAND_NAME_MAX bytes */
};

struct sideband;

/* Opens the events; recording starts at once. ring_bytes: per cpu, rounded down to a power of two
 * of pages, and halved as often as the memlock limit requires. If the kernel does not know KSYMBOL
 * records, they are left out. pid: -1 for the whole host (the normal case); otherwise only that
 * process, for tests without rights. The caller owns *ret. Returns 0; -EACCES or -EPERM: not
 * allowed; -errno. */
int sideband_new(size_t ring_bytes, int pid, struct sideband **ret);
void sideband_free(struct sideband *s);
/* Opens an event for sideband_cpu, as sideband_new does. Returns a descriptor, or -errno: -ENODEV
 * if the cpu is offline. */
int sideband_event_open(unsigned cpu, bool ksymbols);
/* Takes the event of a cpu that has come online. Drains and replaces the event that ended when the
 * cpu went offline. Earlier events on this cpu are unknown. Returns 0; -ENOSPC: the cpu was not
 * expected at the start; -errno: nothing has changed. */
int sideband_cpu(struct sideband *s, unsigned cpu, int event);
/* Returns an epoll descriptor, borrowed. It becomes readable at about 256 bytes of records on one
 * cpu, which each exec writes. Fewer records do not make it readable. */
int sideband_fd(const struct sideband *s);
/* Whether a ring is so full that its records should be taken soon. */
bool sideband_fills(const struct sideband *s);
/* Clears the readable state until more records come. Call it before sideband_drain. */
void sideband_heard(struct sideband *s);
/* Delivers all records with time <= horizon_ns (CLOCK_MONOTONIC; UINT64_MAX: all), merged over the
 * cpus. Never blocks. Returns how many it delivered. */
size_t sideband_drain(struct sideband *s, uint64_t horizon_ns,
		      void (*fn)(void *ctx, const struct sideband_event *e), void *ctx);

struct sideband_figures {
	unsigned cpus;	   /* rings, one per online cpu */
	size_t ring_bytes; /* of each ring, after the memlock limit */
	bool ksymbols;	   /* KSYMBOL records are enabled */
	uint64_t records, malformed;
};
void sideband_figures(const struct sideband *s, struct sideband_figures *ret);
/* Returns how many records ring i (below figures.cpus) had no space for since the start, and its
 * cpu. */
uint64_t sideband_lost(const struct sideband *s, unsigned i, unsigned *ret_cpu);

/* Parses one record in the kernel's layout, with its header; for tests and the fuzzer. Returns
 * false if it is none of the types above, of no interest, or malformed (*ret_malformed). */
bool sideband_parse(struct span record, struct sideband_event *ret, bool *ret_malformed);

#endif
