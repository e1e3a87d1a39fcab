/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line of prof-send, and what the environment adds to it. An option after an --otlp
 * applies to that endpoint. An option before the first --otlp applies to all endpoints that do not
 * set it themselves. So a token is sent only where the user wants it.
 */
#ifndef PROF_SEND_OPTIONS_H
#define PROF_SEND_OPTIONS_H

#include "common/cell/deploy.h"
#include "tools/prof-send/endpoint/endpoint.h"
#include "tools/prof-send/transfer/credentials.h"

#define OPTIONS_ENDPOINTS 16 /* at most */

/* The options of one endpoint. All are borrowed from argv or the environment. */
struct options_target {
	const char *text;    /* as given; NULL: the options for all endpoints */
	int protocol;	     /* enum endpoint_protocol; -1: not given */
	int compress;	     /* 0, 1; -1: not given */
	unsigned timeout_ms; /* of one attempt; 0: not given */
	const char *path[CREDENTIALS_FILES];
	const char *by[CREDENTIALS_FILES]; /* names of the options or variables with the paths */
	bool bad;			   /* an option of it was refused */
	const char *headers;		   /* OTEL_EXPORTER_OTLP_HEADERS; NULL: none */
	struct endpoint endpoint;
};

struct options {
	struct deploy deploy;
	bool check;   /* only check the options and the files that they name */
	bool refused; /* with `check`: an option was refused */
	bool resume;  /* a restart: endpoints whose files cannot be used have to wait */
	struct options_target all, targets[OPTIONS_ENDPOINTS];
	size_t target_count;
	const char *spool; /* NULL: none */
	uint64_t spool_max;
	uint64_t memory_max; /* limit in bytes for requests of all endpoints; 0: not given */
	uint64_t drain_ms;   /* how long to deliver waiting requests at the end; 0: not given */
};

/* A part of main (exits.h). With --check it logs all errors, sets
 * `refused`, and goes on if it can. */
int options_parse(int argc, char **argv, struct options *o);

#endif
