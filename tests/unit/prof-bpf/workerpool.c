/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that the pool of workers answers, also on file systems that hang. */
#include <linux/fuse.h>
#include <sched.h>
#include <sys/mount.h>
#include "common/base/system/procfs.h"
#include "tests/unit/opener_fixture.h"

TestSuite(workerpool, .init = set_up, .fini = clean_up);

static unsigned hanging(void)
{
	struct workerpool_figures f;

	workerpool_figures(pool, &f);
	return f.hanging;
}

Test(workerpool, requests_are_answered_once_each)
{
	struct answer a = { 0 };
	uint64_t ticket, last = 0;
	struct opener_request q = { .kind = OPENER_PATH, .path = STR_LIT("/bin/true") };

	start();
	for (unsigned i = 1; i <= 200; i++) {
		cr_assert_eq(opener_submit(opener, &q, take, &a, &ticket), 0);
		cr_assert_gt(ticket, last);
		last = ticket;
		if (i % 7 == 0)
			run_until(&a, i, 5000);
		if (a.r.fd > 0)
			close(a.r.fd);
		a.r.fd = -1;
	}
	finish();
}

Test(workerpool, cancelled_request_is_not_answered_and_leaks_nothing)
{
	struct answer cancelled = { 0 }, other = { 0 };
	uint64_t ticket;
	struct opener_request q = { .kind = OPENER_PATH, .path = STR_LIT("/bin/true") };

	start();
	close(ask(&q, 5000).fd);
	int before = dup(0);
	close(before);
	for (unsigned i = 0; i < 50; i++) {
		cr_assert_eq(opener_submit(opener, &q, take, &cancelled, &ticket), 0);
		opener_cancel(opener, ticket);
		opener_cancel(opener, 9999999);
		cr_assert_eq(opener_submit(opener, &q, take, &other, &ticket), 0);
		run_until(&other, i + 1, 5000);
		close(other.r.fd);
	}
	run_until(&cancelled, 1, 50);
	cr_assert_eq(cancelled.calls, 0);
	cr_assert_eq(other.calls, 50);
	int after = dup(0);
	cr_assert_eq(before, after);
	close(after);
	finish();
}

Test(workerpool, cancelled_requests_leave_the_queue)
{
	const unsigned many = 8 * WORKERPOOL_QUEUE;
	struct answer cancelled = { 0 }, other = { 0 };
	uint64_t ticket;
	struct opener_request q = { .kind = OPENER_PATH, .path = STR_LIT("/bin/true") };

	start();
	for (unsigned i = 0; i < many; i++) {
		cr_assert_eq(opener_submit(opener, &q, take, &cancelled, &ticket), 0, "%u", i);
		opener_cancel(opener, ticket);
		if (i % 100 == 0)
			workerpool_run(pool, clock_mono_ns());
	}
	cr_assert_eq(opener_submit(opener, &q, take, &other, &ticket), 0);
	run_until(&other, 1, 5000);
	close(other.r.fd);
	cr_assert_eq(cancelled.calls, 0);
	finish();
}

Test(workerpool, free_forgets_what_waits)
{
	struct answer a = { 0 };
	uint64_t ticket;
	struct opener_request q = { .kind = OPENER_PATH, .path = STR_LIT("/bin/true") };

	start();
	for (unsigned i = 0; i < 500; i++)
		cr_assert_eq(opener_submit(opener, &q, take, &a, &ticket), 0);
	workerpool_run(pool, clock_mono_ns());
	finish();
	cr_assert_eq(a.calls, 0);
}

/* A FUSE file system with one file. `mute`: an opcode that the server never answers. */
static void serve(int dev, uint32_t mute)
{
	static char buffer[256u << 10];

	for (;;) {
		ssize_t n = read(dev, buffer, sizeof(buffer));
		struct fuse_in_header in;
		struct fuse_out_header out = { .len = sizeof(out) };
		char reply[8192];

		if (n < (ssize_t)sizeof(in))
			_exit(0);
		memcpy(&in, buffer, sizeof(in));
		out.unique = in.unique;
		size_t more = 0;
		struct fuse_attr attr = {
			.ino = 2, .mode = S_IFREG | 0755, .nlink = 1, .size = 4096, .blksize = 4096
		};
		struct fuse_attr root = { .ino = 1, .mode = S_IFDIR | 0755, .nlink = 2 };
		if (in.opcode == mute) {
			continue;
		} else if (in.opcode == FUSE_INIT) {
			struct fuse_init_out o = { .major = 7, .minor = 31, .max_write = 4096 };

			memcpy(reply, &o, more = sizeof(o));
		} else if (in.opcode == FUSE_LOOKUP) {
			struct fuse_entry_out o = {
				.nodeid = 2, .attr = attr, .entry_valid = 100, .attr_valid = 100
			};

			memcpy(reply, &o, more = sizeof(o));
		} else if (in.opcode == FUSE_GETATTR) {
			struct fuse_attr_out o = { .attr = in.nodeid == 1 ? root : attr,
						   .attr_valid = 100 };

			memcpy(reply, &o, more = sizeof(o));
		} else if (in.opcode == FUSE_OPEN) {
			struct fuse_open_out o = { .fh = 1 };

			memcpy(reply, &o, more = sizeof(o));
		} else if (in.opcode == FUSE_READ) {
			memset(reply, 'r', more = 4096);
		} else {
			out.error = -ENOSYS;
		}
		out.len = (uint32_t)(sizeof(out) + more);
		memmove(reply + sizeof(out), reply, more);
		memcpy(reply, &out, sizeof(out));
		(void)!write(dev, reply, out.len);
	}
}

