// SPDX-License-Identifier: Apache-2.0
/*
 * Four threads take requests off one queue. One that hangs keeps its place until the kernel lets it
 * go: its request is answered with a timeout, and what it opens in the end is closed by it. A
 * device on which an open hung is not tried again for a while, so that a hostile FUSE mount costs
 * one thread and not four.
 *
 * Where the state is shared with a hanging thread, it outlives the opener: the last one out frees
 * it.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <uthash.h>
#include "common/clock.h"
#include "tools/prof-bpf/opener.h"
#include "tools/prof-bpf/procfs.h"

#define THREAD_STACK (128u << 10)
#define SLOW_DEVICES 16
#define MEMORY_MAPPINGS 65536	     /* of a process, looked through for those of one file */
#define WRITTEN_SLACK_NS 2000000000u /* file systems cut times to two seconds at worst */
#ifndef CIFS_SUPER_MAGIC
#define CIFS_SUPER_MAGIC 0xff534d42
#endif
#define SLOW_NS 60000000000ull

struct job {
	struct opener_request q; /* strings point behind the struct */
	uint64_t ticket;
	opener_done *done;
	void *ctx;
	bool cancelled, answered;
	struct opener_result result;
	struct job *next;
	UT_hash_handle hh; /* by ticket, until the callback */
	char text[];
};

struct worker {
	struct opener *opener;
	struct job *job; /* being worked on, or NULL */
	uint64_t since_ns;
	uint64_t dev; /* of the file that is being opened, 0 before that is known */
};

struct slow_device {
	uint64_t dev, until_ns;
};

struct opener {
	pthread_mutex_t lock;
	pthread_cond_t work;
	struct worker workers[OPENER_THREADS];
	unsigned alive; /* threads */
	bool leaving;
	int proc, event_fd;
	struct job *queue, **queue_end;
	struct job *finished, **finished_end;
	struct job *jobs; /* by ticket */
	size_t waiting;
	uint64_t ticket;
	struct slow_device slow[SLOW_DEVICES];
	struct opener_figures figures;
};

/* --- opening: pure but for the system calls; worker may be NULL --- */

static uint64_t device(uint32_t dev_major, uint32_t dev_minor)
{
	return (uint64_t)dev_major << 32 | dev_minor;
}

static int file_stat(int fd, unsigned sync, struct opener_file *ret)
{
	struct statx x;

	if (statx(fd, "", AT_EMPTY_PATH | sync, STATX_BASIC_STATS, &x))
		return -errno;
	*ret = (struct opener_file){
		.dev = device(x.stx_dev_major, x.stx_dev_minor),
		.inode = x.stx_ino,
		.ctime_ns = (uint64_t)x.stx_ctime.tv_sec * 1000000000u + x.stx_ctime.tv_nsec,
		.mtime_ns = (uint64_t)x.stx_mtime.tv_sec * 1000000000u + x.stx_mtime.tv_nsec,
		.size = x.stx_size,
		.uid = x.stx_uid,
		.mode = x.stx_mode,
		.links = x.stx_nlink,
	};
	return S_ISREG(x.stx_mode) ? 0 : OPENER_NOT_REGULAR;
}

int opener_stat(int fd, struct opener_file *ret)
{
	return file_stat(fd, AT_STATX_DONT_SYNC, ret);
}

/* Without a name and in memory: only descriptors and mappings lead to it. */
static bool is_memory_file(int fd, const struct opener_file *f)
{
	struct statfs s;

	return f->links == 0 && fstatfs(fd, &s) == 0 &&
	       (s.f_type == TMPFS_MAGIC || s.f_type == HUGETLBFS_MAGIC);
}

static bool is_memfd(int fd)
{
	char link[40], to[16];

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	ssize_t n = readlink(link, to, sizeof(to));
	return n >= 7 && memcmp(to, "/memfd:", 7) == 0;
}

static bool is_fuse(int fd)
{
	struct statfs s;

	return fstatfs(fd, &s) || (uint32_t)s.f_type == FUSE_SUPER_MAGIC;
}

