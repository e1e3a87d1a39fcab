/* SPDX-License-Identifier: Apache-2.0 */
/* Source: proc(5), /proc/PID/mountinfo and /proc/PID/fdinfo; show_mountinfo in fs/proc_namespace.c
 * escapes blanks and line feeds in names. */
#include "tools/prof-bpf/open/opening/mounts.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/base/files/smallfile.h"
#include "common/base/system/clock.h"

#ifndef MFD_HUGETLB
#define MFD_HUGETLB 4u
#endif

/* --- a line --- */

enum { FIELD_ID = 0, FIELD_DEVICE = 2, FIELD_OPTIONS = 5 };

static void end_field(struct mounts_parser *p)
{
	const bool dash = p->field > FIELD_OPTIONS && p->len == 1 && p->last == '-';

	if (p->field == FIELD_ID)
		p->line.id = p->number;
	else if (p->field == FIELD_DEVICE)
		p->line.dev = p->first << 32 | (p->number & UINT32_MAX);
	else if (p->dash && !p->typed)
		p->typed = true;
	p->dash |= dash;
	p->field++;
	p->len = 0;
	p->number = 0;
}

static void take(struct mounts_parser *p, char c)
{
	if (p->field == FIELD_ID || p->field == FIELD_DEVICE) {
		if (c == ':' && p->field == FIELD_DEVICE && !p->first) {
			p->first = p->number;
			p->number = 0;
		} else if (c >= '0' && c <= '9' && p->number < UINT32_MAX) {
			p->number = p->number * 10 + (uint64_t)(c - '0');
		} else {
			p->bad = true;
		}
	} else if (p->dash && !p->typed && p->len < MOUNTS_TYPE - 1) {
		p->line.type[p->len] = c;
	}
	p->len++;
	p->last = c;
}

bool mounts_feed(struct mounts_parser *p, char c)
{
	if (p->field == FIELD_ID && !p->len)
		*p = (struct mounts_parser){ 0 };
	if (c != ' ' && c != '\n') {
		take(p, c);
		return false;
	}
	end_field(p);
	if (c == ' ')
		return false;
	p->field = 0;
	p->len = 0;
	return p->typed && !p->bad;
}

static bool is_in(const char *type, const char *const list[], size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(type, list[i]))
			return true;
	return false;
}

enum mounts_trust mounts_trust(const char *type)
{
	/* Network file systems are not listed, even if their servers are local: a server that hangs
	 * would keep its users waiting. Nor is autofs, which waits for a daemon. */
	static const char *const local[] = {
		"ext2",	 "ext3",  "ext4",     "xfs",	   "btrfs",  "f2fs",
		"jfs",	 "zfs",	  "bcachefs", "reiserfs",  "nilfs2", "vfat",
		"exfat", "msdos", "ntfs3",    "iso9660",   "udf",    "squashfs",
		"erofs", "romfs", "cramfs",   "hfsplus",   "minix",  "ubifs",
		"jffs2", "tmpfs", "ramfs",    "hugetlbfs", "rootfs", "devtmpfs",
	};
	static const char *const pseudo[] = {
		"proc",	      "sysfs",	  "cgroup",	 "cgroup2",    "cpuset",       "debugfs",
		"tracefs",    "bpf",	  "configfs",	 "securityfs", "devpts",       "mqueue",
		"pstore",     "efivarfs", "binfmt_misc", "fusectl",    "selinuxfs",    "smackfs",
		"rpc_pipefs", "nfsd",	  "resctrl",	 "nsfs",       "binder",       "functionfs",
		"gadgetfs",   "xenfs",	  "openpromfs",	 "pidfs",      "anon_inodefs", "sockfs",
		"pipefs",
	};

	if (is_in(type, local, sizeof(local) / sizeof(local[0])))
		return MOUNTS_LOCAL;
	if (is_in(type, pseudo, sizeof(pseudo) / sizeof(pseudo[0])))
		return MOUNTS_PSEUDO;
	return strcmp(type, "overlay") == 0 ? MOUNTS_LAYERED : MOUNTS_FOREIGN;
}

/* --- the tables of mounts --- */

/* Finds the mount with this number in the namespace of a process, in the first `most` bytes; with
 * number 0, the first mount of this device. who: "1", "self". */
static bool find(const struct mounts *m, const char *who, size_t most, uint64_t id, uint64_t dev,
		 struct mounts_line *ret)
{
	struct mounts_parser p = { 0 };
	char path[40], text[4096];
	bool found = false;
	size_t all = 0;

