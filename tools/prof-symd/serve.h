/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The service: takes the raw stream from prof-bpf, requests files from it, and sends the named
 * stream to prof-export. The loop logs nothing; its result tells how it ended.
 */
#ifndef PROF_SYMD_SERVE_H
#define PROF_SYMD_SERVE_H

#include "common/cell/budget/budget.h"
#include "common/wire/bus/bus.h"
#include "common/wire/peer/peer.h"
#include "tools/prof-symd/stream/namer.h"

struct serve_links {
	/* Borrowed. */
	struct peer *stream; /* prof-bpf's raw stream */
	struct peer *files;  /* requests to prof-bpf, and its answers */
	struct bus *named;   /* to prof-export */
	int life_fd;	     /* -1: none */
	enum reporting_names names;
	/* Called in each turn of the loop, and while it waits for prof-export. samples: how many
	 * were passed on so far. */
	void (*beat)(void *ctx, uint64_t samples);
	void *ctx;
	/* As in worker_warnings.h. Called once per file; say_too_large only for the first file. */
	void (*say_killed)(struct str path);
	void (*say_lost)(struct str path, unsigned kills);
	void (*say_died)(struct str path, bool killed);
	void (*say_too_large)(struct str path);
	void (*say_slow)(uint64_t owner);    /* as in namer_take_turns */
	void (*say_code_lost)(uint32_t pid); /* as in worker_warnings.h */
};

enum serve_verdict {
	SERVE_LIFE_OVER = 1,   /* the launcher is gone */
	SERVE_EXPORT_GONE = 2, /* prof-export disconnected before the stream's end */
	SERVE_MALFORMED = 3,   /* prof-bpf broke the protocol; earlier messages and an end were
			        * sent */
	SERVE_SCHEMA = 4,      /* prof-bpf comes from another build */
};

struct serve_counts {
	struct namer_counts named;
	uint64_t dwarf_too_large; /* number of files */
	uint64_t code_lost;	  /* number of perf maps and jitdumps */
	bool peer_lost;		  /* prof-bpf disconnected without an end; an end was sent
				   * instead */
	bool keeper_gone;	  /* the keeper of the workers is gone (program.h); an end was also
				   * sent */
};

/* Runs until the stream has ended and prof-export has taken all of it and disconnected. budget:
 * prof-symd's share. Returns 0, enum serve_verdict or -errno. */
int serve_run(const struct serve_links *links, const struct budget *budget,
	      struct serve_counts *ret_counts);

#endif
