/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-export/session/journal.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHUNK (256u << 10)

/* Feeds bytes, and goes on after the end of a stream whose sender lost its own sender. */
static int feed(struct session *s, struct span bytes)
{
	int r = session_feed(s, bytes);

	while (!r && s->lost) {
		s->in.ended = s->lost = false;
		r = session_feed(s, (struct span){ 0 });
	}
	return r;
}

static int replay(struct journal *j, struct session *s, void (*beat)(void *ctx), void *ctx)
{
	static uint8_t chunk[CHUNK];
	int r = STREAM_AGAIN;

	while (r == STREAM_AGAIN) {
		const ssize_t n = pread(j->fd, chunk, sizeof(chunk), (off_t)j->bytes);

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

bool journal_holds(const struct journal *j)
{
	struct stat st;

	return j->fd >= 0 && !fstat(j->fd, &st) && st.st_size > 0;
}

int journal_replay(struct journal *j, struct session *s, void (*beat)(void *ctx), void *ctx)
{
	if (j->fd < 0)
		return STREAM_AGAIN;
	int r = replay(j, s, beat, ctx);

	/* A sender broke the rules, and a predecessor died before it could cut that off. */
	if (r == STREAM_MALFORMED || r == STREAM_SCHEMA) {
		model_lose(s->model, LOST_MALFORMED, 1);
		r = STREAM_AGAIN;
	}
	if (r == STREAM_AGAIN)
		journal_reopen(j, s);
	return r;
}

void journal_reopen(struct journal *j, struct session *s)
{
	/* A full journal may not contain the unread bytes. */
	if (j->fd >= 0 && !j->full) {
		j->bytes -= s->in.pending.len - s->in.taken;
		if (ftruncate(j->fd, (off_t)j->bytes) ||
		    lseek(j->fd, (off_t)j->bytes, SEEK_SET) < 0)
			j->fd = -1;
	}
	session_reopen(s);
}

static void put(struct journal *j, struct span bytes)
{
	if (j->fd < 0 || j->full)
		return;
	/* The predecessor's journal may be longer than our maximum. */
	if (j->bytes > j->max || bytes.len > j->max - j->bytes) {
		j->full = true;
		return;
	}
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

int journal_feed(struct journal *j, struct session *s, struct span bytes)
{
	int r = session_feed(s, bytes);

	/* A first hello of another version is a bad installation; a later one is an attack. */
	if (r == STREAM_SCHEMA && s->begun)
		r = STREAM_MALFORMED;
	if (r == STREAM_MALFORMED)
		model_lose(s->model, LOST_MALFORMED, 1);
	if (r == 0 || r == STREAM_AGAIN || r == STREAM_MALFORMED)
		put(j, bytes);
	return r;
}
