/* SPDX-License-Identifier: Apache-2.0 */
/* What prof-symd asks for: files of the stream, their debug files, and what processes say of the
 * code that they generate. */
#include <errno.h>
#include <stdlib.h>
#include "tools/prof-bpf/prof.h"

struct wanted {
	struct prof *p;
	uint64_t ticket;
};

static void opened(void *ctx, const struct opener_result *r)
{
	struct wanted *w = ctx;
	int status = r->status < 0		   ? -r->status
		     : r->status == OPENER_TIMEOUT ? ETIMEDOUT
		     : r->status		   ? ENOENT
						   : 0;

	filesrv_answer(w->p->filesrv, w->ticket, r->fd, status, r->file.size);
	free(w);
}

static struct wanted *wanted_new(struct prof *p, uint64_t ticket)
{
	struct wanted *w = malloc(sizeof(*w));

	if (w)
		*w = (struct wanted){ .p = p, .ticket = ticket };
	return w;
}

static void refused(struct wanted *w, struct prof *p, uint64_t ticket, int r)
{
	if (!r)
		return;
	free(w);
	filesrv_answer(p->filesrv, ticket, -1, -r, 0);
}

void answers_file(void *ctx, uint64_t ticket, const struct msg_file_request *m)
{
	struct prof *p = ctx;
	struct host_file *f = m->file <= UINT32_MAX ? host_file(p->host, (uint32_t)m->file) : NULL;
	struct wanted *w = wanted_new(p, ticket);

	refused(w, p, ticket, !w ? -ENOMEM : !f ? -ENOENT : host_open(p->host, f, opened, w));
}

void answers_debug(void *ctx, uint64_t ticket, const struct msg_debug_request *m)
{
	struct prof *p = ctx;
	struct host_file *f = m->file <= UINT32_MAX ? host_file(p->host, (uint32_t)m->file) : NULL;
	struct wanted *w = wanted_new(p, ticket);

	refused(w, p, ticket,
		!w   ? -ENOMEM
		: !f ? -ENOENT
		     : host_open_debug(p->host, f, m->build_id, m->name, opened, w));
}

void answers_jit(void *ctx, uint64_t ticket, const struct msg_jit_request *m)
{
	struct prof *p = ctx;
	struct wanted *w = wanted_new(p, ticket);

	refused(w, p, ticket,
		!w ? -ENOMEM
		: m->process > UINT32_MAX || m->pid > INT32_MAX
			? -EINVAL
			: jitfiles_open(p->jitfiles, (uint32_t)m->process, (uint32_t)m->pid,
					m->kind, opened, w));
}
