/* SPDX-License-Identifier: Apache-2.0 */
/* A child in the cell makes each attempt: code that has taken a tool over has the same calls. Under
 * AddressSanitizer there are no filters, and nothing is attempted. */
#include "common/cell/cell.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __SANITIZE_ADDRESS__
#define FILTERED false
#else
#define FILTERED true
#endif

#define DIED (1000 + SIGSYS)
#define WENT_THROUGH 77

static const struct cell cells[] = { { 0 }, { .listens = true }, { .writes = true } };
static char page[4096] __attribute__((aligned(4096)));
static char *const nothing[] = { NULL };
static uint64_t zeroes[32];

struct attempt {
	const char *what;
	long call;
	unsigned long args[6];
	int error; /* 0: it kills */
};

#define TRY(name, ...) \
	{ \
#name, SYS_##name, { __VA_ARGS__ }, 0 \
	}
#define TRY_FAILS(name, errno_, ...) \
	{ \
#name, SYS_##name, { __VA_ARGS__ }, errno_ \
	}
#define P(x) (unsigned long)(x)

static const struct attempt attempts[] = {
	TRY_FAILS(open, EACCES, P("/etc/shadow"), O_RDONLY),
	TRY_FAILS(openat, EACCES, AT_FDCWD, P("/etc/passwd"), O_RDONLY),
	TRY_FAILS(openat, EACCES, AT_FDCWD, P("/tmp/.cell"), O_RDWR | O_CREAT, 0600),
	TRY_FAILS(openat, EACCES, AT_FDCWD, P("/proc/self/fd/0"), O_RDWR),
	TRY_FAILS(openat, EACCES, AT_FDCWD, P("/proc/1/mem"), O_RDONLY),
	TRY(openat2, AT_FDCWD, P("/etc/passwd"), P(zeroes), 24),
	TRY(creat, P("/tmp/.cell"), 0600),
	TRY(open_by_handle_at, AT_FDCWD, P(page), O_RDONLY),
	TRY(name_to_handle_at, AT_FDCWD, P("/"), P(page), P(page), 0),
	TRY_FAILS(stat, EACCES, P("/etc/shadow"), P(page)),
	TRY_FAILS(newfstatat, EACCES, AT_FDCWD, P("/etc/shadow"), P(page), 0),
	TRY_FAILS(statx, EACCES, AT_FDCWD, P("/etc/shadow"), 0, 0, P(page)),
	TRY_FAILS(readlink, EACCES, P("/proc/self/exe"), P(page), 100),
	TRY_FAILS(access, EACCES, P("/etc/shadow"), 0),
	TRY_FAILS(unlink, EACCES, P("/tmp/.cell")),
	TRY(rename, P("/tmp/.cell"), P("/tmp/.cell2")),
	TRY(link, P("/etc/passwd"), P("/tmp/.cell")),
	TRY(symlink, P("/etc/passwd"), P("/tmp/.cell")),
	TRY(mkdir, P("/tmp/.cell"), 0700),
	TRY(mknod, P("/tmp/.cell"), 010600, 0),
	TRY(chmod, P("/tmp/.cell"), 0777),
	TRY(fchmod, 0, 0777),
	TRY(fchown, 0, 0, 0),
	TRY(truncate, P("/tmp/.cell"), 0),
	TRY(fallocate, 0, 0, 0, 4096),
	TRY(flock, 0, 2),
	TRY(fcntl, 0, F_SETLK, P(zeroes)),
	TRY(fcntl, 0, F_SETOWN, 1),
	TRY(fcntl, 0, F_SETLEASE, 0),
	TRY(fcntl, 0, F_NOTIFY, 1),
	TRY(fcntl, 0, F_ADD_SEALS, 0),
	TRY(ioctl, 0, TIOCSTI, P("x")),
	TRY(ioctl, 0, TIOCSCTTY, 1),
	TRY(pwrite64, 0, P(page), 1, 0),
	TRY(sendfile, 1, 0, 0, 1),
	TRY(splice, 0, 0, 1, 0, 1, 0),
	TRY(copy_file_range, 0, 0, 1, 0, 1, 0),
	TRY(dup2, 0, 1),
	TRY(chdir, P("/")),
	TRY(getdents64, 0, P(page), 4096),
	TRY(inotify_init1, 0),
	TRY(fanotify_init, 0, 0),
	TRY(memfd_create, P("x"), 0),
	TRY(memfd_secret, 0),

	TRY(socket, AF_UNIX, SOCK_STREAM, 0),
	TRY(socket, AF_INET, SOCK_STREAM, 0),
	TRY(socket, AF_NETLINK, SOCK_RAW, 0),
	TRY(socket, AF_PACKET, SOCK_RAW, 0),
	TRY(socket, AF_VSOCK, SOCK_STREAM, 0),
	TRY(socketpair, AF_UNIX, SOCK_STREAM, 0, P(page)),
	TRY(connect, 0, P(page), 16),
	TRY(bind, 0, P(page), 16),
	TRY(listen, 0, 1),

	TRY(ptrace, PTRACE_ATTACH, 1, 0, 0),
	TRY(ptrace, PTRACE_TRACEME, 0, 0, 0),
	TRY(process_vm_readv, 1, P(zeroes), 1, P(zeroes), 1, 0),
	TRY(process_vm_writev, 1, P(zeroes), 1, P(zeroes), 1, 0),
	TRY(process_madvise, 0, P(zeroes), 1, 0, 0),
	TRY(kcmp, 1, 1, 0, 0, 0),
	TRY(pidfd_open, 1, 0),
	TRY(pidfd_getfd, 0, 0, 0),
	TRY(pidfd_send_signal, 0, SIGKILL, 0, 0),
	TRY(kill, 1, 0),
	TRY(kill, -1, 0),
	TRY(tkill, 1, SIGTERM),
	TRY(tgkill, 1, 1, 0),
	TRY(rt_sigqueueinfo, 1, 0, P(page)),

	TRY(execve, P("/bin/sh"), P(nothing), P(nothing)),
	TRY(execveat, AT_FDCWD, P("/bin/sh"), P(nothing), P(nothing), 0),
	TRY(fork, 0),
	TRY(vfork, 0),
	TRY(clone, SIGCHLD, 0, 0, 0, 0),
	TRY(clone, CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD, P(page + 4000),
	    0, 0, 0),
	TRY(clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0),
	TRY_FAILS(clone3, ENOSYS, P(zeroes), 64),
	TRY(unshare, CLONE_NEWUSER),
	TRY(setns, 0, 0),
	TRY(chroot, P("/")),
	TRY(pivot_root, P("."), P(".")),
	TRY(mount, P("x"), P("/"), P("tmpfs"), 0, 0),
	TRY(umount2, P("/"), 0),
	TRY(open_tree, AT_FDCWD, P("/"), 0),
	TRY(fsopen, P("tmpfs"), 0),

	TRY(mmap, 0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1ul, 0),
	TRY(mmap, 0, 4096, PROT_READ, MAP_PRIVATE, 0, 0),
	TRY(mprotect, P(page), 4096, PROT_READ | PROT_EXEC),
	TRY(pkey_mprotect, P(page), 4096, PROT_READ | PROT_EXEC, -1ul),
	TRY(remap_file_pages, P(page), 4096, 0, 0, 0),
	TRY(shmget, 1, 4096, 0),
	TRY(msgget, 1, 0),
	TRY(semget, 1, 1, 0),
	TRY(mq_open, P("/x"), 0),

	TRY(bpf, 0, P(zeroes), 64),
	TRY(perf_event_open, P(zeroes), 0, -1ul, -1ul, 0),
	TRY(io_uring_setup, 1, P(page)),
	TRY(io_uring_enter, 0, 0, 0, 0, 0, 0),
	TRY(io_setup, 1, P(page)),
	TRY(userfaultfd, 0),
	TRY(keyctl, 0, 0, 0, 0, 0),
	TRY(add_key, P("user"), P("x"), P("x"), 1, 0),
	TRY(init_module, P(page), 1, P("")),
	TRY(kexec_load, 0, 0, 0, 0),
	TRY(syslog, 3, P(page), 10),
	TRY(personality, 0xffffffff),
	TRY(modify_ldt, 0, P(page), 10),
	TRY(iopl, 0),
	TRY(setuid, 0),
	TRY(setresuid, 0, 0, 0),
	TRY(setgroups, 0, 0),
	TRY(capset, P(page), 0),
	TRY(prctl, PR_SET_DUMPABLE, 1),
	TRY(prctl, PR_SET_PTRACER, -1ul),
	TRY(prctl, PR_SET_SECCOMP, 0),
	TRY(seccomp, 0, 0, 0),
	TRY(prlimit64, 0, RLIMIT_NOFILE, P(zeroes), 0),
	TRY(setpriority, 0, 0, 0),
	TRY(sched_setscheduler, 0, 0, P(zeroes)),
	TRY(setitimer, 0, P(zeroes), 0),
	TRY(timer_create, 0, 0, P(page)),
	TRY(landlock_create_ruleset, 0, 0, 1),
};

