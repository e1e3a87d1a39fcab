/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Headers that the user adds to each request, mostly a token. Their values are secrets: no message
 * may contain one. Pure.
 *
 * A header file has one `Name: value` a line; empty lines, and lines that begin with `#`, are
 * skipped. OTEL_EXPORTER_OTLP_HEADERS has `name=value,name=value`, in which %XX is a byte.
 */
#ifndef PROF_SEND_ENDPOINT_HEADERS_H
#define PROF_SEND_ENDPOINT_HEADERS_H

#include "common/base/buf.h"
#include "common/base/span.h"

#define HEADERS_FILE_MAX (64u << 10) /* bytes of a header file */
#define HEADERS_MOST 64

struct header {
	uint32_t at; /* in the text: "name: value" and a NUL; the name in lower case */
	uint32_t name_len;
};
/* Zero-initialise; headers_done frees, and overwrites the values. */
struct headers {
	struct buf text;
	struct header one[HEADERS_MOST];
	size_t n;
};

enum headers_verdict {
	HEADERS_NO_COLON = 1, /* no "name: value", or no "name=value" */
	HEADERS_NAME = 2,     /* not a name of a header */
	HEADERS_VALUE = 3,    /* bytes that no value may have */
	HEADERS_RESERVED = 4, /* a header that prof-send sets itself */
	HEADERS_MANY = 5,     /* more than HEADERS_MOST, or too long */
};
/* Adds those of a header file, or of the list. On error nothing was added, and *ret_line is the
 * number of the line, or of the list's element, from 1 on. 0, enum headers_verdict, -ENOMEM. */
int headers_parse_file(struct headers *h, struct span text, unsigned *ret_line);
int headers_parse_list(struct headers *h, struct span text, unsigned *ret_line);
void headers_done(struct headers *h);
/* "name: value" of the i-th; borrowed. */
const char *headers_get(const struct headers *h, size_t i);
/* Replaces the values in a message of a server, which may have echoed them, by asterisks. */
void headers_hide(const struct headers *h, char *text);
/* "reason; remedy". Static storage. */
const char *headers_error(int verdict);

#endif
