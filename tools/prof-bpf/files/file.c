/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>
#include "common/base/system/clock.h"
#include "common/wire/msg.h"
#include "tools/prof-bpf/files/files_internal.h"
#include "tools/prof-bpf/open/closing.h"
#include "tools/prof-bpf/owners/owners.h"

void file_drop_fd(struct files *f, struct file *file)
{
	if (file->fd < 0)
		return;
	closing_give(file->fd);
	file->fd = -1;
	f->figures.fds--;
	DL_DELETE2(f->open, file, fd_prev, fd_next);
}

void file_keep_fd(struct files *f, struct file *file, int fd, uint64_t now_ns)
{
	file_drop_fd(f, file);
	struct file *old, *next;
	DL_FOREACH_SAFE2(f->open, old, next, fd_next)
	{
		if (f->figures.fds < HOST_MAX_FDS)
			break;
		if (!old->fd_stays)
			file_drop_fd(f, old);
	}
	file->fd = fd;
	file->fd_ns = now_ns;
	f->figures.fds++;
	DL_APPEND2(f->open, file, fd_prev, fd_next);
}

void file_use_fd(struct files *f, struct file *file, uint64_t now_ns)
{
	file->fd_ns = now_ns;
	DL_DELETE2(f->open, file, fd_prev, fd_next);
	DL_APPEND2(f->open, file, fd_prev, fd_next);
}

int file_dup_fd(struct files *f, struct file *file)
{
	int fd = file->fd >= 0 ? fcntl(file->fd, F_DUPFD_CLOEXEC, 3) : -1;

	if (fd >= 0)
		file_use_fd(f, file, clock_mono_ns());
	return fd;
}

void file_drop_slot(struct files *f, struct file *file)
{
	if (!file->pub.slot)
		return;
	tables_file_free(f->config.tables, file->pub.slot);
	owner_release(f->config.owners, file->owner, OWNER_SLOTS, 1);
	file->pub.slot = 0;
	file->owner = NULL;
	f->slots_taken--;
}

void file_forget(struct files *f, struct file *file)
{
	if (f->config.gone)
		f->config.gone(f->config.rows_ctx, &file->pub);
	if (file->refs == 0)
		DL_DELETE(f->idle, file);
	f->agains -= file->again_ns != 0;
	file_drop_fd(f, file);
	file_drop_slot(f, file);
	owner_release(f->config.owners, file->finder, OWNER_FILES, 1);
	for (uint32_t i = 0; file->was_slot && i < TABLES_MAX_FILES; i++) {
		if (f->slots[i] == file)
			f->slots[i] = NULL;
	}
	HASH_DEL(f->by_key, file);
	HASH_DELETE(hh_id, f->by_id, file);
	f->figures.files--;
	free(file->pub.path);
	free(file->runtime);
	free(file);
}

struct file *file_get(struct files *f, struct file *file)
{
	if (file->refs++ == 0)
		DL_DELETE(f->idle, file);
	return file;
}

void file_put(struct files *f, struct file *file)
{
	if (!file || --file->refs)
		return;
	file->idle_ns = clock_mono_ns();
	DL_APPEND(f->idle, file);
}

static bool is_roots(const struct opener_file *o)
{
	return o->uid == 0 && !(o->mode & 022) && !o->memfd && !o->foreign;
}

static struct file_key key_of(const struct opener_file *o)
{
	return (struct file_key){
		.dev = o->dev, .inode = o->inode, .ctime_ns = o->ctime_ns, .size = o->size
	};
}

struct file *file_find(struct files *f, const struct opener_file *o)
{
	const struct file_key key = key_of(o);
	struct file *file;

	HASH_FIND(hh, f->by_key, &key, sizeof(key), file);
	return file;
}

struct file *file_new(struct files *f, const struct opener_file *o, struct str path,
		      struct owner *finder)
{
	struct file *file = calloc(1, sizeof(*file));
	char *copy = strndup(path.len ? path.data : "", path.len);
	if (!file || !copy) {
		free(file);
		free(copy);
		return NULL;
	}
	file->key = key_of(o);
	file->fd = -1;
	file->refs = 1;
	file->foreign = o->foreign || o->memfd || o->partial;
	file->copied = o->copied;
	file->pub = (struct host_file){
		.id = ++f->next_id,
		.dev = o->dev,
		.inode = o->inode,
		.ctime_ns = o->ctime_ns,
		.size = o->size,
		.uid = o->uid,
		.roots = is_roots(o),
		.foreign_owner = o->foreign,
		.mode = o->mode,
		.path = copy,
		.path_len = (uint32_t)strlen(copy),
	};
	if (o->memfd)
		file->pub.flags |= MSG_FILE_MEMFD;
	else if (o->links == 0)
		file->pub.flags |= MSG_FILE_DELETED;
	file->finder = finder;
	owner_hold(f->config.owners, finder, OWNER_FILES, 1);
	HASH_ADD(hh, f->by_key, key, sizeof(file->key), file);
	HASH_ADD(hh_id, f->by_id, pub.id, sizeof(file->pub.id), file);
	f->figures.files++;
	return file;
}

void files_led_to(struct file *file, const struct owner *by)
{
	/* The root of a container is the root of its files only. */
	if (!file->pub.roots || by->key.container || file->pub.flags & MSG_FILE_ROOT_ONLY)
		return;
	file->pub.flags |= MSG_FILE_ROOT_ONLY;
	file->pub.sent = 0;
}

struct file *files_by_id(struct files *f, uint32_t id)
{
	struct file *file;

	HASH_FIND(hh_id, f->by_id, &id, sizeof(id), file);
	return file;
}
