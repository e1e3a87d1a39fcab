/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-export/output/output.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/base/bytes/numbers.h"
#include "common/base/command/log.h"

#define REST_MS 100
#define RESTS_MOST 300

int output_init(struct output *o, int fd, bool gzip)
{
	o->fd = fd;
	o->error = 0;
	o->gzip = gzip;
	o->held = false;
	o->begin = -1;
	o->bytes = 0;
	o->beat = NULL;
	o->len = 0;
	o->z = (z_stream){ 0 };
	if (gzip && deflateInit2(&o->z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8,
				 Z_DEFAULT_STRATEGY) != Z_OK) {
		o->error = -ENOMEM;
		return -ENOMEM;
	}
	return 0;
}

void output_free(struct output *o)
{
	if (o->gzip)
		deflateEnd(&o->z);
	o->gzip = false;
}

void output_begin(struct output *o)
{
	struct stat st;

	/* The shell's >> opened the file for appending: keep its contents. */
	if (fstat(o->fd, &st) || !S_ISREG(st.st_mode) || fcntl(o->fd, F_GETFL) & O_APPEND)
		return;
	/* Another program may have written to it through the same redirection. */
	o->begin = lseek(o->fd, 0, SEEK_CUR);
	if ((o->begin < 0 || ftruncate(o->fd, o->begin)) && !o->error)
		o->error = -errno;
}

static void beat(struct output *o)
{
	const int r = o->beat ? o->beat(o->beat_ctx) : 0;

	if (r && !o->error)
		o->error = r;
}

/* Called after a write or a wait was interrupted, or wrote only a part. */
static void hold(struct output *o)
{
	o->held = true;
	beat(o);
}

bool output_rest(struct output *o, int r, unsigned *rests)
{
	if (r != -ENOMEM || o->error || ++*rests > RESTS_MOST)
		return false;
	(void)poll(NULL, 0, REST_MS);
	beat(o);
	return !o->error;
}

bool output_rewind(struct output *o)
{
	if (o->error)
		return false;
	if (o->bytes &&
	    (o->begin < 0 || lseek(o->fd, o->begin, SEEK_SET) < 0 || ftruncate(o->fd, o->begin)))
		return false;
	o->bytes = o->len = 0;
	return !o->gzip || deflateReset(&o->z) == Z_OK;
}

static void write_all(struct output *o, const uint8_t *data, size_t n)
{
	while (n && !o->error) {
		const ssize_t done = write(o->fd, data, n);

		if (done < 0 && errno == EAGAIN) {
			struct pollfd p = { .fd = o->fd, .events = POLLOUT };

			if (poll(&p, 1, -1) < 0)
				hold(o);
		} else if (done < 0 && errno == EINTR) {
			hold(o);
		} else if (done < 0) {
			o->error = -errno;
		} else {
			data += done;
			n -= (size_t)done;
			o->bytes += (uint64_t)done;
			if (n)
				hold(o);
		}
	}
	o->held = false;
}

static void pack(struct output *o, int flush)
{
	o->z.next_in = o->plain;
	o->z.avail_in = (uInt)o->len;
	do {
		o->z.next_out = o->packed;
		o->z.avail_out = sizeof(o->packed);
		if (deflate(&o->z, flush) == Z_STREAM_ERROR) {
			o->error = o->error ? o->error : -EINVAL;
			return;
		}
		write_all(o, o->packed, sizeof(o->packed) - o->z.avail_out);
	} while (!o->z.avail_out && !o->error);
}

/* Writes the buffered bytes. Not used for gzip, which would then compress less. */
static void flush_output(struct output *o)
{
	if (o->gzip)
		pack(o, Z_NO_FLUSH);
	else
		write_all(o, o->plain, o->len);
	o->len = 0;
}

void output_put(struct output *o, const void *data, size_t n)
{
	const uint8_t *p = data;

	while (n && !o->error) {
		const size_t room = sizeof(o->plain) - o->len, part = numbers_smaller(n, room);

		memcpy(o->plain + o->len, p, part);
		o->len += part;
		p += part;
		n -= part;
		if (o->len == sizeof(o->plain))
			flush_output(o);
	}
}

void output_printf(struct output *o, const char *fmt, ...)
{
	char text[512];
	va_list args;

	va_start(args, fmt);
	const int n = vsnprintf(text, sizeof(text), fmt, args);

	va_end(args);
	/* Only for our own numbers and words. Use output_put for names, which have any length. */
	if (n < 0 || (size_t)n >= sizeof(text))
		o->error = o->error ? o->error : -EOVERFLOW;
	else
		output_put(o, text, (size_t)n);
}

int output_flush(struct output *o)
{
	if (!o->gzip)
		flush_output(o);
	return o->error;
}

void output_resume(struct output *o, uint64_t bytes)
{
	struct stat st;

	if (o->fd < 0)
		return;
	if (fstat(o->fd, &st) || !S_ISREG(st.st_mode)) {
		o->error = o->error ? o->error : -EINVAL;
		return;
	}
	/* Another program may have truncated the file. */
	o->bytes = numbers_smaller((uint64_t)st.st_size, bytes);
	if ((ftruncate(o->fd, (off_t)o->bytes) || lseek(o->fd, (off_t)o->bytes, SEEK_SET) < 0) &&
	    !o->error)
		o->error = -errno;
}

int output_done(struct output *o)
{
	if (!o->gzip)
		flush_output(o);
	else if (!o->error)
		pack(o, Z_FINISH);
	return o->error;
}

void output_next(struct output *o, int fd)
{
	o->fd = fd;
	o->error = 0;
	o->bytes = o->len = 0;
	if (o->gzip && deflateReset(&o->z) != Z_OK)
		o->error = -EINVAL;
	output_begin(o);
}

void output_say(const char *name, int error)
{
	const char *remedy = "name another output with -o";

	if (error == -ENOSPC || error == -EDQUOT)
		remedy = "the output is incomplete: make room, or name another one with -o";
	else if (error == -EFBIG)
		remedy = "the output is incomplete: raise the limit of a file's size (ulimit -f), "
			 "or that of the file system";
	else if (error == -EPIPE)
		remedy = "its reader went away before the end";
	else if (error == -ENOMEM)
		remedy = "lower --memory-limit, or end other programs";
	log_error("%s: %s; %s", name, strerror(-error), remedy);
}
