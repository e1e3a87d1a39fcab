/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/kernel/record.h"

#include <string.h>
#include "common/base/text/utf8.h"

static size_t words_of(const struct sample *s)
{
	return (size_t)sample_head(s) + s->user_frames;
}

const struct sample *record_sample(const void *data, size_t size)
{
	const struct sample *s = data;

	return size < sizeof(*s) || (size - sizeof(*s)) / sizeof(uint64_t) < words_of(s) ? NULL : s;
}

const struct deferred_sample *record_deferred(const void *data, size_t size)
{
	const struct deferred_sample *d = data;

	if (size < DEFERRED_SMALL_BYTES || d->sample.kernel_frames > SAMPLE_MAX_KERNEL ||
	    (size < sizeof(*d) && d->deferred.chunks > DEFERRED_SMALL_CHUNKS))
		return NULL;
	return d;
}

bool record_object(const struct sample *s, struct record_object *keep, struct msg_object *ret)
{
	const struct sample_object *o = (const struct sample_object *)s;
	size_t left = sizeof(*s) + words_of(s) * sizeof(uint64_t), n = 0;

	if (left < offsetof(struct sample_object, bytes))
		return false;
	left -= offsetof(struct sample_object, bytes);
	if (left > SAMPLE_OBJECT_BYTES)
		left = SAMPLE_OBJECT_BYTES;
	uint32_t pieces = o->pieces < SAMPLE_PIECES ? o->pieces : SAMPLE_PIECES;

	for (unsigned i = 0; i < pieces; i++) {
		size_t from = o->offset[i] < left ? o->offset[i] : left, len = o->len[i];

		if (len > left - from)
			len = left - from;
		if (len > sizeof(keep->bytes) - n)
			len = sizeof(keep->bytes) - n;
		memcpy(keep->bytes + n, o->bytes + from, len);
		keep->addresses[i] = o->at[i];
		keep->lengths[i] = len;
		n += len;
	}
	*ret = (struct msg_object){ .address = o->address,
				    .check = o->check,
				    .addresses = { keep->addresses, pieces },
				    .lengths = { keep->lengths, pieces },
				    .bytes = { keep->bytes, n } };
	return true;
}

/* Appends a character in UTF-8. Returns false if it does not fit. */
static bool append(struct record_title *t, uint32_t c)
{
	char s[4];
	const size_t n = utf8_encode(c, s);

	if (t->len + n > sizeof(t->text))
		return false;
	memcpy(t->text + t->len, s, n);
	t->len += (uint8_t)n;
	return true;
}

/* Takes the next character, which may consist of two halves (a surrogate pair). */
static uint32_t take_wide(const uint8_t *text, uint32_t bytes, uint32_t *at)
{
	uint16_t half[2] = { 0 };
	const uint32_t left = bytes - *at < 4 ? 2 : 4;

	memcpy(half, text + *at, left);
	*at += 2;
	if (half[0] < 0xd800 || half[0] >= 0xe000)
		return half[0];
	if (half[0] >= 0xdc00 || half[1] < 0xdc00 || half[1] >= 0xe000)
		return UTF8_REPLACEMENT;
	*at += 2;
	return 0x10000 + ((half[0] & 0x3ffu) << 10 | (half[1] & 0x3ffu));
}

bool record_title(const struct sample *s, struct record_title *ret)
{
	const struct sample_thread *t = (const struct sample_thread *)s;

	if (sizeof(*s) + words_of(s) * sizeof(uint64_t) < sizeof(*t))
		return false;
	const uint32_t bytes = t->bytes < SAMPLE_THREAD_BYTES ? t->bytes : SAMPLE_THREAD_BYTES;

	ret->len = 0;
	ret->is_virtual = t->flags & SAMPLE_THREAD_VIRTUAL;
	for (uint32_t at = 0; at < bytes;) {
		uint32_t c;

		if (!(t->flags & SAMPLE_THREAD_UTF16))
			c = t->text[at++];
		else if (bytes - at >= 2)
			c = take_wide(t->text, bytes, &at);
		else
			break;
		if (!append(ret, c))
			break;
	}
	return true;
}
