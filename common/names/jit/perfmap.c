/* SPDX-License-Identifier: Apache-2.0 */
#include "common/names/jit/perfmap.h"

#include <errno.h>
#include "common/base/bytes/numbers.h"
#include "common/base/text/hex.h"

void perfmap_init(struct perfmap *p, size_t max)
{
	*p = (struct perfmap){ 0 };
	codemap_init(&p->code, max);
}

void perfmap_done(struct perfmap *p)
{
	codemap_done(&p->code);
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* Takes a number of 1 to 16 hex digits, with or without 0x, and the blanks after it. */
static bool take_hex(struct str *s, uint64_t *ret)
{
	uint64_t v = 0;
	unsigned digits = 0;

	if (s->len > 2 && s->data[0] == '0' && (s->data[1] | 0x20) == 'x') {
		s->data += 2;
		s->len -= 2;
	}
	while (s->len && hex_digit(s->data[0]) >= 0) {
		if (v >> 60)
			return false;
		v = v << 4 | (unsigned)hex_digit(s->data[0]);
		digits++;
		s->data++;
		s->len--;
	}
	if (!digits || !s->len || !is_blank(s->data[0]))
		return false;
	while (s->len && is_blank(s->data[0])) {
		s->data++;
		s->len--;
	}
	*ret = v;
	return true;
}

/* Takes a line. Returns 0 also for a bad line. */
static int take_line(struct perfmap *p, struct str s)
{
	uint64_t start, size;
	const char *nul;

	while (s.len && (is_blank(s.data[s.len - 1]) || s.data[s.len - 1] == '\r'))
		s.len--;
	if (!s.len)
		return 0;
	if (!take_hex(&s, &start) || !take_hex(&s, &size)) {
		p->bad_lines++;
		return 0;
	}
	nul = s.len ? memchr(s.data, 0, s.len) : NULL;
	if (nul)
		s.len = (uint32_t)(nul - s.data);
	int r = s.len ? codemap_add(&p->code, start, size, 0, s, 0) : CODEMAP_IMPOSSIBLE;

	if (r == CODEMAP_IMPOSSIBLE)
		p->bad_lines++;
	if (r == CODEMAP_FULL)
		p->full = true;
	return r == CODEMAP_IMPOSSIBLE ? 0 : r;
}

int perfmap_feed(struct perfmap *p, struct span bytes)
{
	int r = p->full ? CODEMAP_FULL : 0;

	while (r == 0 && bytes.len) {
		const uint8_t *nl = memchr(bytes.data, '\n', bytes.len);
		size_t n = nl ? (size_t)(nl - bytes.data) : bytes.len;
		size_t keep = numbers_smaller(sizeof(p->line) - p->len, n);

		memcpy(p->line + p->len, bytes.data, keep);
		p->len += keep;
		if (nl) {
			r = take_line(p, (struct str){ .data = p->line, .len = (uint32_t)p->len });
			p->len = 0;
			n++;
		}
		bytes.data += n;
		bytes.len -= n;
	}
	return r;
}

int perfmap_flush(struct perfmap *p)
{
	uint64_t bad = p->bad_lines;
	int r = p->full	 ? CODEMAP_FULL
		: p->len ? take_line(p, (struct str){ .data = p->line, .len = (uint32_t)p->len })
			 : 0;

	/* Do not count half a line as bad: the complete line may be good. */
	p->bad_lines = bad;
	return r;
}
