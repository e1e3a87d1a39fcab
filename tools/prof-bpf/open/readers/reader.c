/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/open/readers/reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "tools/prof-bpf/open/closing.h"
#include "tools/prof-bpf/open/workers/workerpool.h"

struct reader_job {
	struct workerpool_job pub;
	reader_done *done;
	void *ctx;
	int fd;
	uint32_t pieces;
	size_t wanted; /* bytes */
	bool has_lengths;
	int error;
	struct buf bytes;
	uint64_t lengths[READER_PIECES];
	struct work work;
	uint64_t sent[]; /* addresses, then lengths */
};

static void job_free(struct reader_job *j)
{
	closing_give(j->fd);
	buf_done(&j->bytes);
	free(j);
}

static void drop(struct workerpool_job *pub)
{
	job_free((struct reader_job *)pub);
}

/* The lengths come first, then the bytes. */
static void take(struct reader_job *j, struct span bytes)
{
	const size_t head = j->pieces * sizeof(j->lengths[0]);
	uint64_t all = 0;

	if (j->has_lengths) {
		const bool fits = j->bytes.len + bytes.len <= j->wanted;

		if (!j->error)
			j->error = fits ? buf_append(&j->bytes, bytes.data, bytes.len) : -EIO;
		return;
	}
	if (bytes.len != head) {
		j->error = -EIO;
		return;
	}
	j->has_lengths = true;
	if (head)
		memcpy(j->lengths, bytes.data, head);
	for (uint32_t i = 0; i < j->pieces; i++)
		if (j->lengths[i] > j->sent[j->pieces + i] ||
		    __builtin_add_overflow(all, j->lengths[i], &all))
			j->error = -EIO;
	j->wanted = all;
}

static void part(struct workerpool_job *pub, const struct workerpool_end *e)
{
	take((struct reader_job *)pub, e->bytes);
}

static void done(struct workerpool_job *pub, const struct workerpool_end *e)
{
	struct reader_job *j = (struct reader_job *)pub;
	struct reader_result r = { .status = e->status, .pieces = j->pieces };

	if (!e->status) {
		take(j, e->bytes);
		r.status = e->answer->status ? e->answer->status : j->error;
		r.exe_mode = e->answer->exe_mode;
		r.exe_same = e->answer->exe_same;
	}
	if (!r.status && j->bytes.len != j->wanted)
		r.status = -EIO;
	if (r.status) {
		memset(j->lengths, 0, sizeof(j->lengths));
		j->bytes.len = 0;
	}
	r.bytes = j->bytes;
	r.lengths = j->lengths;
	j->done(j->ctx, &r);
	j->bytes = r.bytes;
	job_free(j);
}

int reader_submit(struct workerpool *pool, const struct reader_request *q, reader_done *on_done,
		  void *ctx)
{
	const size_t size = q->pieces * sizeof(uint64_t);
	struct reader_job *j;

	if (q->pieces > READER_PIECES || (q->fd < 0) != (q->pid != 0))
		return -EINVAL;
	j = calloc(1, sizeof(*j) + 2 * size);
	if (!j)
		return -ENOMEM;
	j->done = on_done;
	j->ctx = ctx;
	j->fd = q->fd;
	j->pieces = q->pieces;
	j->work = (struct work){ .kind = WORK_READ, .pid = q->pid, .pieces = q->pieces };
	if (size) {
		memcpy(j->sent, q->addresses, size);
		memcpy(j->sent + q->pieces, q->lengths, size);
	}
	j->pub = (struct workerpool_job){ .lane = q->pid ? WORKERPOOL_MEMORY : WORKERPOOL_SAFE,
					  .sampled = true,
					  .owner = q->payer,
					  .pid = q->pid,
					  .deadline_ns = READER_DEADLINE_NS,
					  .message = &j->work,
					  .size = sizeof(j->work) + 2 * size,
					  .fd = q->fd,
					  .part = part,
					  .done = done,
					  .drop = drop };
	const int r = workerpool_submit(pool, &j->pub);

	if (r) {
		j->fd = -1;
		job_free(j);
	}
	return r;
}
