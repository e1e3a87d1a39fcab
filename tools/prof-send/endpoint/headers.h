/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Headers that the user adds to each request, usually a token. Their values are secrets, which no
 * message may contain. Pure.
 *
 * A header file has one `Name: value` on each line; empty lines and lines that begin with `#` are
 * skipped. OTEL_EXPORTER_OTLP_HEADERS has the form `name=value,name=value`, in which %XX stands for
 * a byte.
 */
#ifndef PROF_SEND_ENDPOINT_HEADERS_H
#define PROF_SEND_ENDPOINT_HEADERS_H

#include "common/base/bytes/buf.h"
#include "common/base/bytes/span.h"

#define HEADERS_FILE_MAX (64u << 10) /* bytes of a header file */
#define HEADERS_MOST 64

struct header {
	uint32_t at; /* offset in the text of "name: value" and a NUL; the name is in lower case */
	uint32_t name_len;
};
/* Zero-initialise. headers_done overwrites the values and frees them. */
struct headers {
	struct buf text;
	struct header one[HEADERS_MOST];
	size_t n;
};

enum headers_verdict {
	HEADERS_NO_COLON = 1, /* no "name: value", or no "name=value" */
	HEADERS_NAME = 2,     /* invalid name of a header */
	HEADERS_VALUE = 3,    /* contains bytes that no value may have */
	HEADERS_RESERVED = 4, /* a header that prof-send sets itself */
	HEADERS_MANY = 5,     /* more than HEADERS_MOST, or too long */
};
/* Adds the headers of a file, or of the variable's list. On error it adds nothing and sets
 * *ret_line to the number of the line or list element, from 1 on. Returns 0, enum headers_verdict
 * or -ENOMEM. */
int headers_parse_file(struct headers *h, struct span text, unsigned *ret_line);
int headers_parse_list(struct headers *h, struct span text, unsigned *ret_line);
void headers_done(struct headers *h);
/* The i-th header as "name: value"; borrowed. */
const char *headers_get(const struct headers *h, size_t i);
/* Replaces header values in a server's message by asterisks: the server may repeat them, also in
 * other letters, or with the bytes for which %XX stands. */
void headers_hide(const struct headers *h, char *text);
/* A "reason; remedy", for a line of a file or an element of a list. Static storage. */
const char *headers_error(int verdict);
const char *headers_list_error(int verdict);

#endif
