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
