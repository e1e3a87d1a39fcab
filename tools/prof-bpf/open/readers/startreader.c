/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/open/readers/startreader.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "tools/prof-bpf/open/workers/workerpool.h"

struct startreader_job {
	struct workerpool_job pub;
	struct startreader_request q;
	struct work work;
	char names[SAMPLING_ENV_MAX * (SAMPLING_ENV_NAME_MAX + 1)];
};

static void done(struct workerpool_job *pub, const struct workerpool_end *e)
{
	struct startreader_job *j = (struct startreader_job *)pub;
	struct startreader_result r = { .status = e->status };

	if (!e->status) {
		r.status = e->answer->status;
		r.values = e->bytes;
		r.exe_mode = e->answer->exe_mode;
		r.exe_same = e->answer->exe_same;
	}
	j->q.done(j->q.ctx, &r);
	free(j);
}

static void drop(struct workerpool_job *pub)
{
	struct startreader_job *j = (struct startreader_job *)pub;

	j->q.drop(j->q.ctx);
	free(j);
}

int startreader_submit(struct workerpool *pool, const struct startreader_request *q)
{
	struct startreader_job *j = calloc(1, sizeof(*j));
	size_t size = 0;

	if (!j)
		return -ENOMEM;
	j->q = *q;
	j->work = (struct work){ .kind = WORK_ENVIRONMENT,
				 .pid = q->pid,
				 .names = q->wanted.count,
				 .command_line = q->wanted.command_line };
	for (unsigned i = 0; i < q->wanted.count; i++) {
		const size_t n = strlen(q->wanted.names[i]) + 1;

		if (n > sizeof(j->names) - size) {
			free(j);
			return -EINVAL;
		}
		memcpy(j->names + size, q->wanted.names[i], n);
		size += n;
	}
	static_assert(offsetof(struct startreader_job, names) ==
			      offsetof(struct startreader_job, work) + sizeof(struct work),
		      "the names follow the work in its message");
	j->pub = (struct workerpool_job){ .lane = WORKERPOOL_MEMORY,
					  .sampled = true,
					  .owner = q->payer,
					  .pid = q->pid,
					  .deadline_ns = STARTREADER_DEADLINE_NS,
					  .message = &j->work,
					  .size = sizeof(j->work) + size,
					  .fd = -1,
					  .done = done,
					  .drop = drop };
	const int r = workerpool_submit(pool, &j->pub);

	if (r)
		free(j);
	return r;
}
