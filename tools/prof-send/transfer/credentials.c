/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-send/transfer/credentials.h"

#include <errno.h>
#include <string.h>
#include "tools/prof-send/endpoint/pem.h"

static void refuse(struct credentials_errors *ret, struct credentials_error e)
{
	ret->list[ret->n++] = e;
}

static const char *reason(const struct watched *w, int r)
{
	switch (r) {
	case WATCHED_REFUSED:
		return pem_error(w->verdict);
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

void credentials_begin(struct credentials *c)
{
	/* The roots of the system are not the user's. */
	if (c->option[CREDENTIALS_ROOTS])
		c->file[CREDENTIALS_ROOTS].check = pem_check_roots;
	c->file[CREDENTIALS_CERTIFICATE].check = pem_check_certificate;
	c->file[CREDENTIALS_KEY].check = pem_check_key;
}

/* Parses the headers of the variable and the file. After an error the old headers stay. */
static void parse_headers(struct credentials *c, struct credentials_errors *ret)
{
	struct headers h = { .n = 0 };
	struct credentials_error e = { .path = "OTEL_EXPORTER_OTLP_HEADERS" };
	int r = 0;

	if (c->list)
		r = headers_parse_list(
			&h,
			(struct span){ .data = (const uint8_t *)c->list, .len = strlen(c->list) },
			&e.line);
	e.text = headers_list_error(r);
	if (!r && c->path[CREDENTIALS_HEADERS]) {
		r = headers_parse_file(&h, watched_bytes(&c->file[CREDENTIALS_HEADERS]), &e.line);
		e.path = c->path[CREDENTIALS_HEADERS];
		e.option = c->option[CREDENTIALS_HEADERS];
		e.text = headers_error(r);
	}
	if (r) {
		headers_done(&h);
		refuse(ret, e);
		return;
	}
	headers_done(&c->headers);
	c->headers = h;
	c->stale = false;
	c->parsed = true;
}

int credentials_refresh(struct credentials *c, struct credentials_errors *ret)
{
	const bool has_file = c->path[CREDENTIALS_HEADERS];

	ret->n = 0;
	c->stale |= c->list && !c->parsed;
	for (int i = 0; i < CREDENTIALS_FILES; i++) {
		const int r = watched_refresh(&c->file[i]);

		if (r == WATCHED_CHANGED)
			c->stale |= i == CREDENTIALS_HEADERS;
		else if (r)
			refuse(ret, (struct credentials_error){ .option = c->option[i],
								.path = c->path[i],
								.text = reason(&c->file[i], r) });
	}
	/* Apply a new token even if another file is missing. */
	if (c->stale && (!has_file || c->file[CREDENTIALS_HEADERS].data))
		parse_headers(c, ret);
	return ret->n ? CREDENTIALS_REFUSED : 0;
}

void credentials_check_pair(const struct credentials *c, struct credentials_errors *ret)
{
	if (c->file[CREDENTIALS_KEY].data && c->file[CREDENTIALS_CERTIFICATE].data &&
	    pem_check_pair(watched_bytes(&c->file[CREDENTIALS_CERTIFICATE]),
			   watched_bytes(&c->file[CREDENTIALS_KEY])))
		refuse(ret, (struct credentials_error){ .option = c->option[CREDENTIALS_KEY],
							.path = c->path[CREDENTIALS_KEY],
							.text = pem_error(PEM_MISMATCH) });
}

bool credentials_are_usable(const struct credentials *c)
{
	bool are = c->parsed || !(c->list || c->path[CREDENTIALS_HEADERS]);

	for (int i = 0; i < CREDENTIALS_FILES; i++)
		are &= !c->path[i] || c->file[i].data;
	return are;
}

int credentials_print(struct buf *b, const struct credentials_error *e)
{
	int r = e->option ? buf_printf(b, "%s: ", e->option) : 0;

	if (!r)
		r = buf_printf(b, "%s: ", e->path);
	/* A variable is a list and has no lines. */
	if (!r && e->line)
		r = buf_printf(b, "%s %u: ", e->option ? "line" : "header", e->line);
	return r ? r : buf_printf(b, "%s", e->text);
}

void credentials_done(struct credentials *c)
{
	for (int i = 0; i < CREDENTIALS_FILES; i++)
		watched_done(&c->file[i]);
	headers_done(&c->headers);
}