static bool is_foreign(int fd)
{
	static const uint32_t magic[] = { FUSE_SUPER_MAGIC, NFS_SUPER_MAGIC,  SMB_SUPER_MAGIC,
					  SMB2_SUPER_MAGIC, CIFS_SUPER_MAGIC, V9FS_MAGIC,
					  CEPH_SUPER_MAGIC, AFS_SUPER_MAGIC,  AFS_FS_MAGIC,
					  CODA_SUPER_MAGIC, NCP_SUPER_MAGIC };
	struct statfs s;

	if (fstatfs(fd, &s))
		return true;
	for (size_t i = 0; i < sizeof(magic) / sizeof(magic[0]); i++) {
		if ((uint32_t)s.f_type == magic[i])
			return true;
	}
	return false;
}

static bool is_elf(int fd)
{
	char magic[4];

	return pread(fd, magic, sizeof(magic), 0) == sizeof(magic) &&
	       memcmp(magic, "\177ELF", sizeof(magic)) == 0;
}

/* Seals a memfd (taken) and gives a descriptor that only reads: a memfd's own is writable. */
static int seal(int copy, int *ret_reader)
{
	char path[40];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", copy);
	*ret_reader = fcntl(copy, F_ADD_SEALS,
			    F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)
			      ? -1
			      : open(path, O_RDONLY | O_CLOEXEC);
	int r = *ret_reader < 0 ? -errno : 0;
	close(copy);
	return r;
}

/* Replaces *fd by a sealed copy. */
static int seal_copy(int *fd, const struct opener_file *f)
{
	if (f->size > OPENER_COPY_MAX)
		return OPENER_TOO_LARGE;
	int copy = memfd_create("profpipe", MFD_CLOEXEC | MFD_ALLOW_SEALING), reader;
	if (copy < 0)
		return -errno;
	uint64_t left = f->size;
	int r = 0;
	while (left) {
		ssize_t n = sendfile(copy, *fd, NULL, left);

		if (n <= 0) {
			r = n < 0 ? -errno : -EIO;
			break;
		}
		left -= (uint64_t)n;
	}
	if (r) {
		close(copy);
		return r;
	}
	r = seal(copy, &reader);
	if (r)
		return r;
	close(*fd);
	*fd = reader;
	return 0;
}

static bool device_is_slow(struct worker *w, uint64_t dev)
{
	bool slow = false;

	if (!w)
		return false;
	struct opener *o = w->opener;
	uint64_t now = clock_mono_ns();

	pthread_mutex_lock(&o->lock);
	for (unsigned i = 0; i < SLOW_DEVICES; i++)
		slow |= o->slow[i].dev == dev && o->slow[i].until_ns > now;
	if (!slow)
		w->dev = dev;
	pthread_mutex_unlock(&o->lock);
	return slow;
}

/* What a process wrote about itself is its user's. Root may have written it for them, but a name
 * that was linked to something of root's is not meant. */
static bool is_theirs(const struct opener_file *f, const struct opener_request *q)
{
	bool own = f->uid == q->uids[0] || f->uid == q->uids[1];
	bool roots = f->uid == 0 && f->links == 1 && f->mode & S_IROTH;

	return (own || roots) && f->mtime_ns + WRITTEN_SLACK_NS >= q->since_ns;
}

/* From an O_PATH descriptor (borrowed) to the open file. */
static int open_checked(struct worker *w, int path_fd, const struct opener_request *q, bool expect,
			struct opener_result *ret)
{
	struct opener_file f;
	char link[40];
	/* What the kernel knows already: this may not ask a server. */
	int r = file_stat(path_fd, AT_STATX_DONT_SYNC, &f);

	if (r)
		return r;
	if (expect && (f.dev != q->dev || f.inode != q->inode))
		return OPENER_OTHER;
	if (q->theirs && !is_theirs(&f, q))
		return -EACCES;
	if (device_is_slow(w, f.dev))
		return OPENER_TIMEOUT;
	if (q->theirs && is_fuse(path_fd))
		return -EACCES; /* what reads it could be kept waiting */
	snprintf(link, sizeof(link), "/proc/self/fd/%d", path_fd);
	int fd = open(link, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	r = file_stat(fd, 0, &f);
	if (!r && is_memory_file(fd, &f)) {
		f.memfd = is_memfd(fd);
		r = q->kind == OPENER_MAPPING && !is_elf(fd) ? OPENER_NO_PROGRAM
							     : seal_copy(&fd, &f);
	}
	if (r) {
		close(fd);
		return r;
	}
	f.foreign = is_foreign(fd);
	ret->fd = fd;
	ret->file = f;
	return 0;
}

static int open_below(struct worker *w, int root, const char *path, const struct opener_request *q,
		      bool expect, struct opener_result *ret)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC | (q->theirs ? O_NOFOLLOW : 0),
				.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
	int fd = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));

	if (fd < 0)
		return -errno;
	int r = open_checked(w, fd, q, expect, ret);
	close(fd);
	return r;
}

