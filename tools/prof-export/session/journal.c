/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-export/session/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/base/files/fd.h"

#define CHUNK (256u << 10)
#define ROLL_PART 4 /* of the maximum size; one epoch of prof-symd fits into the rest */

/* A journal that has rolled begins with this; other journals begin with the first message. */
static const char magic[8] = "pfjrnl\0\1"; /* the last byte is the version */

struct journal_head {
	char magic[8];
	uint64_t build; /* build id of the tools, because marks are raw structs */
	uint64_t mark;	/* which of the two marks is valid: 0 or 1 */
	uint64_t begin; /* offset of the stream in the file */
};
/* There are two marks, so that one is complete at any moment. */
#define MARK_AT(i) (sizeof(struct journal_head) + (i) * sizeof(struct session_mark))
#define STREAM_AT MARK_AT(2)

/* Feeds bytes. If a sender lost its own sender, its stream ends; continue with the next one. */
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

/* Reads n bytes at an offset. Returns 0, -ENODATA if the file is shorter, or -errno. */
static int read_at(int fd, uint64_t at, void *to, size_t n)
{
	const ssize_t got = fd_pread_all(fd, to, n, at);

	return got < 0 ? (int)got : (size_t)got < n ? -ENODATA : 0;
}

/* Makes the session continue at the mark of a journal that has rolled. */
static int resume(struct journal *j, struct session *s)
{
	static struct session_mark mark;
	struct journal_head h;
	int r = read_at(j->fd, 0, &h, sizeof(h));

	if (r == -ENODATA || (!r && memcmp(h.magic, magic, sizeof(magic)) != 0))
		return 0;
	if (!r && (h.build != msg_build() || h.mark > 1 || h.begin < STREAM_AT))
		r = -EBADMSG;
	if (!r)
		r = read_at(j->fd, MARK_AT(h.mark), &mark, sizeof(mark));
	if (r)
		return r == -ENODATA ? -EBADMSG : r;
	j->mark = (unsigned)h.mark;
	j->begin = j->bytes = h.begin;
	j->rolled = true;
	return session_resume(s, &mark);
}

int journal_replay(struct journal *j, struct session *s, void (*beat)(void *ctx), void *ctx)
{
	if (j->fd < 0)
		return STREAM_AGAIN;
	int r = resume(j, s);

	if (!r)
		r = replay(j, s, beat, ctx);

	/* A sender broke the rules, and prof-export died before it could remove those bytes from
	 * the journal. */
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
	/* A full journal may lack the unread bytes. */
	if (j->fd >= 0 && !j->full) {
		j->bytes -= s->in.pending.len - s->in.taken;
		if (ftruncate(j->fd, (off_t)j->bytes) ||
		    lseek(j->fd, (off_t)j->bytes, SEEK_SET) < 0)
			j->fd = -1;
	}
	session_reopen(s);
}

static void forget(struct journal *j)
{
	(void)!ftruncate(j->fd, 0);
	j->fd = -1;
}

static int write_at(int fd, uint64_t at, const void *from, size_t n)
{
	return lseek(fd, (off_t)at, SEEK_SET) < 0 ? -errno : fd_write_all(fd, from, n);
}

/* Completes the output with everything that came, and makes the journal begin here. */
static int roll(struct journal *j, struct session *s)
{
	static struct session_mark mark;
	const unsigned free_one = j->rolled && !j->mark;
	struct journal_head h = { .build = msg_build(), .mark = free_one };
	int r = session_settle(s, &mark);

	if (r)
		return r;
	memcpy(h.magic, magic, sizeof(magic));
	h.begin = j->bytes < STREAM_AT ? STREAM_AT : j->bytes;
	/* Only the head makes the mark valid. A failed write may have left a part of a head. */
	if (ftruncate(j->fd, (off_t)h.begin) ||
	    write_at(j->fd, MARK_AT(free_one), &mark, sizeof(mark)) ||
	    write_at(j->fd, 0, &h, sizeof(h)) || lseek(j->fd, (off_t)h.begin, SEEK_SET) < 0) {
		forget(j);
		return 0;
	}
	j->mark = free_one;
	j->begin = j->bytes = h.begin;
	j->rolled = true;
	/* If the file system cannot free space in a file, keep only marks. */
	j->full = h.begin > STREAM_AT &&
		  fallocate(j->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)STREAM_AT,
			    (off_t)(h.begin - STREAM_AT));
	return 0;
}

/* Called if nothing more fits. If the output is written while the stream comes, the mark is
 * kept. */
static int fill(struct journal *j, struct session *s)
{
	int r = 0;

	if (session_may_settle(s))
		r = roll(j, s);
	else if (!j->full)
		forget(j);
	j->full = true;
	return r;
}

/* Appends bytes. Returns false if they did not fit. */
static bool append(struct journal *j, struct span bytes)
{
	const uint64_t used = j->bytes - j->begin;

	/* The journal of an earlier prof-export may be longer than our maximum. */
	if (used > j->max || bytes.len > j->max - used) {
		j->full = true;
		return false;
	}
	if (fd_write_all(j->fd, bytes.data, bytes.len))
		return false;
	j->bytes += bytes.len;
	return true;
}

static int put(struct journal *j, struct session *s, struct span bytes)
{
	return j->fd < 0 || j->full || append(j, bytes) ? 0 : fill(j, s);
}

static bool is_time_to_roll(const struct journal *j, const struct session *s, struct span bytes)
{
	return j->fd >= 0 && session_may_settle(s) &&
	       (j->full || j->bytes - j->begin > j->max / ROLL_PART) &&
	       stream_begins_epoch(&s->in, bytes);
}

static int put_batch(void *ctx, struct span batch)
{
	return append(ctx, batch) ? 0 : -ENOSPC;
}

void journal_next(struct journal *j, int fd, const struct model *m)
{
	const struct {
		struct str name;
		uint64_t value;
	} figures[] = { { STR_LIT("began"), model_began_ns(m) },
			{ STR_LIT("sampling_since"), model_sampled_until_ns(m) } };
	const struct msg hello = model_hello(m);
	struct stream_out out;

	*j = (struct journal){ .fd = fd, .max = j->max };
	if (fd < 0)
		return;
	stream_out_init(&out, STREAM_BATCH, put_batch, j);
	int r = stream_put(&out, &hello);

	for (size_t i = 0; !r && i < sizeof(figures) / sizeof(figures[0]); i++)
		if (figures[i].value)
			r = stream_put(&out,
				       &(struct msg){ .id = MSG_FIGURE,
						      .figure = { .name = figures[i].name,
								  .value = figures[i].value } });
	if (!r)
		r = stream_flush(&out);
	stream_out_done(&out);
	/* If the hello cannot be stored, the rest could not be read. */
	if (r)
		j->fd = -1;
}

int journal_feed(struct journal *j, struct session *s, struct span bytes)
{
	const int rolled = is_time_to_roll(j, s, bytes) ? roll(j, s) : 0;

	if (rolled)
		return rolled;
	int r = session_feed(s, bytes);

	/* If the first hello has another version, the installation is wrong; a later one is an
	 * attack. */
	if (r == STREAM_SCHEMA && s->begun)
		r = STREAM_MALFORMED;
	if (r == STREAM_MALFORMED)
		model_lose(s->model, LOST_MALFORMED, 1);
	if (r != 0 && r != STREAM_AGAIN && r != STREAM_MALFORMED)
		return r;
	const int kept = put(j, s, bytes);

	return kept ? kept : r;
}
