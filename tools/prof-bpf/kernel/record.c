/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include "tools/prof-bpf/kernel/record.h"

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
	static const uint32_t most[SAMPLE_PIECES] = { SAMPLE_OBJECT_BYTES, SAMPLE_NAME_BYTES,
						      SAMPLE_SOURCE_BYTES, SAMPLE_LINES_BYTES };
	const struct sample_object *o = (const struct sample_object *)s;
	size_t left = sizeof(*s) + words_of(s) * sizeof(uint64_t), n = 0;
	const uint8_t *from = o->object;

	if (left < offsetof(struct sample_object, lines))
		return false;
	left -= offsetof(struct sample_object, object);
	for (unsigned i = 0; i < SAMPLE_PIECES; i++) {
		uint32_t len = o->len[i] < most[i] ? o->len[i] : most[i];

		len = len < left ? len : (uint32_t)left;
		memcpy(keep->bytes + n, from, len);
		keep->addresses[i] = o->at[i];
		keep->lengths[i] = len;
		n += len;
		from += most[i];
		left -= i + 1 < SAMPLE_PIECES ? most[i] : 0;
	}
	*ret = (struct msg_object){ .address = o->address,
				    .check = o->check,
				    .addresses = { keep->addresses, SAMPLE_PIECES },
				    .lengths = { keep->lengths, SAMPLE_PIECES },
				    .bytes = { keep->bytes, n } };
	return true;
}