static int attempt(const struct attempt *a)
{
	const unsigned long *g = a->args;

	errno = 0;
	if (syscall(a->call, g[0], g[1], g[2], g[3], g[4], g[5]) == -1 && a->error &&
	    errno == a->error)
		return 0;
	return WENT_THROUGH;
}

static int in_child(const struct cell *c, int (*body)(const void *), const void *arg)
{
	const pid_t child = fork();
	int status;

	if (!child) {
		setrlimit(RLIMIT_CORE, &(struct rlimit){ 0 });
		struct cell mine = *c;

		/* The root is the host's: the filter of calls alone must suffice. */
		mine.place = EMPTYROOT_NONE;
		if (cell_enter(&mine, c->listens ? "/" : NULL) || cell_seal(&mine))
			_exit(99);
		_exit(body(arg));
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static int one_attempt(const void *a)
{
	return FILTERED ? attempt(a) : 0;
}

Test(cell, a_sealed_cell_refuses_every_attempt)
{
	for (size_t c = 0; c < sizeof(cells) / sizeof(cells[0]); c++) {
		for (size_t i = 0; i < sizeof(attempts) / sizeof(attempts[0]); i++) {
			const struct attempt *a = &attempts[i];
			const int want = FILTERED && !a->error ? DIED : 0;

			cr_expect_eq(in_child(&cells[c], one_attempt, a), want,
				     "%s (attempt %zu, cell %zu)", a->what, i, c);
		}
	}
}

/* Through the gate of 32-bit programs, which have other numbers: 11 is execve there. */
static int call_by_another_gate(const void *arg)
{
	long r = 11;

	(void)arg;
#ifdef __x86_64__
	if (FILTERED)
		__asm__ volatile("int $0x80" : "+a"(r) : "b"(0), "c"(0), "d"(0) : "memory");
#endif
	return r == 11 ? 0 : WENT_THROUGH;
}

static int call_by_x32(const void *arg)
{
	(void)arg;
	return FILTERED && syscall(0x40000000 | SYS_getpid) != 12345 ? WENT_THROUGH : 0;
}

Test(cell, other_entries_into_the_kernel_are_closed)
{
	cr_expect_eq(in_child(&cells[0], call_by_another_gate, NULL), FILTERED ? DIED : 0);
	cr_expect_eq(in_child(&cells[0], call_by_x32, NULL), FILTERED ? DIED : 0);
}

/* --- what still works --- */

static int live(const void *arg)
{
	char *block = malloc(8 << 20), byte = 0;
	struct timespec t;
	int fds[2] = { -1, -1 };

	(void)arg;
	if (!block)
		return 1;
	memset(block, 1, 8 << 20);
	block = realloc(block, 16 << 20);
	free(block);
	/* stdio of either libc makes these calls. */
	if (syscall(SYS_ioctl, fds[0], TCGETS, page) != -1 || errno != EBADF ||
	    syscall(SYS_ioctl, fds[0], 0x802c542aul, page) != -1 || errno != EBADF)
		return 4;
	if (clock_gettime(CLOCK_MONOTONIC, &t) || nanosleep(&(struct timespec){ 0, 1000 }, NULL) ||
	    poll(NULL, 0, 1) || fcntl(0, F_GETFL) < 0)
		return 2;
	/* A descriptor that was handed over works; one that was not gives an error. */
	if (write(STDERR_FILENO, &byte, 0) || read(fds[0], &byte, 1) != -1 || errno != EBADF)
		return 3;
	return 0;
}

Test(cell, memory_clocks_and_open_descriptors_are_left)
{
	for (size_t c = 0; c < sizeof(cells) / sizeof(cells[0]); c++)
		cr_expect_eq(in_child(&cells[c], live, NULL), 0, "cell %zu", c);
}

static int die(const void *arg)
{
	(void)arg;
	abort();
}

Test(cell, a_failed_assertion_is_seen_as_one)
{
	cr_expect_eq(in_child(&cells[0], die, NULL), 1000 + SIGABRT);
}

static int truncate_output(const void *arg)
{
	return ftruncate(*(const int *)arg, 0) ? errno : 0;
}

Test(cell, only_a_writer_may_truncate_a_file)
{
	const int file = memfd_create("output", MFD_CLOEXEC);

	cr_expect_eq(in_child(&(struct cell){ .writes = true }, truncate_output, &file), 0);
	cr_expect_eq(in_child(&(struct cell){ 0 }, truncate_output, &file), FILTERED ? DIED : 0);
	close(file);
}

/* --- threads --- */

static pthread_barrier_t sealed;

static void *open_when_sealed(void *arg)
{
	pthread_barrier_wait(&sealed);
	syscall(SYS_socket, AF_UNIX, SOCK_STREAM, 0);
	return arg;
}

static int run_a_thread(void)
{
	pthread_t t;

	struct cell c = cells[0];

	pthread_barrier_init(&sealed, NULL, 2);
	cell_prepare(&c, NULL, false);
	if (cell_enter(&c, NULL))
		return 1;
	if (pthread_create(&t, NULL, open_when_sealed, NULL))
		return 2;
	if (cell_seal(&c))
		return 3;
	pthread_barrier_wait(&sealed);
	pthread_join(t, NULL);
	return WENT_THROUGH;
}

Test(cell, running_threads_are_also_sealed)
{
	const pid_t child = fork();
	int status;

	if (!child) {
		setrlimit(RLIMIT_CORE, &(struct rlimit){ 0 });
		_exit(run_a_thread());
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_expect(FILTERED ? WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS
			   : WEXITSTATUS(status) == WENT_THROUGH);
}

static int run_twice(void)
{
	struct cell c = cells[1];

	cell_prepare(&c, NULL, false);
	return cell_enter(&c, "/") || socket(AF_UNIX, SOCK_STREAM, 0) < 0 ? 1
	       : socket(AF_INET, SOCK_STREAM, 0) < 0			  ? 2
									  : WENT_THROUGH;
}

Test(cell, before_it_is_sealed_sockets_are_of_this_host_only)
{
	const pid_t child = fork();
	int status;

	if (!child) {
		setrlimit(RLIMIT_CORE, &(struct rlimit){ 0 });
		_exit(run_twice());
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_expect(FILTERED ? WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS
			   : WEXITSTATUS(status) == WENT_THROUGH);
}

/* --- by hand --- */

struct hand {
	enum cell_hand how;
	int flags;
};

static int by_hand(const struct hand *h, int (*body)(const struct hand *))
{
	const pid_t child = fork();
	int status;

	if (!child) {
		setrlimit(RLIMIT_CORE, &(struct rlimit){ 0 });
		_exit(cell_by_hand(h->how) ? 99 : body(h));
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static int open_it(const struct hand *h)
{
	return open("/etc/passwd", h->flags) < 0 ? errno : 0;
}

static int connect_it(const struct hand *h)
{
	(void)h;
	return FILTERED && socket(AF_INET, SOCK_STREAM, 0) >= 0 ? WENT_THROUGH : 0;
}

static int run_it(const struct hand *h)
{
	(void)h;
	if (FILTERED)
		execl("/bin/true", "true", NULL);
	return 0;
}

Test(cell, by_hand_files_are_opened_to_be_read_only)
{
	for (enum cell_hand how = CELL_READS; how <= CELL_WRITES; how++) {
		const int writes = FILTERED ? how == CELL_WRITES ? EACCES : DIED : 0;

		cr_expect_eq(by_hand(&(struct hand){ how, O_RDONLY | O_CLOEXEC }, open_it),
			     FILTERED && how == CELL_WRITES ? EACCES : 0);
		cr_expect_eq(by_hand(&(struct hand){ how, O_RDWR }, open_it), writes);
		cr_expect_eq(by_hand(&(struct hand){ how, O_WRONLY | O_APPEND }, open_it), writes);
	}
}

Test(cell, by_hand_there_are_no_sockets_and_programs_either)
{
	for (enum cell_hand how = CELL_READS; how <= CELL_WRITES; how++) {
		cr_expect_eq(by_hand(&(struct hand){ how, 0 }, connect_it), FILTERED ? DIED : 0);
		cr_expect_eq(by_hand(&(struct hand){ how, 0 }, run_it), FILTERED ? DIED : 0);
	}
}
