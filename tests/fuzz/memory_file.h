/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file in memory, read without system calls. In this program, pread and fstat of the descriptor
 * MEMORY_FILE use the bytes of memory_file; other descriptors go to the kernel. A memfd would take
 * a hundred times longer than most parsers. For libraries that read by themselves,
 * memory_file_for_all puts the same bytes into a real memfd.
 *
 * For one C file of a target that is linked with MEMORY_FILE of module.mk.
 */
#ifndef TESTS_FUZZ_MEMORY_FILE_H
#define TESTS_FUZZ_MEMORY_FILE_H

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MEMORY_FILE 1000000

static struct {
	const uint8_t *data;
	size_t size;
	int fd;
} memory_file = { .fd = MEMORY_FILE };

static inline int memory_file_open(const uint8_t *data, size_t size)
{
	memory_file.data = data;
	memory_file.size = size;
	return memory_file.fd;
}

ssize_t __wrap_pread(int fd, void *into, size_t n, off_t at);
ssize_t __wrap_pread(int fd, void *into, size_t n, off_t at)
{
	if (fd != memory_file.fd)
		return syscall(SYS_pread64, fd, into, n, at);
	if (at < 0) {
		errno = EINVAL;
		return -1;
	}
	if ((size_t)at >= memory_file.size)
		return 0;
	if (n > memory_file.size - (size_t)at)
		n = memory_file.size - (size_t)at;
	memcpy(into, memory_file.data + at, n);
	return (ssize_t)n;
}

/* The form that _FORTIFY_SOURCE calls. */
ssize_t __wrap___pread_chk(int fd, void *into, size_t n, off_t at, size_t size);
ssize_t __wrap___pread_chk(int fd, void *into, size_t n, off_t at, size_t size)
{
	return n > size ? -1 : __wrap_pread(fd, into, n, at);
}

int __wrap_fstat(int fd, struct stat *st);
int __wrap_fstat(int fd, struct stat *st)
{
	if (fd != memory_file.fd)
		return fstatat(fd, "", st, AT_EMPTY_PATH);
	*st = (struct stat){ .st_mode = S_IFREG | 0644, .st_size = (off_t)memory_file.size };
	return 0;
}

static inline int memory_file_for_all(const uint8_t *data, size_t size)
{
	if (memory_file.fd == MEMORY_FILE)
		memory_file.fd = memfd_create("fuzz", MFD_CLOEXEC);
	if (memory_file.fd < 0 || ftruncate(memory_file.fd, (off_t)size) ||
	    pwrite(memory_file.fd, data, size, 0) != (ssize_t)size)
		abort();
	return memory_file_open(data, size);
}

#endif
