/* SPDX-License-Identifier: Apache-2.0 */
/* Attempts of an attacker who runs code in prof-bpf. Each runs in a forked child of root that has
 * entered prof-bpf's filter and nothing else, so only the filter can stop it. Under
 * AddressSanitizer there is no filter. */
#include "tools/prof-bpf/system_calls.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/openat2.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
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

#define KILLED (1000 + SIGSYS)

struct attempt {
	const char *name;
	long number, args[6];
	int want; /* KILLED, an errno, or 0: it succeeds */
};

static struct open_how reads = { .flags = O_RDONLY };
static char path[] = "/dev/null", memory[64];
static union bpf_attr attr;
static struct perf_event_attr event = { .size = sizeof(event), .type = PERF_TYPE_SOFTWARE };
static struct rlimit limit = { 1, 1 };

#define P(x) ((long)(x))
#define THREAD (CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM)

static int try(const struct attempt *a)
{
	const pid_t child = fork();
	int status;

	if (!child) {
		setrlimit(RLIMIT_CORE, &(struct rlimit){ 0 });
		if (system_calls_enter(0, 0))
			_exit(99);
		const long r = syscall(a->number, a->args[0], a->args[1], a->args[2], a->args[3],
				       a->args[4], a->args[5]);

		_exit(r < 0 ? errno : 0);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

Test(system_calls, calls_beyond_reading_kill_and_reading_works)
{
	const struct attempt all[] = {
		{ "open to write", SYS_openat, { AT_FDCWD, P(path), O_WRONLY }, KILLED },
		{ "open to read and write", SYS_openat, { AT_FDCWD, P(path), O_RDWR }, KILLED },
		{ "make a file", SYS_openat, { AT_FDCWD, P("/tmp"), O_TMPFILE | O_RDWR }, KILLED },
		{ "cut a file", SYS_openat, { AT_FDCWD, P(path), O_RDONLY | O_TRUNC }, KILLED },
		{ "make by reading",
		  SYS_openat,
		  { AT_FDCWD, P("/tmp/x"), O_RDONLY | O_CREAT },
		  KILLED },
		{ "open of old", SYS_open, { P(path), O_RDONLY }, KILLED },
		{ "openat2", SYS_openat2, { AT_FDCWD, P(path), P(&reads), sizeof(reads) }, KILLED },
		{ "open by handle", SYS_open_by_handle_at, { -1 }, KILLED },
		{ "write as another", SYS_process_vm_writev, { 1 }, KILLED },
		{ "trace", SYS_ptrace, { PTRACE_SEIZE, 1 }, KILLED },
		{ "take a descriptor", SYS_pidfd_getfd, { -1 }, KILLED },
		{ "a program", SYS_execve, { P("/bin/sh") }, KILLED },
		{ "a program by descriptor", SYS_execveat, { -1 }, KILLED },
		{ "a process", SYS_clone, { SIGCHLD }, KILLED },
		{ "a process that shares memory", SYS_clone, { CLONE_VM | SIGCHLD }, KILLED },
		{ "a namespace of users", SYS_clone, { THREAD | CLONE_NEWUSER }, KILLED },
		{ "a process the old way", SYS_fork, { 0 }, KILLED },
		{ "a process the oldest way", SYS_vfork, { 0 }, KILLED },
		{ "a process the new way", SYS_clone3, { P(memory), 64 }, ENOSYS },
		{ "kill", SYS_kill, { 1, SIGTERM }, KILLED },
		{ "kill a thread", SYS_tkill, { 1, SIGTERM }, KILLED },
		{ "kill a thread of another", SYS_tgkill, { 1, 1, SIGABRT }, KILLED },
		{ "kill by descriptor", SYS_pidfd_send_signal, { -1 }, KILLED },
		{ "a socket", SYS_socket, { AF_INET, SOCK_STREAM }, KILLED },
		{ "a socket of files", SYS_socket, { AF_UNIX, SOCK_STREAM }, KILLED },
		{ "connect", SYS_connect, { -1 }, KILLED },
		{ "bind", SYS_bind, { -1 }, KILLED },
		{ "listen", SYS_listen, { 0 }, KILLED },
		{ "a program of BPF", SYS_bpf, { BPF_PROG_LOAD, P(&attr), sizeof(attr) }, KILLED },
		{ "types of BPF", SYS_bpf, { BPF_BTF_LOAD, P(&attr), sizeof(attr) }, KILLED },
		{ "pinned BPF", SYS_bpf, { BPF_OBJ_GET, P(&attr), sizeof(attr) }, KILLED },
		{ "maps of others",
		  SYS_bpf,
		  { BPF_MAP_GET_FD_BY_ID, P(&attr), sizeof(attr) },
		  KILLED },
		{ "programs of others",
		  SYS_bpf,
		  { BPF_PROG_GET_FD_BY_ID, P(&attr), sizeof(attr) },
		  KILLED },
		{ "a tracepoint",
		  SYS_bpf,
		  { BPF_RAW_TRACEPOINT_OPEN, P(&attr), sizeof(attr) },
		  KILLED },
		{ "a program on a socket",
		  SYS_bpf,
		  { BPF_PROG_ATTACH, P(&attr), sizeof(attr) },
		  KILLED },
		{ "an event", SYS_perf_event_open, { P(&event), -1, 0, -1, 0 }, KILLED },
		{ "code",
		  SYS_mmap,
		  { 0, 4096, PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1 },
		  KILLED },
		{ "code of data", SYS_mprotect, { P(memory), 64, PROT_READ | PROT_EXEC }, KILLED },
		{ "code by key", SYS_pkey_mprotect, { P(memory), 64, PROT_EXEC, 0 }, KILLED },
		{ "become root", SYS_setresuid, { 0, 0, 0 }, KILLED },
		{ "become root's group", SYS_setresgid, { 0, 0, 0 }, KILLED },
		{ "capabilities", SYS_capset, { P(memory), P(memory) }, KILLED },
		{ "be dumpable", SYS_prctl, { PR_SET_DUMPABLE, 1 }, KILLED },
		{ "another filter", SYS_seccomp, { 1, 0, P(memory) }, KILLED },
		{ "mount", SYS_mount, { P(path), P(path), 0, 0, 0 }, KILLED },
		{ "a mount the new way", SYS_fsopen, { P("tmpfs") }, KILLED },
		{ "another namespace", SYS_setns, { -1, 0 }, KILLED },
		{ "a namespace", SYS_unshare, { CLONE_NEWUSER }, KILLED },
		{ "a root", SYS_chroot, { P("/") }, KILLED },
		{ "a module", SYS_finit_module, { -1 }, KILLED },
		{ "another kernel", SYS_kexec_load, { 0 }, KILLED },
		{ "keys", SYS_keyctl, { 0 }, KILLED },
		{ "userfaultfd", SYS_userfaultfd, { 0 }, KILLED },
		{ "io_uring", SYS_io_uring_setup, { 1, P(memory) }, KILLED },
		{ "limits of itself", SYS_prlimit64, { 0, RLIMIT_NOFILE, P(&limit), 0 }, KILLED },
		{ "limits of another", SYS_prlimit64, { 1, RLIMIT_NOFILE, 0, P(&limit) }, KILLED },
		{ "priority", SYS_setpriority, { 0, 1, -20 }, KILLED },
		{ "mode", SYS_fchmodat, { AT_FDCWD, P(path), 0666 }, KILLED },
		{ "owner", SYS_fchownat, { AT_FDCWD, P(path), 0, 0, 0 }, KILLED },
		{ "a name", SYS_linkat, { AT_FDCWD, P(path), AT_FDCWD, P("/tmp/x"), 0 }, KILLED },
		{ "another name",
		  SYS_renameat2,
		  { AT_FDCWD, P(path), AT_FDCWD, P(path), 0 },
		  KILLED },
		{ "a folder", SYS_mkdirat, { AT_FDCWD, P("/tmp/x"), 0700 }, KILLED },
		{ "no name", SYS_unlink, { P("/nowhere/x") }, EPERM },
		{ "no name either", SYS_unlinkat, { AT_FDCWD, P("/nowhere/x"), 0 }, KILLED },
		{ "an ioctl", SYS_ioctl, { 0, 0x5412 /* TIOCSTI */, P(memory) }, KILLED },
		{ "who is told", SYS_fcntl, { 0, F_SETOWN, 1 }, KILLED },
		{ "time", SYS_clock_settime, { 0, P(memory) }, KILLED },
		{ "the end", SYS_reboot, { 0 }, KILLED },
		{ "a call of tomorrow", 500, { 0 }, ENOSYS },
		/* Its ordinary work. */
		{ "read a file", SYS_openat, { AT_FDCWD, P(path), O_RDONLY | O_CLOEXEC }, 0 },
		{ "find a file", SYS_openat, { AT_FDCWD, P("/tmp"), O_PATH | O_DIRECTORY }, 0 },
		{ "who am i", SYS_getpid, { 0 }, 0 },
		{ "limits", SYS_prlimit64, { 0, RLIMIT_NOFILE, 0, P(&limit) }, 0 },
		{ "memory", SYS_mmap, { 0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1 }, 0 },
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]) && FILTERED; i++) {
		const int got = try(&all[i]);

		cr_expect_eq(got, all[i].want, "%s: %d, not %d", all[i].name, got, all[i].want);
	}
}

static void *idle(void *arg)
{
	return arg;
}

/* Its spare threads are started in this way. */
Test(system_calls, threads_can_be_started)
{
	const pid_t child = fork();
	int status;

	if (!child) {
		pthread_t thread;
		void *ret = NULL;

		setrlimit(RLIMIT_CORE, &(struct rlimit){ 0 });
		if (system_calls_enter(0, 0) || pthread_create(&thread, NULL, idle, &status) ||
		    pthread_join(thread, &ret))
			_exit(1);
		_exit(ret == &status ? 0 : 2);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert_eq(status, 0);
}
