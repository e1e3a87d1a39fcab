/* SPDX-License-Identifier: Apache-2.0 */
/* The loader of the BPF object. It also opens the perf events that drive the programs, and drains
 * the rings. */
#ifndef PROF_BPF_KERNEL_LOADER_H
#define PROF_BPF_KERNEL_LOADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "bpf/deferred.h"

struct loader;
struct tables_config;
struct targets;

struct loader_config {
	unsigned hz;
	unsigned drain_ms;	       /* longest time between two calls of loader_drain */
	uint64_t ring_max;	       /* largest size of each ring, in bytes */
	bool only_selected;	       /* only sample selected processes (tables_process_set) */
	bool follow_forks;	       /* also select children of selected processes */
	const struct targets *targets; /* borrowed; NULL: all processes, on every cpu */
	bool again;		       /* an earlier prof-bpf of this run had these targets */
};

/* Opens one sampling event per online cpu of the targets, disabled: hardware cycles if they exist,
 * otherwise cpu-clock. Call it before the tool drops its rights, since perf_event_paranoid=3
 * requires CAP_SYS_ADMIN. The caller owns *ret. Returns 0; -EACCES or -EPERM: not allowed;
 * -errno. */
int loader_new(const struct loader_config *c, struct loader **ret);
/* Loads the programs and maps, and attaches those that follow execs and forks. Returns 0 or -errno;
 * loader_trouble() then returns the last message of the verifier or libbpf, or NULL if a target was
 * the reason, which is logged. */
int loader_load(struct loader *l);
/* Become readable, as an edge, while the ring of samples is a quarter full, or that of deferred
 * samples half full. */
int loader_samples_fd(const struct loader *l);
int loader_deferred_fd(const struct loader *l);
/* Starts the process that loads the programs of runtimes (late_loader.h). Call it after
 * loader_load, with one thread and the right to load programs. Returns 0 or -errno. */
int loader_start_late(struct loader *l);
/* Return the socket to that process, to wait for an answer (-1: there is none), and its pid (0:
 * there is none). */
int loader_late_fd(const struct loader *l);
pid_t loader_late_pid(const struct loader *l);
/* Takes its answers. Returns 0; -EPIPE: the process ended. */
int loader_hear_late(struct loader *l);
/* Tells whether a runtime's programs are loaded. Returns 0; -EAGAIN: they are being loaded, from
 * this call on; -EINVAL: there are none; -EPIPE: there is no process that loads them; -errno:
 * loading failed. */
int loader_runtime(struct loader *l, enum runtime which);
/* Whether some runtime's program is being loaded. */
bool loader_is_loading(const struct loader *l);
/* Copies each runtime object again with its next sample. Call it when the receiver of samples has
 * no copies. Returns 0, -ENOMEM or -errno. */
int loader_forget_objects(struct loader *l);
/* The same for some objects of a process, and for a few others that share their sets. */
int loader_forget_some(struct loader *l, uint32_t pid, const uint64_t *addresses, size_t n);
const char *loader_trouble(const struct loader *l);
void loader_free(struct loader *l);

/* Sets the descriptors of the maps for tables_new; borrowed. */
void loader_tables(const struct loader *l, struct tables_config *ret);
/* Starts sampling. Returns 0 or -errno. */
int loader_start(struct loader *l);
/* Interrupts sampling until loader_start: its events are disabled, and cost nothing. Returns 0 or
 * -errno. */
int loader_pause(struct loader *l);
/* Stops sampling; the contents of the rings can still be drained. */
void loader_stop(struct loader *l);
/* Passes every sample in the ring to `whole`, and then those with a deferred walk to `deferred`,
 * each oldest first. Sizes are checked; samples are borrowed until the callback returns. Returns
 * how many there were, or -errno. */
int loader_drain(struct loader *l, void (*whole)(void *ctx, const struct sample *s),
		 void (*deferred)(void *ctx, const struct deferred_sample *d), void *ctx);

/* Opens a sampling event of a cpu, disabled. Returns a descriptor, or -errno: -ENODEV if the cpu is
 * offline. */
int loader_event_open(unsigned hz, bool cycles, unsigned cpu);
/* Takes the event of a cpu that has come online, in place of the one that ended when the cpu went
 * offline. Closes it if the targets are on other cpus. Returns 0 or -errno. */
int loader_cpu(struct loader *l, unsigned cpu, int event);

/* "cycles" or "cpu-clock"; the unit of sample.value; the value of one sample (0 if it varies). */
const char *loader_event(const struct loader *l);
const char *loader_unit(const struct loader *l);
uint64_t loader_period(const struct loader *l);

struct loader_figures {
	uint64_t runs, ns;  /* runs and time of the sampling program since the start */
	uint64_t ticks;	    /* its events, including those without a sample */
	uint64_t skipped;   /* events in processes that are not wanted */
	uint64_t ring_full; /* samples that did not fit the ring */
	uint64_t map_bytes; /* of the BPF object's maps, without slabs */
	unsigned cpus;
	/* Instructions that the verifier checked; 0: the kernel (before 5.16) does not report
	 * it. */
	uint32_t verified;
};
void loader_figures(struct loader *l, struct loader_figures *ret);
/* Whether a process is wanted after its exec at this time (CLOCK_MONOTONIC). Also false if the
 * program has not seen the exec yet, or if another process has replaced the entry. */
bool loader_wants(const struct loader *l, uint32_t pid, uint64_t exec_ns);
/* Returns how many samples of a cpu (below loader_figures.cpus) did not fit the ring since the
 * start. */
uint64_t loader_ring_full(struct loader *l, unsigned cpu);
/* Returns how many incomplete records were in the rings, which would be a bug of profpipe. */
uint64_t loader_malformed(const struct loader *l);

#endif
