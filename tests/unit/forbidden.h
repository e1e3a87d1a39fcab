/* SPDX-License-Identifier: Apache-2.0 */
/* System calls that a worker of prof-symd may not make. */
#ifndef TESTS_UNIT_FORBIDDEN_H
#define TESTS_UNIT_FORBIDDEN_H

#include <fcntl.h>
#include <linux/io_uring.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>

/* No worker may make the first ones. libdw looks for paths and holes, and paths are refused;
 * workers that read generated code may not make those calls at all. */
#define FORBIDDEN_TO_ALL 18
#define FORBIDDEN_TO_CODE 20

static inline long forbidden(uint64_t which)
{
	static char byte;
	struct iovec v = { .iov_base = &byte, .iov_len = 1 };

	switch (which) {
	case 0:
		return socket(AF_UNIX, SOCK_STREAM, 0);
	case 1:
		return socket(AF_INET, SOCK_STREAM, 0);
	case 2:
		return fork();
	case 3:
		return execl("/bin/true", "true", NULL);
	case 4:
		return kill(getppid(), SIGKILL);
	case 5:
		return ptrace(PTRACE_ATTACH, getppid(), NULL, NULL);
	case 6:
		return process_vm_readv(1, &v, 1, &v, 1, 0);
	case 7:
		return syscall(SYS_io_uring_setup, 1, &(struct io_uring_params){ 0 });
	case 8:
		return memfd_create("m", 0);
	case 9:
		return syscall(SYS_bpf, 0, NULL, 0);
	case 10:
		return syscall(SYS_perf_event_open, NULL, 0, 0, 0, 0);
	case 11:
		return syscall(SYS_userfaultfd, 0);
	case 12:
		return (long)mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS,
				  -1, 0);
	case 13:
		return dup(0);
	case 14:
		return pipe((int[2]){ 0 });
	case 15:
		return setitimer(ITIMER_PROF, &(struct itimerval){ 0 }, NULL);
	case 16:
		return setrlimit(RLIMIT_CPU, &(struct rlimit){ RLIM_INFINITY, RLIM_INFINITY });
	case 17:
		return syscall(SYS_openat2, AT_FDCWD, "/", NULL, 0);
	case 18:
		return open("/etc/passwd", O_RDONLY | O_CLOEXEC);
	case 19:
		return lseek(3, 0, SEEK_SET);
	}
	return -1;
}

#endif
