/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>
#include "common/base/system/clock.h"
#include "common/base/system/procfs.h"
#include "common/wire/msg.h"
#include "tools/prof-bpf/files/files_internal.h"
#include "tools/prof-bpf/owners/owners.h"

static void vdso_size(void *ctx, const struct procfs_mapping *m)
{
	uint64_t *size = ctx;

	if (m->kind == PROCFS_VDSO)
		*size = m->end - m->start;
}

int vdso_new(struct files *f)
{
	const void *at = (const void *)getauxval(AT_SYSINFO_EHDR);
	uint64_t size = 0;

	int proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (proc < 0)
		return -errno;
	ssize_t n = procfs_read_maps(proc, (uint32_t)getpid(), HOST_MAX_MAPPINGS, vdso_size, &size);
	close(proc);
	if (n < 0 || !at || !size)
		return n < 0 ? (int)n : -ENOENT;
	int copy = memfd_create("vdso", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (copy < 0)
		return -errno;
	char path[40];
	snprintf(path, sizeof(path), "/proc/self/fd/%d", copy);
	bool whole = write(copy, at, size) == (ssize_t)size &&
		     fcntl(copy, F_ADD_SEALS,
			   F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) == 0;
	int fd = whole ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	close(copy);
	if (fd < 0)
		return -EIO;

	struct opener_file o = { .size = size, .links = 1, .mode = 0444 };
	struct files_backing *b = calloc(1, sizeof(*b));
	struct owner *root = owners_get(f->config.owners, (struct owner_key){ .uid = 0 });
	struct file *file = b ? file_new(f, &o, STR_LIT("[vdso]"), root) : NULL;
	if (!file) {
		owner_put(f->config.owners, root);
		free(b);
		close(fd);
		return -ENOMEM;
	}
	file->pub.flags = MSG_FILE_VDSO | MSG_FILE_ROOT_ONLY;
	file_keep_fd(f, file, fd, clock_mono_ns());
	file->fd_stays = file->known = true;
	*b = (struct files_backing){
		.files = f, .refs = 1, .state = FILES_BACKING_READY, .file = file, .fd = -1
	};
	f->vdso = b;
	f->vdso_size = size;
	(void)files_sampled(f, file, (struct files_mapper){ .owner = root }, clock_mono_ns());
	owner_put(f->config.owners, root);
	return 0;
}

struct files_backing *files_vdso(struct files *f, uint64_t start, uint64_t end)
{
	/* A 32-bit process has a different vDSO. */
	if (!f->vdso || end - start != f->vdso_size || end <= UINT32_MAX)
		return NULL;
	return files_backing_get(f->vdso);
}
