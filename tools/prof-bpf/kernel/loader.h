/* SPDX-License-Identifier: Apache-2.0 */
/* The loader of the BPF object. It also opens the perf events that drive the programs, and drains
 * the rings. */
#ifndef PROFPIPE_LOADER_H
#define PROFPIPE_LOADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "bpf/sample.h"

struct loader;
struct tables_config;

struct loader_config {
	unsigned hz;
	unsigned drain_ms;  /* longest time between two calls of loader_drain */
	uint64_t ring_max;  /* largest size of each ring, in bytes */
	bool only_selected; /* only sample selected processes (tables_process_set) */
	bool follow_forks;  /* also select children of selected processes */
};

/* Opens one sampling event per online cpu, disabled: hardware cycles if they exist, else cpu-clock.
 * Call it before the tool drops its rights, since perf_event_paranoid=3 requires CAP_SYS_ADMIN.
 * -EACCES, -EPERM: not allowed; -errno. The caller owns *ret. */
int loader_new(const struct loader_config *c, struct loader **ret);
/* Loads the programs and maps, and attaches those that follow execs and forks. -errno;
 * loader_trouble() then returns the last words of the verifier or libbpf. */
int loader_load(struct loader *l);
/* Loads the programs of all runtimes at once: the right to load programs is dropped before the
 * first byte of a stranger is read. */
void loader_load_runtimes(struct loader *l);
/* Whether a runtime's program is loaded: 0; -EINVAL: there is none, or none were loaded; -errno: as
 * above. */
int loader_runtime(const struct loader *l, enum runtime which);
/* The receiver of samples has no copies of the runtimes' objects: copies each again with its next
 * sample. -ENOMEM, -errno. */
int loader_forget_objects(struct loader *l);
const char *loader_trouble(const struct loader *l);
void loader_free(struct loader *l);

/* The descriptors of the maps that tables.c writes; borrowed. */
void loader_tables(const struct loader *l, struct tables_config *ret);
/* Samples flow from here on. -errno. */
int loader_start(struct loader *l);
/* No more samples are taken; what is in the ring can still be drained. */
void loader_stop(struct loader *l);
/* Hands every sample in the ring to whole, its frames within its size, and then those whose walk is
 * deferred to deferred; each oldest first, and theirs until they return. -errno, or how many. */
int loader_drain(struct loader *l, void (*whole)(void *ctx, const struct sample *s),
		 void (*deferred)(void *ctx, const struct deferred_sample *d), void *ctx);

/* A sampling event of a cpu, disabled. A descriptor, or -errno: -ENODEV where the cpu is offline.
 */
int loader_event_open(unsigned hz, bool cycles, unsigned cpu);
/* A cpu has come online: takes its event, in the place of one that ended when it went. -errno. */
int loader_cpu(struct loader *l, unsigned cpu, int event);

/* "cycles" or "cpu-clock"; the unit of sample.value; what one sample stands for in it (0 where it
 * varies). */
const char *loader_event(const struct loader *l);
const char *loader_unit(const struct loader *l);
uint64_t loader_period(const struct loader *l);

struct loader_figures {
	uint64_t runs, ns;  /* of the sampling program, since the start */
	uint64_t ticks;	    /* its events, those that took no sample, too */
	uint64_t ring_full; /* samples that the ring had no room for */
	uint64_t map_bytes; /* of the object's maps, slabs not counted */
	unsigned cpus;
	uint32_t verified; /* instructions that the verifier looked at; 0: the kernel (before 5.16)
			      does not say */
};
void loader_figures(struct loader *l, struct loader_figures *ret);
/* Samples that the ring had no room for, by cpu (below loader_figures.cpus), since the start. */
uint64_t loader_ring_full(struct loader *l, unsigned cpu);
/* Records in the ring that were not a whole sample: a bug of ours, counted. */
uint64_t loader_malformed(const struct loader *l);

#endif
