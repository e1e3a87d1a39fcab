/* SPDX-License-Identifier: Apache-2.0 */
/* Source: RFC 9110, sections 5.1, 5.5 and 5.6.2. */
#include "tools/prof-send/endpoint/headers.h"

#include <errno.h>
#include <string.h>
#include <strings.h>
#include "common/base/bytes/str.h"
#include "common/base/text/percent.h"

#define HIDDEN_LEAST 4	/* bytes; a shorter value is not hidden, since any message may contain it */
#define DECODED_MAX 512 /* bytes; messages are shorter */

static bool is_name_byte(uint8_t c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c && strchr("!#$%&'*+-.^_`|~", c));
}

static bool is_blank(uint8_t c)
{
	return c == ' ' || c == '\t';
}

static struct span trimmed(struct span s)
{
	while (s.len && is_blank(s.data[0])) {
		s.data++;
		s.len--;
	}
	while (s.len && (is_blank(s.data[s.len - 1]) || s.data[s.len - 1] == '\r'))
		s.len--;
	return s;
}

static bool is_reserved(struct span name)
{
	static const char *const names[] = {
		"connection", "content-encoding", "content-length",   "content-type",	   "expect",
		"host",	      "keep-alive",	  "proxy-connection", "transfer-encoding", "te",
		"upgrade",
	};
	const struct str s = { .data = (const char *)name.data, .len = (uint32_t)name.len };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (str_eq(s, str_from(names[i])))
			return true;
	return str_starts(s, "grpc-");
}

static int append_name(struct buf *b, struct span name)
{
	const size_t at = b->len;
	const int r = buf_append(b, name.data, name.len);

	for (size_t i = at; !r && i < b->len; i++)
		if (b->data[i] >= 'A' && b->data[i] <= 'Z')
			b->data[i] = (uint8_t)(b->data[i] - 'A' + 'a');
	return r;
}

/* decoded: %XX stands for a byte. */
static int append_value(struct buf *b, struct span value, bool decoded)
{
	const char *text = (const char *)value.data;

	for (size_t i = 0; i < value.len;) {
		const uint8_t c = decoded ? (uint8_t)percent_next(text, value.len, &i)
					  : value.data[i++];

		if ((c < ' ' && c != '\t') || c == 0x7f)
			return HEADERS_VALUE;
		const int r = buf_append(b, &c, 1);

		if (r)
			return r;
	}
	return 0;
}

static int add(struct headers *h, struct span line, uint8_t separator, bool decoded)
{
	const uint8_t *split = line.len ? memchr(line.data, separator, line.len) : NULL;

	if (!split)
		return HEADERS_NO_COLON;
	const size_t at = h->text.len;
	const struct span name =
		trimmed((struct span){ .data = line.data, .len = (size_t)(split - line.data) });
	const struct span value = trimmed((struct span){
		.data = split + 1, .len = line.len - (size_t)(split + 1 - line.data) });

	if (!name.len)
		return HEADERS_NAME;
	for (size_t i = 0; i < name.len; i++)
		if (!is_name_byte(name.data[i]))
			return HEADERS_NAME;
	if (h->n == HEADERS_MOST)
		return HEADERS_MANY;
	int r = append_name(&h->text, name);

	if (!r && is_reserved((struct span){ .data = h->text.data + at, .len = name.len }))
		return HEADERS_RESERVED;
	if (!r)
		r = buf_append(&h->text, ": ", 2);
	if (!r)
		r = append_value(&h->text, value, decoded);
	if (!r)
		r = buf_append(&h->text, "", 1);
	if (r)
		return r == -ENOBUFS ? HEADERS_MANY : r;
	h->one[h->n++] = (struct header){ .at = (uint32_t)at, .name_len = (uint32_t)name.len };
	return 0;
}