/* The root of a process, or ours for pid 0. */
static int open_root(int proc, uint32_t pid)
{
	char path[32];
	int fd;

	if (pid) {
		snprintf(path, sizeof(path), "%u/root", pid);
		fd = openat(proc, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	} else {
		fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	}
	return fd < 0 ? -errno : fd;
}

/* By name, where that still leads to the inode that was mapped. A process that lived for
 * milliseconds is gone with its root by now: its parent's is likely the same, or ours. */
static int open_by_name(struct worker *w, int proc, const struct opener_request *q,
			struct opener_result *ret)
{
	const uint32_t pids[] = { q->pid, q->parent_pid, 0 };
	int result = -ENOENT;

	for (size_t i = 0; i < sizeof(pids) / sizeof(pids[0]); i++) {
		if (i < 2 && !pids[i])
			continue;
		int root = open_root(proc, pids[i]);
		if (root < 0)
			continue;
		int r = open_below(w, root, q->path.data, q, true, ret);
		close(root);
		if (r != -ENOENT && r != -ENOTDIR && r != OPENER_OTHER)
			return r;
		result = r;
	}
	return result;
}

/* --- files of which only the memory of their process can be read --- */

struct memory_copy {
	uint64_t dev, inode, size;
	int memory, to;
	int error;
};

static void copy_pages(void *ctx, const struct procfs_mapping *m)
{
	struct memory_copy *c = ctx;
	uint64_t length = m->end - m->start;
	char page[4096];

	if (c->error || m->kind != PROCFS_FILE || !m->readable || m->writable ||
	    m->inode != c->inode || device(m->dev_major, m->dev_minor) != c->dev)
		return;
	if (length > OPENER_COPY_MAX || m->offset > OPENER_COPY_MAX - length) {
		c->error = OPENER_TOO_LARGE;
		return;
	}
	for (uint64_t at = 0; at < length; at += sizeof(page)) {
		/* Pages behind the file's end cannot be read. */
		if (pread(c->memory, page, sizeof(page), (off_t)(m->start + at)) !=
		    (ssize_t)sizeof(page))
			continue;
		if (pwrite(c->to, page, sizeof(page), (off_t)(m->offset + at)) !=
		    (ssize_t)sizeof(page)) {
			c->error = -EIO;
			return;
		}
		if (m->offset + at + sizeof(page) > c->size)
			c->size = m->offset + at + sizeof(page);
	}
}

/* What process pid has mapped of a file and cannot write to: headers, text and what unwinding
 * needs. */
static int open_memory(int proc, const struct opener_request *q, struct opener_result *ret)
{
	struct memory_copy c = { .dev = q->dev, .inode = q->inode };
	char path[32];

	if (!q->inode)
		return -EACCES;
	snprintf(path, sizeof(path), "%u/mem", q->pid);
	c.memory = openat(proc, path, O_RDONLY | O_CLOEXEC);
	if (c.memory < 0)
		return -errno;
	c.to = memfd_create("profpipe", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	c.error = c.to < 0 ? -errno : 0;
	if (!c.error) {
		ssize_t n = procfs_read_all_maps(proc, q->pid, MEMORY_MAPPINGS, copy_pages, &c);

		c.error = n < 0 ? (int)n : c.error;
	}
	close(c.memory);
	if (!c.error && !c.size)
		c.error = -EACCES;
	if (c.error) {
		if (c.to >= 0)
			close(c.to);
		return c.error;
	}
	/* Of this process's mapping alone: no other shares it. */
	ret->file = (struct opener_file){
		.dev = q->dev,
		.inode = q->inode,
		.ctime_ns = (uint64_t)q->pid << 32 | (q->start >> 12 & UINT32_MAX),
		.size = c.size,
		.uid = UINT32_MAX,
		.links = 1,
		.partial = true,
		.foreign = true,
	};
	return seal(c.to, &ret->fd);
}

static int open_mapping(struct worker *w, int proc, const struct opener_request *q,
			struct opener_result *ret)
{
	char path[80];

	snprintf(path, sizeof(path), "%u/map_files/%llx-%llx", q->pid, (unsigned long long)q->start,
		 (unsigned long long)q->end);
	int fd = openat(proc, path, O_PATH | O_CLOEXEC);
	if (fd >= 0) {
		int r = open_checked(w, fd, q, false, ret);

		close(fd);
		return r == -EACCES ? open_memory(proc, q, ret) : r;
	}
	int error = -errno;
	/* Gone from there already, or not ours to follow. */
	if (!q->path.len || q->path.data[0] != '/' || !q->inode)
		return error;
	return open_by_name(w, proc, q, ret);
}

/* Candidate n of where a debug file may lie. False: there are no more. */
static bool debug_path(const struct opener_request *q, unsigned n, char *to, size_t size)
{
	if (q->kind == OPENER_BUILD_ID) {
		size_t at = (size_t)snprintf(to, size, "/usr/lib/debug/.build-id/%02x/",
					     q->build_id.data[0]);

		if (n)
			return false;
		for (size_t i = 1; i < q->build_id.len; i++)
			at += (size_t)snprintf(to + at, size - at, "%02x", q->build_id.data[i]);
		snprintf(to + at, size - at, ".debug");
		return true;
	}
	const char *slash = memrchr(q->path.data, '/', q->path.len);
	int folder = slash ? (int)(slash - q->path.data) : 0;
	struct str own = { .data = slash ? slash + 1 : q->path.data,
			   .len = q->path.len - (uint32_t)(slash ? folder + 1 : 0) };
	static const char *const before[] = { "", "", "/usr/lib/debug" }, *const after[] = {
		"", "/.debug", ""
	};

	if (n >= 3)
		return false;
	int len = snprintf(to, size, "%s%.*s%s/%s", before[n], folder, q->path.data, after[n],
			   q->name.data);
	/* A file is not its own debug file: the first place is passed over. */
	if (len < 0 || (size_t)len >= size || (n == 0 && str_eq(own, q->name)))
		to[0] = 0;
	return true;
}

/* Whoever asks for a debug file names it: so it gets an ELF file that anybody on the host may read,
 * and nothing else that lies beside a program. */
static bool is_public_elf(const struct opener_result *r)
{
	return r->file.mode & S_IROTH && is_elf(r->fd);
}

static int open_debug(struct worker *w, int proc, const struct opener_request *q,
		      struct opener_result *ret)
{
	char path[OPENER_PATH_MAX + 300];
	int result = -ENOENT;

	for (unsigned ours = q->pid ? 0 : 1; ours < 2; ours++) {
		int root = open_root(proc, ours ? 0 : q->pid);

		if (root < 0)
			continue;
		for (unsigned n = 0; debug_path(q, n, path, sizeof(path)); n++) {
			int r = path[0] ? open_below(w, root, path, q, false, ret) : -ENOENT;

			if (r == 0 && is_public_elf(ret)) {
				close(root);
				return 0;
			}
			if (r == 0) {
				close(ret->fd);
				*ret = (struct opener_result){ .fd = -1 };
				r = -EACCES;
			}
			if (r != -ENOENT && r != -ENOTDIR)
				result = r;
		}
		close(root);
	}
	return result;
}

static int open_folder(int proc, const struct opener_request *q, struct opener_result *ret)
{
	struct open_how how = { .flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
				.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
	int root = open_root(proc, q->pid), r = 0;

	if (root < 0)
		return root;
	ret->fd = (int)syscall(SYS_openat2, root, q->path.data, &how, sizeof(how));
	if (ret->fd < 0) {
		r = -errno;
		ret->fd = -1;
	}
	close(root);
	return r;
}

static void open_request(struct worker *w, int proc, const struct opener_request *q,
			 struct opener_result *ret)
{
	*ret = (struct opener_result){ .fd = -1 };
	if (q->kind == OPENER_MAPPING) {
		ret->status = open_mapping(w, proc, q, ret);
	} else if (q->kind == OPENER_PATH && q->expect_inode) {
		ret->status = open_by_name(w, proc, q, ret);
	} else if (q->kind == OPENER_IN_FOLDER) {
		ret->status = open_below(w, q->folder, q->path.data, q, false, ret);
	} else if (q->kind == OPENER_FOLDER) {
		ret->status = open_folder(proc, q, ret);
	} else if (q->kind == OPENER_PATH) {
		int root = open_root(proc, q->pid);

		ret->status = root;
		if (root >= 0) {
			ret->status = open_below(w, root, q->path.data, q, false, ret);
			close(root);
		}
	} else {
		ret->status = open_debug(w, proc, q, ret);
	}
}

/* --- requests --- */

static bool text_is_fit(struct str s, size_t max)
{
	return s.len < max && (!s.len || !memchr(s.data, 0, s.len));
}

static int request_check(const struct opener_request *q)
{
	if (!text_is_fit(q->path, OPENER_PATH_MAX) || !text_is_fit(q->name, 256) ||
	    q->pid > INT32_MAX || q->parent_pid > INT32_MAX)
		return -EINVAL;
	if (q->kind == OPENER_MAPPING && !q->pid)
		return -EINVAL;
	if (q->kind == OPENER_BUILD_ID && (q->build_id.len < 2 || q->build_id.len > 64))
		return -EINVAL;
	if (q->kind == OPENER_DEBUGLINK &&
	    (!q->name.len || memchr(q->name.data, '/', q->name.len) || !q->path.len ||
	     q->path.data[0] != '/' || str_eq(q->name, STR_LIT("..")) ||
	     str_eq(q->name, STR_LIT("."))))
		return -EINVAL;
	if ((q->kind == OPENER_PATH || q->kind == OPENER_FOLDER) &&
	    (!q->path.len || q->path.data[0] != '/'))
		return -EINVAL;
	if (q->kind == OPENER_IN_FOLDER && (!q->path.len || memchr(q->path.data, '/', q->path.len)))
		return -EINVAL;
	return 0;
}

/* A copy with NUL-terminated strings, or NULL. */
static struct job *job_new(const struct opener_request *q)
{
	struct job *j = calloc(1, sizeof(*j) + q->path.len + 1 + q->name.len + 1 + q->build_id.len);

	if (!j)
		return NULL;
	j->q = *q;
	char *at = j->text;
	if (q->path.len)
		memcpy(at, q->path.data, q->path.len);
	j->q.path.data = at;
	at += q->path.len + 1;
	if (q->name.len)
		memcpy(at, q->name.data, q->name.len);
	j->q.name.data = at;
	at += q->name.len + 1;
	if (q->build_id.len)
		memcpy(at, q->build_id.data, q->build_id.len);
	j->q.build_id.data = (const uint8_t *)at;
	j->result.fd = -1;
	if (q->kind == OPENER_IN_FOLDER) {
		j->q.folder = fcntl(q->folder, F_DUPFD_CLOEXEC, 3);
		if (j->q.folder < 0) {
			free(j);
			return NULL;
		}
	}
	return j;
}

static void job_free(struct job *j)
{
	if (!j)
		return;
	if (j->result.fd >= 0)
		close(j->result.fd);
	if (j->q.kind == OPENER_IN_FOLDER)
		close(j->q.folder);
	free(j);
}

void opener_open_now(int proc, const struct opener_request *q, struct opener_result *ret)
{
	*ret = (struct opener_result){ .fd = -1, .status = request_check(q) };
	if (ret->status)
		return;
	struct job *j = job_new(q);
	if (!j) {
		ret->status = -ENOMEM;
		return;
	}
	open_request(NULL, proc, &j->q, ret);
	job_free(j);
}

/* --- threads --- */

static void opener_destroy(struct opener *o)
{
	if (o->proc >= 0)
		close(o->proc);
	if (o->event_fd >= 0)
		close(o->event_fd);
	pthread_cond_destroy(&o->work);
	pthread_mutex_destroy(&o->lock);
	free(o);
}

/* Under the lock. */
static void finish(struct opener *o, struct job *j)
{
	uint64_t one = 1;

	j->answered = true;
	j->next = NULL;
	*o->finished_end = j;
	o->finished_end = &j->next;
	if (o->finished == j)
		(void)!write(o->event_fd, &one, sizeof(one));
}

static void *worker_run(void *arg)
{
	struct worker *w = arg;
	struct opener *o = w->opener;

	pthread_mutex_lock(&o->lock);
	while (!o->leaving) {
		struct job *j = o->queue;

		if (!j) {
			pthread_cond_wait(&o->work, &o->lock);
			continue;
		}
		o->queue = j->next;
		if (!o->queue)
			o->queue_end = &o->queue;
		o->waiting--;
		if (j->cancelled) {
			finish(o, j);
			continue;
		}
		w->job = j;
		w->since_ns = clock_mono_ns();
		w->dev = 0;
		pthread_mutex_unlock(&o->lock);

		struct opener_result result;
		open_request(w, o->proc, &j->q, &result);

		pthread_mutex_lock(&o->lock);
		if (w->job != j) {
			/* Given up on meanwhile: the job is this thread's to free. */
			j->result = result;
			job_free(j);
			o->figures.hanging--;
			continue;
		}
		w->job = NULL;
		j->result = result;
		finish(o, j);
	}
	bool last = --o->alive == 0;
	pthread_mutex_unlock(&o->lock);
	if (last)
		opener_destroy(o);
	return NULL;
}

int opener_new(const char *proc, struct opener **ret)
{
	struct opener *o = calloc(1, sizeof(*o));
	pthread_attr_t attr;
	sigset_t all, old;
	int r = 0;

	if (!o)
		return -ENOMEM;
	pthread_mutex_init(&o->lock, NULL);
	pthread_cond_init(&o->work, NULL);
	o->queue_end = &o->queue;
	o->finished_end = &o->finished;
	o->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	o->proc = open(proc, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (o->event_fd < 0 || o->proc < 0) {
		r = -errno;
		opener_destroy(o);
		return r;
	}
	/* Signals are main's. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, THREAD_STACK);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	o->alive = OPENER_THREADS;
	for (unsigned i = 0; i < OPENER_THREADS && !r; i++) {
		pthread_t thread;

		o->workers[i].opener = o;
		r = -pthread_create(&thread, &attr, worker_run, &o->workers[i]);
		if (r) {
			pthread_mutex_lock(&o->lock);
			o->alive -= OPENER_THREADS - i;
			pthread_mutex_unlock(&o->lock);
			if (i == 0)
				opener_destroy(o);
			else
				opener_free(o);
		}
	}
	pthread_attr_destroy(&attr);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (r)
		return r;
	*ret = o;
	return 0;
}

void opener_free(struct opener *o)
{
	struct job *j, *next;

	if (!o)
		return;
	pthread_mutex_lock(&o->lock);
	o->leaving = true;
	HASH_CLEAR(hh, o->jobs);
	for (j = o->queue; j; j = next) {
		next = j->next;
		job_free(j);
	}
	o->queue = NULL;
	for (j = o->finished; j; j = next) {
		next = j->next;
		job_free(j);
	}
	o->finished = NULL;
	/* What is being worked on is the thread's from here on. */
	for (unsigned i = 0; i < OPENER_THREADS; i++)
		o->workers[i].job = NULL;
	pthread_cond_broadcast(&o->work);
	pthread_mutex_unlock(&o->lock);
}

int opener_fd(const struct opener *o)
{
	return o->event_fd;
}

int opener_submit(struct opener *o, const struct opener_request *q, opener_done *done, void *ctx,
		  uint64_t *ret_ticket)
{
	int r = request_check(q);

	if (r)
		return r;
	struct job *j = job_new(q);
	if (!j)
		return -ENOMEM;
	j->done = done;
	j->ctx = ctx;
	pthread_mutex_lock(&o->lock);
	if (o->waiting >= OPENER_QUEUE_MAX) {
		pthread_mutex_unlock(&o->lock);
		job_free(j);
		return -ENOBUFS;
	}
	j->ticket = ++o->ticket;
	HASH_ADD(hh, o->jobs, ticket, sizeof(j->ticket), j);
	*o->queue_end = j;
	o->queue_end = &j->next;
	o->waiting++;
	*ret_ticket = j->ticket;
	pthread_cond_signal(&o->work);
	pthread_mutex_unlock(&o->lock);
	return 0;
}

void opener_cancel(struct opener *o, uint64_t ticket)
{
	struct job *j;

	pthread_mutex_lock(&o->lock);
	HASH_FIND(hh, o->jobs, &ticket, sizeof(ticket), j);
	if (j)
		j->cancelled = true;
	pthread_mutex_unlock(&o->lock);
}

/* Under the lock: answers for a thread that hangs, or for a request that found all of them hanging.
 */
static void give_up(struct opener *o, struct job *j, const struct job *hung)
{
	j->ticket = hung->ticket;
	j->done = hung->done;
	j->ctx = hung->ctx;
	j->cancelled = hung->cancelled;
	j->result.status = OPENER_TIMEOUT;
	o->figures.timeouts++;
	finish(o, j);
}

static void mark_slow(struct opener *o, uint64_t dev, uint64_t now_ns)
{
	struct slow_device *oldest = &o->slow[0];

	for (unsigned i = 0; i < SLOW_DEVICES; i++) {
		if (o->slow[i].dev == dev) {
			o->slow[i].until_ns = now_ns + SLOW_NS;
			return;
		}
		if (o->slow[i].until_ns < oldest->until_ns)
			oldest = &o->slow[i];
	}
	*oldest = (struct slow_device){ .dev = dev, .until_ns = now_ns + SLOW_NS };
}

/* Under the lock. */
static void expire(struct opener *o, uint64_t now_ns)
{
	unsigned hanging = 0;

	for (unsigned i = 0; i < OPENER_THREADS; i++) {
		struct worker *w = &o->workers[i];

		if (!w->job || now_ns < w->since_ns || now_ns - w->since_ns < OPENER_DEADLINE_NS)
			continue;
		/* The hanging thread keeps its job; what is handed back is a stand-in. */
		struct job *stand_in = calloc(1, sizeof(*stand_in) + 1);
		if (!stand_in)
			return;
		stand_in->result.fd = -1;
		struct job *hung = w->job;
		HASH_DEL(o->jobs, hung);
		w->job = NULL;
		o->figures.hanging++;
		if (w->dev)
			mark_slow(o, w->dev, now_ns);
		give_up(o, stand_in, hung);
		HASH_ADD(hh, o->jobs, ticket, sizeof(stand_in->ticket), stand_in);
	}
	hanging = o->figures.hanging;
	if (hanging < o->alive)
		return;
	while (o->queue) {
		struct job *j = o->queue;

		o->queue = j->next;
		o->waiting--;
		give_up(o, j, j);
	}
	o->queue_end = &o->queue;
}

size_t opener_run(struct opener *o, uint64_t now_ns)
{
	uint64_t n;
	size_t called = 0;

	pthread_mutex_lock(&o->lock);
	expire(o, now_ns);
	struct job *list = o->finished;
	o->finished = NULL;
	o->finished_end = &o->finished;
	(void)!read(o->event_fd, &n, sizeof(n));
	for (struct job *j = list; j; j = j->next) {
		if (j->result.status == 0 && !j->cancelled)
			o->figures.opened++;
		else
			o->figures.failed++;
		if (j->result.file.memfd)
			o->figures.copies++;
	}
	pthread_mutex_unlock(&o->lock);

	while (list) {
		struct job *j = list;

		list = j->next;
		/* A callback before this one may have cancelled it. */
		pthread_mutex_lock(&o->lock);
		HASH_DEL(o->jobs, j);
		pthread_mutex_unlock(&o->lock);
		if (!j->cancelled) {
			j->done(j->ctx, &j->result);
			j->result.fd = -1;
			called++;
		}
		job_free(j);
	}
	return called;
}

void opener_figures(struct opener *o, struct opener_figures *ret)
{
	pthread_mutex_lock(&o->lock);
	*ret = o->figures;
	pthread_mutex_unlock(&o->lock);
}
