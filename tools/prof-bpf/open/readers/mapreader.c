/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/open/readers/mapreader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/system/procfs.h"
#include "tools/prof-bpf/open/workers/workerpool.h"

struct mapreader_job {
	struct workerpool_job pub;
	struct mapreader_request q;
	struct work work;
	uint32_t mappings;
	bool malformed;
};

/* Takes whole mappings. Bytes of another form end the job. */
static void take(struct mapreader_job *j, struct span bytes)
{
	struct work_mapping m;

	while (bytes.len && !j->malformed) {
		struct span head, name;

		j->malformed = j->mappings == j->q.most || !span_take(&bytes, sizeof(m), &head);
		if (j->malformed)
			return;
		memcpy(&m, head.data, sizeof(m));
		j->malformed = !span_take(&bytes, m.name_len, &name);
		if (j->malformed)
			return;
		j->mappings++;
		j->q.mapping(j->q.ctx,
			     &(struct procfs_mapping){
				     .start = m.start,
				     .end = m.end,
				     .offset = m.offset,
				     .dev_major = m.dev_major,
				     .dev_minor = m.dev_minor,
				     .inode = m.inode,
				     .kind = (enum procfs_name)m.kind,
				     .name = { .data = (const char *)name.data, .len = name.len },
				     .deleted = m.deleted,
			     });
	}
}

static void part(struct workerpool_job *pub, const struct workerpool_end *e)
{
	take((struct mapreader_job *)pub, e->bytes);
}

static void done(struct workerpool_job *pub, const struct workerpool_end *e)
{
	struct mapreader_job *j = (struct mapreader_job *)pub;
	int status = e->status;
	uint64_t cpu_ns = 0;

	if (!status) {
		take(j, e->bytes);
		status = e->answer->status ? e->answer->status : j->malformed ? -EIO : 0;
		cpu_ns = e->answer->cpu_ns;
	}
	j->q.done(j->q.ctx, status, cpu_ns);
	free(j);
}

static void drop(struct workerpool_job *pub)
{
	struct mapreader_job *j = (struct mapreader_job *)pub;

	j->q.drop(j->q.ctx);
	free(j);
}

int mapreader_submit(struct workerpool *pool, const struct mapreader_request *q)
{
	struct mapreader_job *j = calloc(1, sizeof(*j));

	if (!j)
		return -ENOMEM;
	j->q = *q;
	j->work = (struct work){ .kind = WORK_MAPS, .pid = q->pid, .mappings = q->most };
	j->pub = (struct workerpool_job){ .lane = WORKERPOOL_MEMORY,
					  .sampled = q->sampled,
					  .owner = q->payer,
					  .pid = q->pid,
					  .deadline_ns = MAPREADER_DEADLINE_NS,
					  .message = &j->work,
					  .size = sizeof(j->work),
					  .fd = -1,
					  .part = part,
					  .done = done,
					  .drop = drop };
	const int r = workerpool_submit(pool, &j->pub);

	if (r)
		free(j);
	return r;
}
