/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order matters. Emptying the bounding set requires CAP_SETPCAP, and dropping groups requires
 * CAP_SETGID, both of which are dropped too. A change of uid clears the effective set
 * (capabilities(7)) and the dumpable flag (prctl(2)). None of this affects a thread that already
 * runs, so there must be none.
 */
#include "common/cell/confine/sandbox.h"

#include <cap-ng.h>
#include <errno.h>
#include <grp.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/base/command/log.h"

#ifndef CAP_PERFMON
#error "Linux 5.9 or newer headers are needed"
#endif

/* AddressSanitizer maps terabytes, and its leak check traces the process when it ends. So that
 * build permits both. */
#ifdef __SANITIZE_ADDRESS__
#define UNDER_ASAN true
#else
#define UNDER_ASAN false
#endif

static const unsigned bpf_caps[] = {
	CAP_BPF,     CAP_SYS_PTRACE, CAP_CHECKPOINT_RESTORE, CAP_DAC_READ_SEARCH,
	CAP_PERFMON, CAP_SYSLOG
};
static const unsigned run_caps[] = { CAP_BPF, CAP_SYS_PTRACE };
/* Newer kernels (6.18) also show a process's mappings to PERFMON. */
static const unsigned run_caps_without_ptrace[] = { CAP_BPF, CAP_PERFMON };
static const unsigned open_caps[] = { CAP_SYS_PTRACE, CAP_CHECKPOINT_RESTORE, CAP_DAC_READ_SEARCH };
static const unsigned event_caps[] = { CAP_PERFMON };
static const unsigned load_caps[] = { CAP_BPF, CAP_PERFMON };

#define LENGTH(a) (sizeof(a) / sizeof((a)[0]))
#define BPF_CAPS LENGTH(bpf_caps)

struct cap_list {
	unsigned caps[BPF_CAPS];
	unsigned len;
};

/* The link count of the folder `task` is the number of threads plus two. Without /proc the count is
 * unknown. */
static int check_single_threaded(void)
{
	struct stat st;

	return stat("/proc/self/task", &st) == 0 && st.st_nlink > 3 ? -EBUSY : 0;
}

int sandbox_lower(int resource, rlim_t max)
{
	struct rlimit l;

	if (getrlimit(resource, &l))
		return -errno;
	if (l.rlim_max > max)
		l.rlim_max = max;
	l.rlim_cur = l.rlim_max;
	return setrlimit(resource, &l) ? -errno : 0;
}

static int set_limits(const struct sandbox *s)
{
	int r = sandbox_lower(RLIMIT_CORE, 0);

	if (!r && s->max_files)
		r = sandbox_lower(RLIMIT_NOFILE, s->max_files);
	if (!r && s->max_memory && !UNDER_ASAN)
		r = sandbox_lower(RLIMIT_AS, s->max_memory);
	if (!r && s->max_data && !UNDER_ASAN)
		r = sandbox_lower(RLIMIT_DATA, s->max_data);
	return r;
}

/* Keeps the capabilities of the list that the process has. */
static int keep(const unsigned *caps, size_t len, struct cap_list *ret)
{
	for (size_t i = 0; i < len; i++)
		if (caps[i] <= (unsigned)CAP_LAST_CAP &&
		    capng_have_capability(CAPNG_PERMITTED, caps[i]))
			ret->caps[ret->len++] = caps[i];
	return 0;
}

static int choose_caps(enum sandbox_caps caps, struct cap_list *ret)
{
	*ret = (struct cap_list){ 0 };
	if (capng_get_caps_process())
		return -EIO;
	switch (caps) {
	case SANDBOX_NO_CAPS:
		return 0;
	case SANDBOX_BPF_CAPS:
		return keep(bpf_caps, LENGTH(bpf_caps), ret);
	case SANDBOX_EVENT_CAPS:
		return keep(event_caps, LENGTH(event_caps), ret);
	case SANDBOX_LOAD_CAPS:
		return keep(load_caps, LENGTH(load_caps), ret);
	case SANDBOX_OPEN_CAPS:
		return keep(open_caps, LENGTH(open_caps), ret);
	case SANDBOX_RUN_CAPS:
		break;
	}
	if (capng_have_capability(CAPNG_PERMITTED, CAP_SYS_PTRACE))
		return keep(run_caps, LENGTH(run_caps), ret);
	return keep(run_caps_without_ptrace, LENGTH(run_caps_without_ptrace), ret);
}

/* Empties the bounding set if permitted. It matters only at exec, which grants nothing under
 * no_new_privs anyway. */
static int clear_bounds(void)
{
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0))
		return -errno;
	if (!capng_have_capability(CAPNG_EFFECTIVE, CAP_SETPCAP))
		return 0;
	for (unsigned long c = 0; prctl(PR_CAPBSET_READ, c, 0, 0, 0) >= 0; c++)
		if (prctl(PR_CAPBSET_DROP, c, 0, 0, 0))
			return -errno;
	return 0;
}

