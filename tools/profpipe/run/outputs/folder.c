/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/profpipe/run/outputs/folder.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "common/base/command/log.h"
#include "common/base/files/fd.h"
#include "common/base/system/clock.h"
#include "common/cell/deploy.h"
#include "common/wire/bus/scm.h"
#include "tools/profpipe/run/rights/user.h"

#define AGAIN_NS 10000000000u /* after a next file could not be opened, until the next attempt */

static int begin(const struct options *o, bool resumes, struct profiles *ret)
{
	struct user u;
	int r = user_become(&u);

	*ret = (struct profiles)PROFILES_NONE;
	ret->max = o->keep_files;
	ret->max_bytes = o->keep_bytes;
	if (!r)
		r = profiles_begin(ret, o->output_dir, format_ending(o->format), time(NULL),
				   resumes);
	user_return(&u);
	return r;
}

/* Returns false after an error, which is logged. */
static bool end(const struct folder *f, struct profiles *p, enum profiles_end how)
{
	struct user u;
	int r = user_become(&u);

	if (!r)
		r = profiles_end(p, how);
	user_return(&u);
	if (r)
		log_error("%s/%s: %s; make room, or give another folder", f->o->output_dir, p->name,
			  strerror(-r));
	return !r;
}

int folder_open(struct folder *f, const struct options *o)
{
	*f = FOLDER_NONE;
	const int r = begin(o, true, &f->now);

	if (r) {
		log_error("--output-dir: %s: %s", o->output_dir, profiles_error(r));
		return r;
	}
	f->o = o;
	f->since_ns = clock_mono_ns();
	/* The file began with samples of a killed run, so it is not the first file of this run. */
	f->file = f->now.resumed;
	if (f->now.resumed)
		log_warning("%s/%s: its run was killed; continuing it", o->output_dir, f->now.part);
	return 0;
}

/* Takes prof-export's reports that it has switched to the next file; ignores impossible ones. */
static void hear(struct folder *f)
{
	struct deploy_next word;

	while (scm_receive(f->socket, &word, sizeof(word), NULL, 0, 0) == sizeof(word)) {
		if (!f->waits || word.file != f->file + 1)
			continue;
		(void)end(f, &f->now, word.failed ? PROFILES_FAILED : PROFILES_WHOLE);
		f->now = f->next;
		f->next = (struct profiles)PROFILES_NONE;
		f->sum = word.sum;
		f->file++;
		f->waits = false;
		/* On a busy host, prof-export begins a file some time after it was told to. If the
		 * file's time counted from then, it could cover no time at all. */
		f->since_ns = clock_mono_ns();
	}
}

int folder_connect(struct folder *f, int *ret_fd)
{
	int pair[2];

	/* Take the last report of a prof-export that died. */
	hear(f);
	fd_close(&f->socket);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair))
		return -errno;
	f->socket = pair[0];
	*ret_fd = pair[1];
	return 0;
}

void folder_tell(struct folder *f, struct child *symd)
{
	const struct deploy_next now = { .file = f->file, .sum = f->sum },
				 next = { .file = f->file + 1 };
	const int fds[] = { f->next.fd, f->next.journal };

	(void)scm_send(f->socket, &now, sizeof(now), NULL, 0, 0);
	if (!f->waits)
		return;
	/* If this fails, prof-export has died, and its successor is told again. */
	(void)scm_send(f->socket, &next, sizeof(next), fds, f->next.journal < 0 ? 1 : 2, 0);
	/* Any new epoch will do, also that of another prof-symd. */
	child_order(symd, DEPLOY_EPOCH);
}

static void begin_next(struct folder *f, struct child *symd)
{
	const int e = begin(f->o, false, &f->next);

	if (e == -EEXIST)
		return;
	if (e && !f->tried_ns)
		log_error("%s: the next file cannot be opened: %s; continuing the present one",
			  f->o->output_dir, strerror(-e));
	f->tried_ns = e ? clock_mono_ns() : 0;
	if (e)
		return;
	f->waits = true;
	f->since_ns = clock_mono_ns();
	folder_tell(f, symd);
}

void folder_turn(struct folder *f, bool samples, const struct child *export, struct child *symd)
{
	if (!f->o)
		return;
	hear(f);

	const uint64_t now = clock_mono_ns(); /* not before a switch that was just heard of */

	if (f->waits || !samples || !export->pid ||
	    (double)(now - f->since_ns) < f->o->rotate_s * 1e9 ||
	    (f->tried_ns && now - f->tried_ns < AGAIN_NS))
		return;
	begin_next(f, symd);
}

bool folder_end(struct folder *f, const struct child *export, bool sampled)
{
	if (!f->o)
		return true;
	hear(f);
	const bool killed = sampled && !export->done && WIFSIGNALED(export->wait_status),
		   good = end(f, &f->now,
			      export->done ? PROFILES_WHOLE
			      : killed	   ? PROFILES_KILLED
					   : PROFILES_FAILED);

	if (f->waits)
		(void)end(f, &f->next, PROFILES_FAILED);
	fd_close(&f->socket);
	f->o = NULL;
	return good;
}
