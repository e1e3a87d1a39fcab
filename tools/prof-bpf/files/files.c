/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/files/files_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <utlist.h>

int files_new(const struct files_config *c, struct files **ret)
{
	struct files *f = calloc(1, sizeof(*f));

	if (!f)
		return -ENOMEM;
	f->config = *c;
	int r = vdso_new(f);
	if (r == -ENOMEM) {
		files_free(f);
		return r;
	}
	*ret = f;
	return 0;
}

void files_free(struct files *f)
{
	struct file *file, *next_f;

	if (!f)
		return;
	f->config.gone = NULL;
	reopening_done(f);
	backings_done(f);
	files_backing_put(f->vdso);
	HASH_ITER(hh, f->by_key, file, next_f)
		file_forget(f, file);
	free(f);
}

void files_tick(struct files *f, uint64_t now_ns)
{
	struct file *file, *next_file;

	backings_confirm(f, now_ns);
	if (now_ns >= f->pause_ns)
		backings_submit(f, now_ns);
	if (now_ns < f->expire_ns)
		return;
	f->expire_ns = now_ns + FILES_EXPIRE_NS;
	reopening_try_again(f, now_ns);
	slots_take_away(f, now_ns);
	if (now_ns >= f->pause_ns)
		slots_want_rows(f);
	backings_expire(f, now_ns);
	while (f->idle && now_ns > f->idle->idle_ns + HOST_IDLE_FILE_NS)
		file_forget(f, f->idle);
	DL_FOREACH_SAFE2(f->open, file, next_file, fd_next)
	{
		if (file->fd_stays)
			continue;
		if (now_ns <= file->fd_ns + HOST_FD_IDLE_NS)
			break;
		file_drop_fd(f, file);
	}
}

bool files_settled(const struct files *f)
{
	return !f->waits && !f->confirming && !f->opening && !f->reopens;
}

void files_figures(const struct files *f, struct files_figures *ret)
{
	*ret = f->figures;
}
