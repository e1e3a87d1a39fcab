/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The credentials for an endpoint, from files that may change while prof-send runs: headers with
 * tokens, trusted root certificates, and a client certificate with its key.
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
	struct headers headers; /* headers of the list and of the file */
	bool stale;		/* the headers must be parsed again */
};

/* A file or variable that could not be used, for a message. */
struct credentials_error {
	const char *path; /* path of the file, or name of the variable */
	unsigned line;	  /* line of the file; 0: the whole file */
	const char *text; /* "reason; remedy", which contains no secret */
};

enum credentials_verdict { CREDENTIALS_REFUSED = 1 };

/* Reads changed files again. Returns 0, or CREDENTIALS_REFUSED with *ret set; the last contents
 * then remain valid. */
int credentials_refresh(struct credentials *c, struct credentials_error *ret);
void credentials_done(struct credentials *c);

#endif