	snprintf(path, sizeof(path), "%s/mountinfo", who);
	const int fd = openat(m->proc, path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return false;
	while (!found && all < most) {
		const ssize_t n = read(fd, text, sizeof(text));

		if (n <= 0)
			break;
		all += (size_t)n;
		for (ssize_t i = 0; i < n && !found; i++)
			found = mounts_feed(&p, text[i]) &&
				(id ? p.line.id == id : p.line.dev == dev);
	}
	close(fd);
	if (found)
		*ret = p.line;
	return found;
}

/* Finds a mount in the namespace of the host, or of what counts as the host in a container. */
static bool find_on_host(const struct mounts *m, uint64_t id, uint64_t dev, struct mounts_line *ret)
{
	return find(m, "1", MOUNTS_OF_HOST, id, dev, ret) ||
	       find(m, "self", MOUNTS_OF_HOST, id, dev, ret);
}

static uint64_t mount_of(int fd)
{
	char path[40], text[256];

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	(void)smallfile_read(AT_FDCWD, path, text, sizeof(text));
	const char *at = strstr(text, "mnt_id:");

	return at ? strtoull(at + strlen("mnt_id:"), NULL, 10) : 0;
}

static uint64_t device_of(int fd)
{
	struct statx x;

	/* If no fields are requested, FUSE gives the device even if the user may not enter. */
	if (fd < 0 || statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, 0, &x))
		return 0;
	return (uint64_t)x.stx_dev_major << 32 | x.stx_dev_minor;
}

static uint64_t device_of_memfd(unsigned flags)
{
	const int fd = memfd_create("device", MFD_CLOEXEC | flags);
	const uint64_t dev = device_of(fd);

	if (fd >= 0)
		close(fd);
	return dev;
}

static uint64_t device_below(const struct mounts *m, const char *path)
{
	struct mounts_line line = { 0 };
	const int fd = open(path, O_PATH | O_CLOEXEC);

	if (fd >= 0) {
		const uint64_t id = mount_of(fd);

		if (id)
			(void)find(m, "self", MOUNTS_OF_HOST, id, 0, &line);
		close(fd);
	}
	return line.dev;
}

void mounts_init(struct mounts *m, int proc)
{
	*m = (struct mounts){ .proc = proc };
	m->memory[0] = device_of_memfd(0);
	m->memory[1] = device_of_memfd(MFD_HUGETLB);
	m->base[0] = device_below(m, "/");
	m->base[1] = device_below(m, "/usr");
}

/* --- the answer --- */

static bool is_one_of(const uint64_t of[static 2], uint64_t dev)
{
	return dev && (dev == of[0] || dev == of[1]);
}

static enum mounts_trust trust_of(const struct mounts *m, const struct mounts_line *l, bool on_host)
{
	const enum mounts_trust trust = mounts_trust(l->type);
	struct mounts_line other;

	if (is_one_of(m->base, l->dev))
		return MOUNTS_LOCAL;
	if (trust != MOUNTS_LAYERED)
		return trust;
	return on_host || find_on_host(m, 0, l->dev, &other) ? MOUNTS_LOCAL : MOUNTS_FOREIGN;
}

static enum mounts_trust look(const struct mounts *m, uint64_t id, int fd, uint32_t pid,
			      uint64_t *ret_dev)
{
	struct mounts_line line;
	char who[16];

	*ret_dev = 0;
	if (id && find_on_host(m, id, 0, &line)) {
		*ret_dev = line.dev;
		return trust_of(m, &line, true);
	}
	snprintf(who, sizeof(who), "%u", pid);
	if (id && pid && find(m, who, MOUNTS_OF_USER, id, 0, &line)) {
		*ret_dev = line.dev;
		return trust_of(m, &line, false);
	}
	/* A mount that is in no namespace: the kernel's own for memfds, or one that was
	 * unmounted. */
	*ret_dev = device_of(fd);
	if (is_one_of(m->memory, *ret_dev))
		return MOUNTS_LOCAL;
	return *ret_dev && find_on_host(m, 0, *ret_dev, &line) ? trust_of(m, &line, true)
							       : MOUNTS_FOREIGN;
}

enum mounts_trust mounts_of(struct mounts *m, int fd, uint32_t pid, uint64_t *ret_dev)
{
	const uint64_t id = mount_of(fd), now_ns = clock_mono_ns();

	for (unsigned i = 0; id && i < MOUNTS_KEPT; i++) {
		const struct mounts_answer *a = &m->kept[i];

		if (a->id == id && now_ns - a->since_ns < MOUNTS_KEPT_NS) {
			*ret_dev = a->dev;
			return a->trust;
		}
	}
	const enum mounts_trust trust = look(m, id, fd, pid, ret_dev);

	m->kept[m->next++ % MOUNTS_KEPT] = (struct mounts_answer){
		.id = id, .dev = *ret_dev, .since_ns = now_ns, .trust = trust
	};
	return trust;
}
