/* SPDX-License-Identifier: Apache-2.0 */
/* The options of prof-bpf. */
#ifndef PROF_BPF_OPTIONS_OPTIONS_H
#define PROF_BPF_OPTIONS_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "common/cell/deploy.h"
#include "common/cell/targets/sampling.h"
#include "tools/prof-bpf/kernel/cpus.h"

struct options {
	struct sampling sampling;
	uint32_t follow;    /* sample this process and its descendants; 0: none */
	const char *output; /* by hand: a path, or NULL for standard output */
	unsigned mode;	    /* mode of a new output file */
	size_t table_bytes; /* limit of the unwind tables; 0: the rest of --memory-limit */
	bool check;	    /* print what the host supports, and end */
	bool resume;	    /* the followed process may already have children */
	bool cpus;	    /* be the helper of cpus.h, with these events */
	struct cpus_events events;
	struct deploy deploy;
};
/* Parses the command line. Returns as a part of main does (exits.h). */
int options_parse(int argc, char **argv, struct options *ret);
/* Whether descendants of the sampled processes are also sampled. */
bool options_follow_forks(const struct options *o);

#endif
