/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The credentials for an endpoint, out of files that may change while prof-send runs: headers with
 * tokens, roots that it trusts, and a client's certificate with its key.
 */
#ifndef PROF_SEND_TRANSFER_CREDENTIALS_H
#define PROF_SEND_TRANSFER_CREDENTIALS_H

#include "tools/prof-send/endpoint/headers.h"
#include "tools/prof-send/files/watched.h"

enum credentials_file {
	CREDENTIALS_HEADERS,
	CREDENTIALS_ROOTS,
	CREDENTIALS_CERTIFICATE,
	CREDENTIALS_KEY,
	CREDENTIALS_FILES
};

struct credentials {
	const char *path[CREDENTIALS_FILES]; /* borrowed; NULL: none */
	struct watched file[CREDENTIALS_FILES];
	const char *list;	/* OTEL_EXPORTER_OTLP_HEADERS, borrowed; NULL: none */
	struct headers headers; /* of the list and of the file */
	bool stale;		/* these have to be read again */
};

/* A file or variable that could not be used, for a message. */
struct credentials_error {
	const char *path; /* or the name of a variable */
	unsigned line;	  /* of it; 0: the whole file */
	const char *text; /* "reason; remedy", without any secret */
};

enum credentials_verdict { CREDENTIALS_REFUSED = 1 };

/* Reads again what has changed. 0; CREDENTIALS_REFUSED, with *ret filled in: the last contents
 * still hold. */
int credentials_refresh(struct credentials *c, struct credentials_error *ret);
void credentials_done(struct credentials *c);

#endif
