/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-dump/walker.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include "bpf/reasons.h"
#include "common/base/command/exits.h"
#include "common/base/command/log.h"
#include "common/base/system/clock.h"
#include "common/base/system/procfs.h"
#include "common/names/elf/symfile.h"
#include "tools/prof-dump/names/generated.h"
#include "tools/prof-dump/names/runtimes.h"
#include "tools/prof-dump/print.h"
#include "tools/prof-dump/process/core.h"
#include "tools/prof-dump/process/message.h"
#include "tools/prof-dump/space/image.h"
#include "tools/prof-dump/space/stack.h"

#define MAX_STACKS (1u << 16)

/* The dump has failed, and the reason is logged. */
enum walker_verdict { WALKER_FAILED = 1 };

struct walker {
	const struct walker_options *o;
	int socket, memory;
	struct core *core;
	struct tables *tables;
	struct space space;
	struct generated generated;
	struct image image; /* of a file that cannot be opened */
	struct message_thread *threads;
	struct stack *stacks;
	uint32_t thread_count, thread_cap, stack_count;
	bool warned_age;
};

/* --- memory --- */

static long read_memory(void *ctx, void *dst, uint32_t size, uint64_t addr)
{
	const struct walker *w = ctx;

	if (addr > INT64_MAX)
		return -EFAULT;
	return pread(w->memory, dst, size, (off_t)addr) == (ssize_t)size ? 0 : -EFAULT;
}

/* A core usually lacks code, which is in the files. */
static long read_core(void *ctx, void *dst, uint32_t size, uint64_t addr)
{
	const struct walker *w = ctx;

	if (core_read(w->core, dst, size, addr) == 0)
		return 0;
	const struct space_mapping *m = space_at(&w->space, addr);

	if (!m || m->file == SPACE_NO_FILE || size > m->end - addr ||
	    w->space.files[m->file].fd < 0 || m->offset > INT64_MAX - (m->end - m->start))
		return -EFAULT;
	return pread(w->space.files[m->file].fd, dst, size, (off_t)(addr - m->start + m->offset)) ==
			       (ssize_t)size
		       ? 0
		       : -EFAULT;
}

/* --- threads --- */

static int add_thread(struct walker *w, const struct message_thread *t)
{
	if (w->thread_count >= MAX_STACKS)
		return 0;
	if (w->thread_count == w->thread_cap) {
		uint32_t cap = w->thread_cap ? w->thread_cap * 2 : 64;
		struct message_thread *p = reallocarray(w->threads, cap, sizeof(*p));

		if (!p)
			return -ENOMEM;
		w->threads = p;
		w->thread_cap = cap;
	}
	w->threads[w->thread_count++] = *t;
	return 0;
}

static void drop_stacks(struct walker *w)
{
	for (uint32_t i = 0; i < w->stack_count; i++)
		stack_done(&w->stacks[i]);
	free(w->stacks);
	w->stacks = NULL;
	w->stack_count = 0;
}

/* Searches new files for runtimes, unless names are off. */
static int ready(struct walker *w)
{
	int r = 0;

	for (uint32_t i = 0; !r && w->o->names && i < w->space.file_count; i++)
		r = runtimes_describe(w->tables, &w->space.files[i]);
	return r ? r : space_ready(&w->space);
}

/* *ret_missing: a stack led to an address without a mapping. */
static int walk_all(struct walker *w, bool *ret_missing)
{
	*ret_missing = false;
	drop_stacks(w);
	w->stacks = calloc(w->thread_count + 1u, sizeof(*w->stacks));
	if (!w->stacks)
		return -ENOMEM;
	for (uint32_t i = 0; i < w->thread_count; i++) {
		struct stack *s = &w->stacks[i];
		int r = stack_walk(&w->space, &w->threads[i], s);

		if (r)
			return r;
		w->stack_count++;
		*ret_missing |= s->reason == WALK_NO_MAPPING;
	}
	return 0;
}

static int by_tid(const void *a, const void *b)
{
	const struct stack *x = a, *y = b;

	return (x->tid > y->tid) - (x->tid < y->tid);
}

static int print_all(struct walker *w)
{
	struct printer p;
	int r = printer_init(&p, &w->space, w->socket, w->o->names, w->o->inlined);

	if (r)
		return r;
	p.interpreter = w->o->interpreter;
	p.generated = w->core ? NULL : &w->generated;
	if (!w->core && w->stack_count)
		qsort(w->stacks, w->stack_count, sizeof(*w->stacks), by_tid);
	for (uint32_t i = 0; !r && i < w->stack_count; i++)
		r = printer_stack(&p, &w->stacks[i], stdout);
	printer_done(&p);
	if (!r && fflush(stdout) != 0)
		r = -EIO;
	return r;
}

/* --- a process --- */

