/* SPDX-License-Identifier: Apache-2.0 */
/* The options of prof-bpf. */
#ifndef PROF_BPF_OPTIONS_H
#define PROF_BPF_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "common/cell/deploy.h"

#define OPTIONS_MAX_PIDS 1024

struct options {
	unsigned hz;
	double seconds; /* 0: until told to stop */
	uint32_t pids[OPTIONS_MAX_PIDS];
	size_t pid_count;
	uint32_t follow;    /* sample this process and its descendants; 0: none */
	const char *output; /* by hand: a path, or NULL for standard output */
	size_t table_bytes; /* ceiling of the unwind tables; 0: the rest of --memory-limit */
	bool memory_none;   /* nobody gets memory of processes */
	bool check;	    /* print what the host supports, and end */
	bool resume;	    /* the followed process may already have children */
	bool ignore_unsafe_kernel;
	bool cpus, cycles, ksymbols; /* be the helper of cpus.h, with such events */
	struct deploy deploy;
};
/* A part of main (exits.h). */
int options_parse(int argc, char **argv, struct options *ret);

#endif
