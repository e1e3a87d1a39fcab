/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-send/intake/frames.h"

#include "common/base/bytes/numbers.h"

/* Takes the 4 bytes of length, or a part of them. */
static bool take_head(struct frames *f, struct span *in)
{
	while (f->have < FRAMES_HEAD && in->len)
		(void)span_read(in, &f->head[f->have++], 1);
	return f->have == FRAMES_HEAD;
}

int frames_next(struct frames *f, struct span *in, struct span *ret)
{
	struct span part;

	for (;;) {
		if (f->have < FRAMES_HEAD) {
			if (!take_head(f, in))
				return FRAMES_MORE;
			f->left = (uint32_t)f->head[0] << 24 | (uint32_t)f->head[1] << 16 |
				  (uint32_t)f->head[2] << 8 | f->head[3];
			f->skips = f->left > f->max;
			buf_reset(&f->body);
			if (f->skips)
				return FRAMES_LARGE;
		}
		(void)span_take(in, numbers_smaller(f->left, in->len), &part);
		f->left -= (uint32_t)part.len;
		const int r = f->skips ? 0 : buf_append(&f->body, part.data, part.len);

		if (r)
			return r;
		if (f->left)
			return FRAMES_MORE;
		f->have = 0;
		if (f->skips)
			continue;
		*ret = buf_span(&f->body);
		return 0;
	}
}

bool frames_at_end(const struct frames *f)
{
	return f->have == 0;
}

void frames_done(struct frames *f)
{
	buf_done(&f->body);
}