static int take_mapping(struct walker *w, const struct message *m, int fd)
{
	const struct message_mapping *at = &m->mapping;
	uint32_t file = SPACE_NO_FILE;
	int r = 0;

	if (at->kind == PROCFS_VDSO) {
		file = space_find(&w->space, 0, 0);
		if (file == SPACE_NO_FILE)
			r = space_add(&w->space, space_image(&w->space, at->start, at->end), 0, 0,
				      "[vdso]", &file);
	} else if (at->kind == PROCFS_FILE) {
		file = space_find(&w->space, at->dev, at->inode);
		if (file == SPACE_NO_FILE) {
			if (m->error && w->image.count)
				fd = image_make(&w->image, read_memory, w);
			if (m->error && fd < 0)
				log_warning("%s: cannot be opened: %s; using frame pointers, "
					    "and no names, for its frames",
					    m->text, strerror(-m->error));
			r = space_add(&w->space, fd < 0 ? -1 : fd, at->dev, at->inode, m->text,
				      &file);
			fd = -1;
		}
	}
	image_reset(&w->image);
	if (fd >= 0)
		close(fd);
	if (!r)
		r = space_map(&w->space, at->start, at->end, at->offset, file);
	/* Beyond a ceiling the walker falls back to frame pointers, or ends the stack with a
	 * reason. */
	return r < 0 ? r : 0;
}

static int answer(struct walker *w, enum message_kind kind)
{
	const struct message out = { .kind = kind };

	return message_send(w->socket, &out, -1);
}

/* Serves until the threads are walked. 0; WALKER_FAILED: the other half has ended, and logged why;
 * -errno. */
static int serve_process(struct walker *w)
{
	static struct message in;
	bool missing = true;
	int fd, r = 0;

	space_init(&w->space, w->tables, read_memory, w);
	for (int rounds = 0; !r && missing;) {
		r = message_receive(w->socket, -1, &in, &fd);
		if (r)
			return r == -EPIPE ? WALKER_FAILED : r;
		switch (in.kind) {
		case MESSAGE_MEMORY:
			if (w->memory >= 0)
				close(w->memory);
			w->memory = fd;
			space_clear(&w->space);
			image_reset(&w->image);
			w->thread_count = 0;
			break;
		case MESSAGE_GENERATED:
			generated_take(&w->generated, in.generated, fd);
			break;
		case MESSAGE_PIECE:
			image_piece(&w->image, in.mapping.start, in.mapping.end, in.mapping.offset);
			break;
		case MESSAGE_MAPPING:
			r = take_mapping(w, &in, fd);
			break;
		case MESSAGE_MAPS_END:
			r = ready(w);
			if (!r)
				r = answer(w, MESSAGE_READY);
			break;
		case MESSAGE_THREAD:
			r = add_thread(w, &in.thread);
			break;
		case MESSAGE_STOPPED:
			w->generated.time_ns = clock_mono_ns();
			r = walk_all(w, &missing);
			missing = missing && ++rounds < MESSAGE_ROUNDS;
			if (!r)
				r = answer(w, missing ? MESSAGE_AGAIN : MESSAGE_WALKED);
			break;
		default:
			return -EPROTO;
		}
	}
	return r;
}

/* --- a core --- */

/* Whether fd is the file that was mapped at `f`, by the build id if the core has it. */
static bool is_mapped(struct walker *w, const struct core_file *f, int fd)
{
	uint8_t id[CORE_BUILD_ID];
	size_t n = f->offset ? 0 : core_build_id(w->core, f->start, id);
	struct stat file, core;
	struct symfile *s;

	if (!n) {
		if (!w->warned_age && fstat(fd, &file) == 0 && fstat(w->core->fd, &core) == 0 &&
		    file.st_mtim.tv_sec > core.st_mtim.tv_sec) {
			w->warned_age = true;
			log_warning("%s: is newer than the core, which has no build id of it; "
				    "its frames may be wrong",
				    f->path);
		}
		return true;
	}
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);

	if (copy < 0 || symfile_open(copy, &s)) {
		if (copy >= 0)
			close(copy);
		return true;
	}
	struct span found = symfile_build_id(s);
	bool same = !found.len || (found.len == n && memcmp(found.data, id, n) == 0);

	symfile_free(s);
	return same;
}

/* Asks for the file at a path. Returns a descriptor or -errno. */
static int ask(struct walker *w, const char *path)
{
	static struct message m;
	size_t n = strlen(path);
	int fd = -1;

	if (n >= MESSAGE_TEXT)
		return -ENAMETOOLONG;
	m.kind = MESSAGE_OPEN;
	m.error = 0;
	m.text_len = (uint32_t)n;
	memcpy(m.text, path, n);
	int r = message_send(w->socket, &m, -1);

	if (!r)
		r = message_receive(w->socket, -1, &m, &fd);
	if (r)
		return r;
	return fd >= 0 ? fd : m.error < 0 ? m.error : -EPROTO;
}

/* Makes a file from the core, if the core has all of its code. Returns a descriptor or a negative
 * number. */
static int core_image(struct walker *w, const struct core_file *first)
{
	const struct core *c = w->core;
	bool code = false;

	image_reset(&w->image);
	for (size_t i = (size_t)(first - c->files);
	     i < c->file_count && strcmp(c->files[i].path, first->path) == 0; i++) {
		const struct core_file *f = &c->files[i];
		const struct core_range *r = core_range_at(c, f->start);

		if (!r || r->writable || r->start != f->start)
			continue;
		if (r->executable && r->filled < r->end - r->start)
			return -ENODATA;
		code |= r->executable;
		image_piece(&w->image, f->start, f->start + r->filled, f->offset);
	}
	return code ? image_make(&w->image, read_core, w) : -ENODATA;
}

