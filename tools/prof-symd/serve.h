/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prof-symd between its peers: the raw stream from prof-bpf, files asked of it, the named stream to
 * prof-export. The loop logs nothing; it says how it ended.
 */
#ifndef PROFPIPE_SERVE_H
#define PROFPIPE_SERVE_H

#include "common/cell/budget.h"
#include "common/wire/bus.h"
#include "common/wire/peer.h"
#include "tools/prof-symd/stream/named.h"

struct serve_links {
	/* Borrowed. */
	struct peer *stream; /* prof-bpf's raw stream */
	struct peer *files;  /* requests to prof-bpf, and its answers */
	struct bus *named;   /* to prof-export */
	int life_fd;	     /* -1: none */
	/* Called whenever the loop turns, while it waits for prof-export, too. samples: passed on.
	 */
	void (*beat)(void *ctx, uint64_t samples);
	void *ctx;
	/* Say of a file of this path, a stranger's bytes, that libdw's process was killed over it,
	 * and has it again; that it died on it, or of how many kills. Called once a file. */
	void (*say_killed)(struct str path);
	void (*say_lost)(struct str path, unsigned kills);
	/* The same of the first whose DWARF takes more memory than there is. */
	void (*say_too_large)(struct str path);
};

enum serve_verdict {
	SERVE_LIFE_OVER = 1,   /* the launcher is gone */
	SERVE_EXPORT_GONE = 2, /* prof-export went before the end */
	SERVE_MALFORMED =
		3, /* prof-bpf sent what is no stream; what came before was passed on, and an end */
	SERVE_SCHEMA = 4, /* prof-bpf is of another build */
};

struct serve_counts {
	struct named_counts named;
	uint64_t opened, evicted, timed_out, dwarf_too_large;
	bool peer_lost;	  /* prof-bpf went without an end; one was put in its place */
	bool keeper_gone; /* libdw's (dwarf.h): the same was done, to begin anew */
};

/* Runs until the stream ended and prof-export took it all and went. budget: symd's of it; programs:
 * bytes for symbols and DWARF where it is not what all else leaves, 0. 0, enum serve_verdict,
 * -errno. */
int serve_run(const struct serve_links *links, const struct budget *budget, uint64_t programs,
	      struct serve_counts *ret_counts);

#endif
