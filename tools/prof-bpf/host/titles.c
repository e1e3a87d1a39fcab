/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/host/titles.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#define REPLACEMENT 0xfffdu /* for half of a pair of UTF-16 */

/* Appends a character in UTF-8. False: it does not fit. */
static bool append(struct title *t, uint32_t c)
{
	char s[4];
	size_t n = 0;

	if (c < 0x80) {
		s[n++] = (char)c;
	} else if (c < 0x800) {
		s[n++] = (char)(0xc0 | c >> 6);
	} else if (c < 0x10000) {
		s[n++] = (char)(0xe0 | c >> 12);
		s[n++] = (char)(0x80 | (c >> 6 & 63));
	} else {
		s[n++] = (char)(0xf0 | c >> 18);
		s[n++] = (char)(0x80 | (c >> 12 & 63));
		s[n++] = (char)(0x80 | (c >> 6 & 63));
	}
	if (c >= 0x80)
		s[n++] = (char)(0x80 | (c & 63));
	if (t->len + n > sizeof(t->text))
		return false;
	memcpy(t->text + t->len, s, n);
	t->len += (uint8_t)n;
	return true;
}

/* The next character, of two halves if it is a pair. */
static uint32_t take_wide(const uint8_t *text, uint32_t bytes, uint32_t *at)
{
	uint16_t half[2] = { 0 };
	const uint32_t left = bytes - *at < 4 ? 2 : 4;

	memcpy(half, text + *at, left);
	*at += 2;
	if (half[0] < 0xd800 || half[0] >= 0xe000)
		return half[0];
	if (half[0] >= 0xdc00 || half[1] < 0xdc00 || half[1] >= 0xe000)
		return REPLACEMENT;
	*at += 2;
	return 0x10000 + ((half[0] & 0x3ffu) << 10 | (half[1] & 0x3ffu));
}

void titles_take(struct thread *t, const struct sample_thread *s)
{
	const uint32_t bytes = s->bytes < SAMPLE_THREAD_BYTES ? s->bytes : SAMPLE_THREAD_BYTES;

	if (!t->title)
		t->title = malloc(sizeof(*t->title));
	if (!t->title)
		return;
	t->title->len = 0;
	t->title->is_virtual = s->flags & SAMPLE_THREAD_VIRTUAL;
	for (uint32_t at = 0; at < bytes;) {
		uint32_t c;

		if (!(s->flags & SAMPLE_THREAD_UTF16))
			c = s->text[at++];
		else if (bytes - at >= 2)
			c = take_wide(s->text, bytes, &at);
		else
			break;
		if (!append(t->title, c))
			break;
	}
}

static struct thread *find(struct thread *t, const struct title *title)
{
	for (struct thread *i = t->titled; i; i = i->more)
		if (i->pub.title_len == title->len &&
		    memcmp(i->pub.title, title->text, title->len) == 0)
			return i;
	return NULL;
}

struct thread *titles_of(struct host *h, struct thread *t, const struct sample *s)
{
	struct process *p = (struct process *)t->pub.process;
	const struct title *title = t->title;

	if (!title || !title->len || (title->is_virtual && !(s->flags & SAMPLE_TITLED)))
		return t;
	struct thread *ret = find(t, title);

	if (ret) {
		thread_touch(h, ret, s->time_ns);
		return ret;
	}
	if (h->thread_count >= HOST_MAX_THREADS || !process_may_rename(p, s->time_ns))
		return t;
	ret = calloc(1, sizeof(*ret));
	if (!ret)
		return t;
	ret->pub = t->pub;
	ret->pub.id = ++h->next_thread;
	ret->pub.sent = 0;
	ret->pub.title = malloc(title->len);
	if (!ret->pub.title) {
		free(ret);
		return t;
	}
	memcpy(ret->pub.title, title->text, title->len);
	ret->pub.title_len = title->len;
	ret->last_ns = s->time_ns;
	ret->of = t;
	ret->more = t->titled;
	t->titled = ret;
	DL_APPEND(h->thread_lru, ret);
	DL_APPEND2(p->thread_list, ret, of_prev, of_next);
	h->thread_count++;
	return ret;
}
