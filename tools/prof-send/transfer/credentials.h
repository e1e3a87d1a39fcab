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
	/* The options or variables that named the files, for messages; NULL: nobody did. */
	const char *option[CREDENTIALS_FILES];
	struct watched file[CREDENTIALS_FILES];
	const char *list;	/* OTEL_EXPORTER_OTLP_HEADERS, borrowed; NULL: none */
	struct headers headers; /* headers of the list and of the file */
	bool stale;		/* the headers must be parsed again */
	bool parsed;		/* the headers were parsed at least once */
};

/* A file or variable that could not be used, for a message. */
struct credentials_error {
	const char *option; /* the option that named the file; NULL: none */
	const char *path;   /* path of the file, or name of the variable */
	unsigned line;	    /* line of the file, or element of the variable; 0: the whole of it */
	const char *text;   /* "reason; remedy", which contains no secret */
};
struct credentials_errors {
	struct credentials_error list[CREDENTIALS_FILES + 1];
	size_t n;
};

enum credentials_verdict { CREDENTIALS_REFUSED = 1 };

/* Sets what each file must contain. Call it when all paths are set. */
void credentials_begin(struct credentials *c);
/* Reads changed files again. Returns 0, or CREDENTIALS_REFUSED with the errors in *ret; the last
 * contents then remain valid, if there are any. */
int credentials_refresh(struct credentials *c, struct credentials_errors *ret);
/* Adds an error if there are a certificate and a key that do not belong together. */
void credentials_check_pair(const struct credentials *c, struct credentials_errors *ret);
/* Whether there are contents of all files. */
bool credentials_are_usable(const struct credentials *c);
/* Appends "option: path: line N: reason; remedy". Errors of buf_append. */
int credentials_print(struct buf *b, const struct credentials_error *e);
void credentials_done(struct credentials *c);

#endif