/* Finds the number of the file at a path, and asks for it once. `first` is where its first byte is
 * mapped. */
static int core_file_number(struct walker *w, const struct core_file *f, uint32_t *ret)
{
	const struct core_file *first = f;

	for (uint32_t i = 0; i < w->space.file_count; i++) {
		if (strcmp(w->space.files[i].path, f->path) == 0) {
			*ret = i;
			return 0;
		}
	}
	/* Its lowest mapping comes before the others. */
	while (first > w->core->files && strcmp(first[-1].path, f->path) == 0)
		first--;
	int fd = ask(w, f->path), image = -1;

	bool same = fd >= 0 && is_mapped(w, first, fd);

	if (!same)
		image = core_image(w, first);
	if (image >= 0) {
		if (fd >= 0)
			close(fd);
		fd = image;
	} else if (fd < 0) {
		/* A file that is no program has no frames. */
		if (fd != -ENOEXEC)
			log_warning(
				"%s: cannot be opened: %s; using frame pointers, and no names, for "
				"its frames; see --sysroot",
				f->path, strerror(-fd));
		fd = -1;
	} else if (!same) {
		log_warning("%s: is not the file that the core mapped: build ids differ; not used; "
			    "see --sysroot",
			    f->path);
		close(fd);
		fd = -1;
	}
	return space_add(&w->space, fd, 1, w->space.file_count + 1u, f->path, ret);
}

/* Adds the executable part [start, end) of a core: of a file, of the vDSO, or of neither. */
static int map_core(struct walker *w, uint64_t start, uint64_t end)
{
	const struct core_file *f = core_file_at(w->core, start);
	uint32_t file = SPACE_NO_FILE;
	uint64_t offset = 0;
	int r = 0;

	if (f) {
		r = core_file_number(w, f, &file);
		offset = f->offset + (start - f->start);
		if (end > f->end)
			end = f->end;
	} else if (w->core->vdso >= start && w->core->vdso < end) {
		r = space_add(&w->space, space_image(&w->space, start, end), 0, 0, "[vdso]", &file);
	}
	if (r > 0)
		file = SPACE_NO_FILE;
	return r < 0 ? r : space_map(&w->space, start, end, offset, file);
}

static int load_core(struct walker *w)
{
	const struct core *c = w->core;
	int r = 0;

	space_init(&w->space, w->tables, read_core, w);
	for (size_t i = 0; !r && i < c->range_count; i++)
		if (c->ranges[i].executable)
			r = map_core(w, c->ranges[i].start, c->ranges[i].end);
	/* If no range covers a file, it is unknown whether the file was executable. */
	for (size_t i = 0; !r && i < c->file_count; i++)
		if (!core_range_at(c, c->files[i].start))
			r = map_core(w, c->files[i].start, c->files[i].end);
	return r < 0 ? r : ready(w);
}

/* 0, WALKER_FAILED, -errno. */
static int serve_core(struct walker *w)
{
	static struct message in;
	bool missing;
	int fd, r = message_receive(w->socket, -1, &in, &fd);

	if (!r)
		r = in.kind == MESSAGE_CORE && fd >= 0 ? core_open(fd, &w->core) : -EPROTO;
	if (r > 0) {
		log_error("%s: %s; give the path of a core file or a process id", w->o->core,
			  core_verdict_text(r));
		return WALKER_FAILED;
	}
	if (r)
		return r;
	if (w->core->wanted_size > w->core->size)
		log_warning("%s: is truncated: it has %llu of %llu bytes; stacks may end early; "
			    "see `ulimit -c` and free disk space",
			    w->o->core, (unsigned long long)w->core->size,
			    (unsigned long long)w->core->wanted_size);
	r = load_core(w);
	for (size_t i = 0; !r && i < (w->o->all ? w->core->thread_count : 1); i++)
		r = add_thread(w, &w->core->threads[i]);
	return r ? r : walk_all(w, &missing);
}

int walker_run(int socket, const struct walker_options *o)
{
	static const struct tables_config config = { .slabs_fd = -1,
						     .files_fd = -1,
						     .rules_fd = -1,
						     .processes_fd = -1,
						     .max_bytes = (size_t)TABLES_MAX_SLABS *
								  TABLES_SLAB_BYTES };
	static struct walker w;

	w.o = o;
	w.socket = socket;
	w.memory = -1;
	generated_init(&w.generated);
	int r = tables_new(&config, &w.tables);

	if (!r)
		r = o->core ? serve_core(&w) : serve_process(&w);
	if (!r)
		r = print_all(&w);
	if (r < 0)
		log_error("%s: %s", r == -EIO ? "standard output" : "cannot continue",
			  strerror(-r));
	drop_stacks(&w);
	space_done(&w.space);
	generated_done(&w.generated);
	core_free(w.core);
	tables_free(w.tables);
	free(w.threads);
	return r ? EXITS_FAILED : EXITS_DONE;
}
