/* SPDX-License-Identifier: Apache-2.0 */
#include "common/cell/deploy.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/base/command/exits.h"
#include "common/base/command/log.h"
#include "common/base/text/decimal.h"
#include "common/cell/budget/priority.h"
#include "common/cell/cell.h"

static const char *const tool_names[DEPLOY_USERS] = { "prof-bpf", "prof-deltas", "prof-symd",
						      "prof-export", "prof-send" };

/* The order in which the kernel kills tools when memory runs out: before profiled programs (0), and
 * parsers before tools whose end costs samples. All values are low, so a program that uses most of
 * the host's memory is killed first. */
static const int oom_scores[DEPLOY_USERS] = { 300, 500, 500, 400, 450 };

/* The cell of this process, if the tool has no rights. */
static struct cell cell;

void deploy_init(struct deploy *d)
{
	*d = (struct deploy){ .gid = getgid(), .status_fd = -1, .life_fd = -1 };
	for (int i = 0; i < DEPLOY_USERS; i++)
		d->uid[i] = getuid();
}

/* Parses GID:B:D:S:E[:N]. */
static bool parse_ids(const char *arg, struct deploy *d)
{
	uint64_t n[1 + DEPLOY_USERS];
	size_t count = 0;

	do {
		if (count && *arg++ != ':')
			return false;
		/* (uid_t)-1 means "unchanged" to the kernel. */
		if (!decimal_take(&arg, &n[count]) || n[count] >= (uid_t)-1)
			return false;
		count++;
	} while (*arg && count < sizeof(n) / sizeof(n[0]));
	if (*arg || count <= DEPLOY_TOOLS)
		return false;
	d->ids_given = true;
	d->send_given = count > 1 + DEPLOY_SEND;
	d->gid = (gid_t)n[0];
	for (size_t i = 1; i < count; i++)
		d->uid[i - 1] = (uid_t)n[i];
	return true;
}

static int take_run_dir(struct deploy *d, const struct cmdline *c)
{
	/* By the time the tool uses the folder, it has another root or working folder. */
	if (c->value[0] != '/')
		return cmdline_refuse(c, "not an absolute path; give it from the root on, "
					 "as in \"$PWD\"/run");
	return cmdline_path(c, &d->run_dir);
}

int deploy_option(struct deploy *d, const struct cmdline *c, int val)
{
	switch (val) {
	case DEPLOY_RUN_DIR:
		return take_run_dir(d, c);
	case DEPLOY_IDS:
		if (!parse_ids(c->value, d))
			return cmdline_refuse(c, "not five or six ids; "
						 "give GID:BPF:DELTAS:SYMD:EXPORT, and :SEND if "
						 "prof-send runs");
		return EXITS_GO_ON;
	case DEPLOY_STATUS_FD:
		return cmdline_fd(c, &d->status_fd);
	case DEPLOY_LIFE_FD:
		return cmdline_fd(c, &d->life_fd);
	case DEPLOY_WITH_SEND:
		d->extra |= BUDGET_SEND;
		return EXITS_GO_ON;
	case DEPLOY_WITH_METRICS:
		d->extra |= BUDGET_METRICS;
		return EXITS_GO_ON;
	case DEPLOY_MEMORY_LIMIT:
		return cmdline_size(c, BUDGET_LEAST, BUDGET_MOST, &d->limit);
	}
	assert(!"an option of the launcher");
	return EXITS_USAGE;
}

const char *deploy_tool_name(enum deploy_tool tool)
{
	return tool_names[tool];
}

int deploy_check_options(const struct deploy *d, enum deploy_tool tool)
{
	const char *option = d->ids_given	      ? "ids"
			     : d->extra & BUDGET_SEND ? "with-send"
			     : d->extra		      ? "with-metrics"
			     : d->status_fd >= 0      ? "status-fd"
			     : d->life_fd >= 0	      ? "life-fd"
						      : NULL;

	if (d->run_dir)
		return EXITS_GO_ON;
	/* prof-bpf by hand is a run of its own: it limits its own prof-deltas. */
	if (d->limit && tool != DEPLOY_BPF)
		return cmdline_refuse_all("--memory-limit: needs --run-dir, whose tools share it; "
					  "by hand, omit it%s",
					  tool == DEPLOY_DELTAS ? "" : " or give --memory");
	if (!option)
		return EXITS_GO_ON;
	return cmdline_refuse_all("--%s: needs --run-dir; by hand a tool has no launcher", option);
}

void deploy_budget(const struct deploy *d, struct budget *ret)
{
	budget_split(d->limit ? d->limit : BUDGET_DEFAULT, d->extra, ret);
}

int deploy_check_fd(const char *option, int fd)
{
	if (fd < 0)
		return 0;
	if (fcntl(fd, F_SETFD, FD_CLOEXEC)) {
		const int r = -errno;

		log_error("--%s: %d: the descriptor is not open; the launcher has to pass it",
			  option, fd);
		return r;
	}
	return 0;
}

/* prof-bpf needs rights, and prof-send the network, so they confine themselves with their own
 * lists. */
