/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-export/journal.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define CHUNK (256u << 10)

/* Feeds bytes past the ends of streams whose senders lost their own. */
static int feed(struct session *s, struct span bytes)
{
	int r = session_feed(s, bytes);

	while (!r && s->lost) {
		s->in.ended = s->lost = false;
		r = session_feed(s, (struct span){ 0 });
	}
	return r;
}

static int replay(struct journal *j, struct session *s, uint8_t *chunk, void (*beat)(void *ctx),
		  void *ctx)
{
	int r = STREAM_AGAIN;

	while (r == STREAM_AGAIN) {
		const ssize_t n = pread(j->fd, chunk, CHUNK, (off_t)j->bytes);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			break;
		r = feed(s, (struct span){ .data = chunk, .len = (size_t)n });
		j->bytes += (uint64_t)n;
		beat(ctx);
	}
	return r;
}

int journal_replay(struct journal *j, struct session *s, void (*beat)(void *ctx), void *ctx)
{
	uint8_t *chunk = j->fd >= 0 ? malloc(CHUNK) : NULL;

	if (j->fd < 0)
		return STREAM_AGAIN;
	if (!chunk)
		return -ENOMEM;
	const int r = replay(j, s, chunk, beat, ctx);

	free(chunk);
	/* The part of a message that was written last. */
	j->bytes -= s->in.pending.len - s->in.taken;
	if (lseek(j->fd, (off_t)j->bytes, SEEK_SET) < 0)
		return -errno;
	if (r == STREAM_AGAIN)
		session_reopen(s);
	return r;
}

void journal_put(struct journal *j, struct span bytes)
{
	/* One that was handed over may be longer than this one may become. */
	if (j->fd < 0 || j->bytes > j->max || bytes.len > j->max - j->bytes)
		return;
	for (size_t done = 0; done < bytes.len;) {
		const ssize_t n = write(j->fd, bytes.data + done, bytes.len - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			(void)!ftruncate(j->fd, 0);
			j->fd = -1;
			return;
		}
		done += (size_t)n;
	}
	j->bytes += bytes.len;
}
