/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-send/transfer/credentials.h"

#include <errno.h>
#include <string.h>

static int refuse(struct credentials_error *ret, const char *path, unsigned line, const char *text)
{
	*ret = (struct credentials_error){ .path = path, .line = line, .text = text };
	return CREDENTIALS_REFUSED;
}

static const char *reason(int r)
{
	switch (r) {
	case -ENOENT:
		return "does not exist; name another file";
	case -EACCES:
	case -EPERM:
		return "cannot be read; give it to the user that runs prof-send";
	case -EFBIG:
		return "is too large; name another file";
	case -EAGAIN:
		return "changes all the time; replace it by another file at once";
	case -ENOMEM:
		return "does not fit into memory; raise --memory";
	default:
		return lender_error(r);
	}
}

/* Parses the headers of the variable and the file. After an error the old headers stay. */
static int parse_headers(struct credentials *c, struct credentials_error *ret)
{
	struct headers h = { .n = 0 };
	const char *path = "OTEL_EXPORTER_OTLP_HEADERS";
	unsigned line = 0;
	int r = 0;

	if (c->list)
		r = headers_parse_list(
			&h,
			(struct span){ .data = (const uint8_t *)c->list, .len = strlen(c->list) },
			&line);
	if (!r && c->path[CREDENTIALS_HEADERS]) {
		path = c->path[CREDENTIALS_HEADERS];
		r = headers_parse_file(&h, watched_bytes(&c->file[CREDENTIALS_HEADERS]), &line);
	}
	if (r) {
		headers_done(&h);
		return refuse(ret, path, line, headers_error(r));
	}
	headers_done(&c->headers);
	c->headers = h;
	return 0;
}

int credentials_refresh(struct credentials *c, struct credentials_error *ret)
{
	int failed = 0;

	c->stale |= c->list && !c->headers.n;
	for (int i = 0; i < CREDENTIALS_FILES; i++) {
		const int r = watched_refresh(&c->file[i]);

		if (r == WATCHED_CHANGED)
			c->stale |= i == CREDENTIALS_HEADERS;
		else if (r && !failed)
			failed = refuse(ret, c->path[i], 0, reason(r));
	}
	if (!c->stale)
		return failed;
	/* Apply a new token even if another file is missing. */
	struct credentials_error e;

	if (!parse_headers(c, &e)) {
		c->stale = false;
		return failed;
	}
	if (!failed)
		*ret = e;
	return CREDENTIALS_REFUSED;
}

void credentials_done(struct credentials *c)
{
	for (int i = 0; i < CREDENTIALS_FILES; i++)
		watched_done(&c->file[i]);
	headers_done(&c->headers);
}