static bool has_cell(enum deploy_tool tool)
{
	return tool != DEPLOY_BPF && tool != DEPLOY_SEND;
}

/* An empty root requires root's rights, or a user namespace that contains only the tool's own
 * user. */
static void prepare_cell(const struct deploy *d, enum deploy_tool tool)
{
	bool alone = true;

	for (int i = 0; i < DEPLOY_TOOLS; i++)
		alone = alone && d->uid[i] == geteuid();
	cell = (struct cell){ .listens = tool == DEPLOY_EXPORT, .writes = tool == DEPLOY_EXPORT };
	cell_prepare(&cell, d->run_dir, alone);
}

static int enter_cell(const struct deploy *d, enum deploy_tool tool)
{
	char own[PATH_MAX];
	const int n = snprintf(own, sizeof(own), "%s/export", d->run_dir ? d->run_dir : "");
	const int r = n < 0 || (size_t)n >= sizeof(own)
			      ? -ENAMETOOLONG
			      : cell_enter(&cell, cell.listens ? own : NULL);

	if (n < 0 || (size_t)n >= sizeof(own))
		log_error("--run-dir: %s: %s; choose a shorter one", d->run_dir, strerror(-r));
	return r;
}

/* Without this check, a tool whose peer should make the folder would wait forever. */
static int check_run_dir(const struct deploy *d)
{
	struct stat st;

	if (!d->run_dir)
		return 0;
	const int r = stat(d->run_dir, &st) < 0 ? -errno : !S_ISDIR(st.st_mode) ? -ENOTDIR : 0;

	if (r)
		log_error("--run-dir: %s: %s; name the folder of the run, which must exist",
			  d->run_dir, strerror(-r));
	return r;
}

int deploy_enter(const struct deploy *d, enum deploy_tool tool, struct sandbox *s)
{
	int r = deploy_check_fd("status-fd", d->status_fd);

	if (!r)
		r = deploy_check_fd("life-fd", d->life_fd);
	if (!r)
		r = check_run_dir(d);
	if (r)
		return r;
	if (d->status_fd >= 0) {
		const int flags = fcntl(d->status_fd, F_GETFL);

		/* If the launcher is gone or does not read, this must neither kill nor block us. */
		signal(SIGPIPE, SIG_IGN);
		if (flags < 0 || fcntl(d->status_fd, F_SETFL, flags | O_NONBLOCK)) {
			r = -errno;
			log_error("--status-fd: %d: cannot be made non-blocking: %s; pass a pipe",
				  d->status_fd, strerror(-r));
			return r;
		}
	}
	s->change_ids = d->ids_given;
	s->uid = d->uid[tool];
	s->gid = d->gid;
	const char *step = NULL;

	if (d->run_dir)
		priority_give_way(oom_scores[tool]);
	if (has_cell(tool))
		prepare_cell(d, tool);
	r = sandbox_enter(s, &step);
	if (r && d->ids_given)
		log_error("%s cannot become user %u, group %u: %s: %s; start it as root, "
			  "or with its own ids",
			  tool_names[tool], (unsigned)s->uid, (unsigned)s->gid, step, strerror(-r));
	else if (r)
		log_error(
			"%s cannot drop its rights: %s: %s; report this, with the kernel's version",
			tool_names[tool], step, strerror(-r));
	if (!r && d->confined)
		r = d->confined(d->confined_ctx);
	if (!r && has_cell(tool))
		r = enter_cell(d, tool);
	return r;
}

int deploy_seal(void)
{
	const int r = cell_seal(&cell);

	if (!r)
		log_info("root: %s; network: %s; Landlock: %d; system calls: %s",
			 cell.root ? "empty" : "the host's",
			 cell.place.network ? "none" : "the host's", cell.landlock,
			 cell.calls ? "limited" : "all");
	return r;
}

bool deploy_life_over(int life_fd, bool *epoch)
{
	struct pollfd p = { .fd = life_fd, .events = POLLIN };
	char byte;

	if (life_fd < 0)
		return false;
	while (poll(&p, 1, 0) > 0) {
		const ssize_t n = read(life_fd, &byte, 1);

		if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN))
			return true;
		if (n > 0 && byte == DEPLOY_EPOCH && epoch)
			*epoch = true;
	}
	return false;
}

void deploy_status(const struct deploy *d, struct status *st, enum status_phase phase)
{
	if (d->status_fd < 0)
		return;
	st->magic = STATUS_MAGIC;
	st->phase = phase;
	/* A word is at most PIPE_BUF, so it is written whole or not at all. If the pipe is full,
	 * drop a progress report, but wait a little for other words. */
	for (int tries = 0; tries < 20; tries++) {
		const ssize_t n = write(d->status_fd, st, sizeof(*st));

		if (n >= 0 || (errno != EAGAIN && errno != EINTR) || phase == STATUS_RUNNING)
			return;
		struct pollfd p = { .fd = d->status_fd, .events = POLLOUT };

		poll(&p, 1, 50);
	}
}