static bool ids_are(uid_t uid, gid_t gid)
{
	uid_t u[3];
	gid_t g[3];

	if (getresuid(&u[0], &u[1], &u[2]) || getresgid(&g[0], &g[1], &g[2]))
		return false;
	for (int i = 0; i < 3; i++)
		if (u[i] != uid || g[i] != gid)
			return false;
	return true;
}

static int set_ids(const struct sandbox *s)
{
	/* A caller without rights that already has the right ids keeps its groups, because it
	 * cannot drop them. */
	if (setgroups(0, NULL) && !(errno == EPERM && ids_are(s->uid, s->gid)))
		return -errno;
	if (setresgid(s->gid, s->gid, s->gid))
		return -errno;
	if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0))
		return -errno;
	if (setresuid(s->uid, s->uid, s->uid))
		return -errno;
	return prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0) ? -errno : 0;
}

static int set_caps(const struct cap_list *list)
{
	capng_clear(CAPNG_SELECT_CAPS);
	for (unsigned i = 0; i < list->len; i++)
		if (capng_update(CAPNG_ADD, CAPNG_EFFECTIVE | CAPNG_PERMITTED, list->caps[i]))
			return -EINVAL;
	errno = 0;
	if (capng_apply(CAPNG_SELECT_CAPS))
		return errno ? -errno : -EPERM;
	return 0;
}

/* Checks that exactly the kept capabilities are permitted and effective, and that none are
 * inheritable. */
static int verify_caps(const struct cap_list *list)
{
	if (capng_get_caps_process())
		return -EIO;
	for (unsigned c = 0; c <= (unsigned)CAP_LAST_CAP; c++) {
		bool want = false;

		for (unsigned i = 0; i < list->len; i++)
			want = want || list->caps[i] == c;
		if (capng_have_capability(CAPNG_PERMITTED, c) != want ||
		    capng_have_capability(CAPNG_EFFECTIVE, c) != want ||
		    capng_have_capability(CAPNG_INHERITABLE, c))
			return -EPERM;
	}
	return 0;
}

static int verify_ids(const struct sandbox *s, uid_t old_uid, gid_t old_gid)
{
	if (!ids_are(s->uid, s->gid))
		return -EPERM;
	if (s->uid &&
	    (setresuid((uid_t)-1, 0, (uid_t)-1) == 0 || setresuid(0, (uid_t)-1, (uid_t)-1) == 0))
		return -EPERM;
	if (old_uid != s->uid && setresuid((uid_t)-1, old_uid, (uid_t)-1) == 0)
		return -EPERM;
	if (old_gid != s->gid && setresgid((gid_t)-1, old_gid, (gid_t)-1) == 0)
		return -EPERM;
	return 0;
}

int sandbox_enter(const struct sandbox *s, const char **ret_step)
{
	const uid_t old_uid = geteuid();
	const gid_t old_gid = getegid();
	struct cap_list list;
	const char *step = "checking that no thread runs yet";
	int r = check_single_threaded();

	if (!r) {
		step = "reading capabilities";
		r = choose_caps(s->caps, &list);
	}
	if (!r) {
		step = "setting resource limits";
		r = set_limits(s);
	}
	if (!r) {
		step = "clearing the ambient and bounding capabilities";
		r = clear_bounds();
	}
	if (!r && s->change_ids) {
		step = "changing user and group";
		r = set_ids(s);
	}
	if (!r) {
		step = "reducing capabilities";
		r = set_caps(&list);
	}
	if (!r) {
		step = "setting no_new_privs";
		r = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ? -errno : 0;
	}
	if (!r) {
		step = "becoming undumpable";
		r = prctl(PR_SET_DUMPABLE, UNDER_ASAN ? 1 : 0, 0, 0, 0) ? -errno : 0;
	}
	if (!r) {
		step = "verifying that capabilities are gone";
		r = verify_caps(&list);
	}
	if (!r && s->change_ids) {
		step = "verifying that the old identity is gone";
		r = verify_ids(s, old_uid, old_gid);
	}
	if (r)
		*ret_step = step;
	return r;
}

int sandbox_reduce(enum sandbox_caps caps, const char **ret_step)
{
	struct cap_list list;
	const char *step = "checking that no thread runs yet";
	int r = check_single_threaded();

	if (!r) {
		step = "reading capabilities";
		r = choose_caps(caps, &list);
	}
	if (!r) {
		step = "reducing capabilities";
		r = set_caps(&list);
	}
	if (!r) {
		step = "verifying that capabilities are gone";
		r = verify_caps(&list);
	}
	if (r)
		*ret_step = step;
	return r;
}

int sandbox_report(const char *step, int r)
{
	if (r)
		log_error("the tool cannot be confined: %s%s%s; report this, with the kernel's "
			  "version",
			  step ? step : "", step ? ": " : "", strerror(-r));
	return r;
}
