/* SPDX-License-Identifier: Apache-2.0 */
/* Source: gdb's manual, "Debugging Information in Separate Files"; dwz(1). */
#include "common/names/program/finder.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "common/base/system/clock.h"

#define DEBUG_DIR "/usr/lib/debug"
#define MAX_VDSO (64u << 10)

/* Checks the file before opening it: opening a device or a FIFO can have effects, and the path may
 * be hostile. Without /proc the path is resolved twice. */
int finder_open(const char *path)
{
	char self[64];
	struct stat st;
	const int at = open(path, O_PATH | O_CLOEXEC);

	if (at < 0)
		return -errno;
	int fd = -EINVAL;

	if (fstat(at, &st) == 0 && S_ISREG(st.st_mode)) {
		snprintf(self, sizeof(self), "/proc/self/fd/%d", at);
		fd = open(self, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
		if (fd < 0 && errno == ENOENT)
			fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
		if (fd < 0)
			fd = -errno;
	}
	close(at);
	return fd;
}

/* Copies the vDSO from this process's memory. It is the same in all processes. */
static int open_vdso(void)
{
	const uint8_t *at = (const uint8_t *)getauxval(AT_SYSINFO_EHDR);
	Elf64_Ehdr e;
	uint64_t size;
	int fd;

	if (!at)
		return -ENOENT;
	memcpy(&e, at, sizeof(e));
	size = e.e_shoff + (uint64_t)e.e_shnum * e.e_shentsize;
	if (memcmp(e.e_ident, ELFMAG, SELFMAG) != 0 || size < sizeof(e) || size > MAX_VDSO)
		return -EINVAL;
	fd = memfd_create("vdso", MFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (write(fd, at, size) != (ssize_t)size) {
		close(fd);
		return -EIO;
	}
	return fd;
}

static bool is_file(const struct stat *st, const struct msg_file *file)
{
	return st->st_dev == makedev((unsigned)(file->dev >> 32), (unsigned)file->dev) &&
	       st->st_ino == file->inode && (uint64_t)st->st_size == file->size &&
	       clock_timespec_ns(st->st_ctim) == file->ctime_ns;
}

static bool has_build_id(int fd, struct span build_id)
{
	struct symfile *f;
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	struct span id;
	bool same;

	if (copy < 0)
		return false;
	if (symfile_open(copy, &f) != 0) {
		close(copy);
		return false;
	}
	id = symfile_build_id(f);
	same = id.len > 0 && id.len == build_id.len && memcmp(id.data, build_id.data, id.len) == 0;
	symfile_free(f);
	return same;
}

int finder_open_stream(const struct msg_file *file, bool same_kernel)
{
	char path[1025];
	struct stat st;
	int fd;

	if (file->flags & MSG_FILE_VDSO)
		return same_kernel ? open_vdso() : -ENOENT;
	if (file->path.len == 0 || file->path.len >= sizeof(path) || file->path.data[0] != '/' ||
	    memchr(file->path.data, '\0', file->path.len))
		return -ENOENT;
	memcpy(path, file->path.data, file->path.len);
	path[file->path.len] = '\0';
	fd = finder_open(path);
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) == 0 &&
	    (is_file(&st, file) || (file->build_id.len > 0 && has_build_id(fd, file->build_id))))
		return fd;
	close(fd);
	return -ESTALE;
}

static int open_build_id(struct span id)
{
	char path[sizeof(DEBUG_DIR "/.build-id/xx/.debug") + 2 * SYMFILE_BUILD_ID];
	size_t at;

	if (id.len < 2 || id.len > SYMFILE_BUILD_ID)
		return -EINVAL;
	at = (size_t)snprintf(path, sizeof(path), DEBUG_DIR "/.build-id/%02x/", id.data[0]);
	for (size_t i = 1; i < id.len; i++)
		at += (size_t)snprintf(path + at, sizeof(path) - at, "%02x", id.data[i]);
	snprintf(path + at, sizeof(path) - at, ".debug");
	return finder_open(path);
}

/* Writes the directory of a path with symbolic links resolved, since debug files are laid out by
 * it; "" on errors. */
static void real_folder(const char *path, char ret[static PATH_MAX])
{
	char *slash;

	if (!realpath(path, ret)) {
		ret[0] = '\0';
		return;
	}
	slash = strrchr(ret, '/');
	if (slash)
		*slash = '\0';
}

static int open_beside(const char *name, const char *path)
{
	char folder[PATH_MAX], candidate[2 * PATH_MAX];
	struct stat self, found;

	if (strchr(name, '/'))
		return -EINVAL;
	real_folder(path, folder);
	for (int place = 0; place < 3; place++) {
		int fd;

		snprintf(candidate, sizeof(candidate), "%s%s%s%s", place == 2 ? DEBUG_DIR : "",
			 folder, place == 1 ? "/.debug/" : "/", name);
		fd = finder_open(candidate);
		if (fd < 0)
			continue;
		/* .gnu_debuglink may name the program itself, which does not help. */
		if (stat(path, &self) == 0 && fstat(fd, &found) == 0 &&
		    self.st_dev == found.st_dev && self.st_ino == found.st_ino) {
			close(fd);
			continue;
		}
		return fd;
	}
	return -ENOENT;
}

/* Opens the file of .gnu_debugaltlink. A relative path is relative to the folder of the file that
 * names it: a debug file below .build-id/xx or in the folder of the program. On Debian it leads to
 * /usr/lib/debug/.dwz in either case. */
static int open_alt(struct span build_id, const char *name, const char *path)
{
	const char *dwz = strstr(name, ".dwz/");
	char folder[PATH_MAX], candidate[2 * PATH_MAX];
	int fd = open_build_id(build_id);

	if (fd < 0 && dwz && !strstr(dwz, "..")) {
		snprintf(candidate, sizeof(candidate), DEBUG_DIR "/%s", dwz);
		fd = finder_open(candidate);
	}
	if (fd < 0 && name[0] == '/') {
		fd = finder_open(name);
	} else if (fd < 0) {
		real_folder(path, folder);
		snprintf(candidate, sizeof(candidate), "%s/%s", folder, name);
		fd = finder_open(candidate);
	}
	return fd;
}

static int open_package(const char *path)
{
	const char *slash = strrchr(path, '/');
	char name[NAME_MAX + 1];
	const int n = snprintf(name, sizeof(name), "%s.dwp", slash ? slash + 1 : path);

	return n > 0 && (size_t)n < sizeof(name) ? open_beside(name, path) : -ENAMETOOLONG;
}

int finder_debug(enum program_want want, struct span build_id, const char *name, const char *path)
{
	switch (want) {
	case PROGRAM_WANTS_BUILD_ID:
		return open_build_id(build_id);
	case PROGRAM_WANTS_NAME:
		return open_beside(name, path);
	case PROGRAM_WANTS_ALT:
		return open_alt(build_id, name, path);
	case PROGRAM_WANTS_PACKAGE:
		return open_package(path);
	case PROGRAM_WANTS_NOTHING:
	case PROGRAM_WANTS_LATER:
		break;
	}
	return -EINVAL;
}

void finder_complete(struct program *p, const char *path)
{
	for (;;) {
		struct span build_id;
		const char *name;
		enum program_want want = program_wants(p, &build_id, &name);

		if (want == PROGRAM_WANTS_NOTHING || want == PROGRAM_WANTS_LATER)
			return;
		/* Each want has only one place, so a refused file ends it. */
		const int fd = program_refused(p) ? -ENOENT
						  : finder_debug(want, build_id, name, path);

		program_offer(p, fd < 0 ? -1 : fd);
	}
}