static int parse(struct headers *h, struct span text, uint8_t end, uint8_t separator,
		 unsigned *ret_line)
{
	const size_t n = h->n, len = h->text.len;
	const bool list = end == ',';
	unsigned line = 0;
	int r = text.len > HEADERS_FILE_MAX ? HEADERS_MANY : 0;

	h->text.max = 2 * HEADERS_FILE_MAX;
	while (!r && text.len) {
		const uint8_t *stop = memchr(text.data, end, text.len);
		struct span one;

		line++;
		(void)span_take(&text, stop ? (size_t)(stop - text.data) : text.len, &one);
		if (stop)
			(void)span_take(&text, 1, &(struct span){ 0 });
		one = trimmed(one);
		if (one.len && (list || one.data[0] != '#'))
			r = add(h, one, separator, list);
	}
	if (r) {
		h->n = n;
		h->text.len = len;
		*ret_line = line;
	}
	return r;
}

int headers_parse_file(struct headers *h, struct span text, unsigned *ret_line)
{
	return parse(h, text, '\n', ':', ret_line);
}

int headers_parse_list(struct headers *h, struct span text, unsigned *ret_line)
{
	return parse(h, text, ',', '=', ret_line);
}

void headers_done(struct headers *h)
{
	if (h->text.data)
		explicit_bzero(h->text.data, h->text.cap);
	buf_done(&h->text);
	h->n = 0;
}

const char *headers_get(const struct headers *h, size_t i)
{
	return (const char *)h->text.data + h->one[i].at;
}

/* Hides a value in the text, and its beginning at the end of the text, which may have been cut off
 * inside the value. */
static void hide(const char *value, size_t len, char *text)
{
	const size_t n = strlen(text);

	if (len < HIDDEN_LEAST)
		return;
	for (size_t i = 0; i + len <= n; i++)
		if (strncasecmp(text + i, value, len) == 0)
			memset(text + i, '*', len);
	for (size_t k = len < n ? len : n; k >= HIDDEN_LEAST; k--)
		if (strncasecmp(text + n - k, value, k) == 0) {
			memset(text + n - k, '*', k);
			return;
		}
}

/* The same for the bytes that a value stands for, if it contains %XX. */
static void hide_decoded(const char *value, size_t len, char *text)
{
	char decoded[DECODED_MAX];
	size_t n = 0;

	if (!memchr(value, '%', len))
		return;
	for (size_t i = 0; i < len && n < sizeof(decoded);)
		decoded[n++] = percent_next(value, len, &i);
	hide(decoded, n, text);
	explicit_bzero(decoded, sizeof(decoded));
}

void headers_hide(const struct headers *h, char *text)
{
	for (size_t i = 0; i < h->n; i++) {
		const char *value = headers_get(h, i) + h->one[i].name_len + 2;
		/* A server may repeat "Bearer TOKEN", or only the token. */
		const char *word = strrchr(value, ' ');
		const char *const parts[] = { value, word ? word + 1 : value };

		for (size_t k = 0; k < 2; k++) {
			hide(parts[k], strlen(parts[k]), text);
			hide_decoded(parts[k], strlen(parts[k]), text);
		}
	}
}

const char *headers_list_error(int verdict)
{
	switch (verdict) {
	case HEADERS_NO_COLON:
		return "is not a header; write name=value,name=value";
	case HEADERS_NAME:
		return "has no valid name; write name=value,name=value";
	default:
		return headers_error(verdict);
	}
}

const char *headers_error(int verdict)
{
	switch (verdict) {
	case HEADERS_NO_COLON:
		return "is not a header; write one `Name: value` a line";
	case HEADERS_NAME:
		return "has no valid name; write one `Name: value` a line";
	case HEADERS_VALUE:
		return "has control characters in its value; write it as plain text";
	case HEADERS_RESERVED:
		return "is a header that prof-send sets itself; remove it";
	case HEADERS_MANY:
		return "exceeds the limit of 64 headers or 64 KiB; remove some";
	default:
		return "cannot be kept: out of memory; raise --memory";
	}
}