struct mounted {
	int dev;
	pid_t server;
	char path[128];
};

static struct mounted mount_fuse(const char *name, uint32_t mute)
{
	struct mounted m = { .dev = open("/dev/fuse", O_RDWR | O_CLOEXEC) };
	char options[128];

	cr_assert_geq(m.dev, 0, "/dev/fuse: %m");
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other",
		 m.dev);
	snprintf(m.path, sizeof(m.path), "%s", path_of(name));
	mkdir(m.path, 0755);
	cr_assert_eq(mount("hang", m.path, "fuse", 0, options), 0);
	m.server = fork();
	if (m.server == 0)
		serve(m.dev, mute);
	return m;
}

/* The kernel then answers in the server's place. */
static void unmount(const struct mounted *m)
{
	stop(m->server);
	close(m->dev);
	umount2(m->path, MNT_DETACH);
}

static struct opener_request of_path(char to[static 300], const char *folder, const char *name)
{
	snprintf(to, 300, "%s/%s", folder, name);
	return (struct opener_request){ .kind = OPENER_PATH, .path = str_from(to) };
}

Test(workerpool, a_foreign_file_is_given_as_a_copy)
{
	const struct mounted m = mount_fuse("m", 0);
	char path[300];
	struct opener_request q = of_path(path, m.path, "f");

	start();
	struct opener_result r = ask(&q, 3000);
	cr_assert_eq(r.status, 0);
	cr_assert(r.file.foreign && r.file.copied);
	cr_assert_eq(first_byte(&r), 'r');
	cr_assert_eq(fcntl(r.fd, F_GET_SEALS),
		     F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
	close(r.fd);
	/* A request for only the file's identity makes no copy. */
	q.look_only = true;
	r = ask(&q, 3000);
	cr_assert(r.status == 0 && r.fd == -1 && r.file.copied && r.file.size == 4096);
	/* A path by which users name files, such as one of a perf map, is never opened there. */
	q = (struct opener_request){ .kind = OPENER_PATH, .path = q.path, .by_users = true };
	cr_assert_eq(ask(&q, 3000).status, OPENER_REFUSED);
	unmount(&m);
	finish();
}

Test(workerpool, hanging_file_costs_one_worker_and_its_device_is_left_alone)
{
	static const uint32_t mute[] = { FUSE_OPEN, FUSE_READ, FUSE_LOOKUP };
	struct mounted m[3];
	char path[300];
	struct opener_request good = { .kind = OPENER_PATH, .path = STR_LIT("/bin/true") };
	uint64_t before, ticket;

	start();
	for (unsigned i = 0; i < 3; i++) {
		struct answer hung = { 0 };

		m[i] = mount_fuse(i == 0 ? "m0" : i == 1 ? "m1" : "m2", mute[i]);
		struct opener_request q = of_path(path, m[i].path, "f");
		before = clock_mono_ns();
		cr_assert_eq(opener_submit(opener, &q, take, &hung, &ticket), 0);
		struct opener_result r = ask(&good, 900);
		cr_assert_eq(r.status, 0);
		close(r.fd);
		cr_assert_eq(hung.calls, 0);
		run_until(&hung, 1, 3000);
		cr_assert_eq(hung.calls, 1);
		cr_assert(hung.r.status == OPENER_TIMEOUT && hung.r.fd == -1, "%u: %d", i,
			  hung.r.status);
		cr_assert_geq(clock_mono_ns() - before, OPENER_DEADLINE_NS);
		before = clock_mono_ns();
		cr_assert_eq(ask(&q, 900).status, OPENER_TIMEOUT);
		cr_assert_lt(clock_mono_ns() - before, OPENER_DEADLINE_NS / 2);
		if (i == 1)
			break;
	}
	/* Nobody is charged here, so only the two devices matter. */
	cr_assert_leq(hanging(), 2);
	const unsigned hung_now = hanging();
	cr_assert_geq(hung_now, 1);
	for (unsigned i = 0; i < 2; i++)
		unmount(&m[i]);
	struct answer none = { 0 };
	run_until(&none, 1, 300);
	cr_assert_eq(hanging(), 0);
	finish();
}

Test(workerpool, a_users_path_below_a_mount_that_answers_nothing_costs_no_worker)
{
	const struct mounted m = mount_fuse("names", FUSE_LOOKUP);
	char path[300];
	struct opener_request q = of_path(path, m.path, "f");

	q.by_users = true;
	start();
	const uint64_t before = clock_mono_ns();
	cr_assert_eq(ask(&q, 3000).status, OPENER_REFUSED);
	cr_assert_lt(clock_mono_ns() - before, OPENER_DEADLINE_NS / 2);
	cr_assert_eq(hanging(), 0);
	unmount(&m);
	finish();
}

static char pretended; /* the state of all processes; 0: what it is */

int __real_procfs_read_stat(int at, uint32_t pid, struct procfs_stat *ret);
int __wrap_procfs_read_stat(int at, uint32_t pid, struct procfs_stat *ret);
int __wrap_procfs_read_stat(int at, uint32_t pid, struct procfs_stat *ret)
{
	const int r = __real_procfs_read_stat(at, pid, ret);

	if (pretended && r == 0)
		ret->state = pretended;
	return r;
}

/* How long a hanging request takes, in nanoseconds. */
static uint64_t hung_for(const char *folder)
{
	struct answer hung = { 0 };
	char path[300];
	uint64_t ticket, before = clock_mono_ns();
	struct opener_request q = of_path(path, folder, "f");

	cr_assert_eq(opener_submit(opener, &q, take, &hung, &ticket), 0);
	run_until(&hung, 1, 2 * WORKERPOOL_PATIENCE * (int)(OPENER_DEADLINE_NS / 1000000));
	cr_assert_eq(hung.r.status, OPENER_TIMEOUT);
	return clock_mono_ns() - before;
}

Test(workerpool, a_worker_without_cpu_time_gets_more_time_up_to_a_limit)
{
	const struct mounted m = mount_fuse("starved", FUSE_OPEN);

	start();
	pretended = 'R';
	cr_assert_geq(hung_for(m.path), WORKERPOOL_PATIENCE * OPENER_DEADLINE_NS);
	unmount(&m);
	finish();
}

Test(workerpool, worker_that_sleeps_is_given_up_at_its_deadline)
{
	const struct mounted m = mount_fuse("asleep", FUSE_OPEN);

	start();
	pretended = 'D';
	cr_assert_lt(hung_for(m.path), WORKERPOOL_PATIENCE / 2 * OPENER_DEADLINE_NS);
	unmount(&m);
	finish();
}

/* Even lookups of names hang. */
Test(workerpool, mount_that_answers_nothing_costs_one_worker)
{
	enum { ASKED = 40 };
	struct answer hung[ASKED] = { 0 };
	char options[128];
	uint64_t ticket;

	int dev = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	cr_assert_geq(dev, 0, "/dev/fuse: %m");
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other",
		 dev);
	mkdir(path_of("m"), 0755);
	cr_assert_eq(mount("dead", path_of("m"), "fuse", 0, options), 0);
	start();
	for (int i = 0; i < ASKED; i++) {
		char path[300];

		/* Also subfolders, and debug files beside programs. */
		snprintf(path, sizeof(path), "%s/%d/f", path_of("m"), i);
		struct opener_request q = { .kind = i % 2 ? OPENER_PATH : OPENER_DEBUGLINK,
					    .path = str_from(path),
					    .name = STR_LIT("f.debug") };
		cr_assert_eq(opener_submit(opener, &q, take, &hung[i], &ticket), 0);
	}
	struct opener_request q = { .kind = OPENER_PATH, .path = STR_LIT("/bin/true") };
	struct opener_result good = ask(&q, 900);
	cr_assert_eq(good.status, 0);
	close(good.fd);
	for (int i = 0; i < ASKED; i++) {
		run_until(&hung[i], 1, 3000);
		cr_assert_eq(hung[i].r.status, OPENER_TIMEOUT);
	}
	cr_assert_leq(hanging(), 1);
	finish();
	close(dev);
	umount2(path_of("m"), MNT_DETACH);
}
