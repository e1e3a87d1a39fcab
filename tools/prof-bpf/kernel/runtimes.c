/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/kernel/runtimes.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "runtimes.skel.h" /* generated from bpf/runtimes.def: all programs */

static const struct {
	const void *(*object)(size_t *ret_size);
	const char *program, *frame, *name; /* frame: the second program, which some have */
} sources[RUNTIME_MAX] = {
#define RUNTIME(number, NAME, name, title, type, mark) \
	[number] = { name##_bpf__elf_bytes, "on_" #name, "on_" #name "_frame", title },
#include "bpf/runtimes.def"
};

struct runtimes {
	struct {
		const char *name;
		int fd;
	} maps[RUNTIMES_MAPS];
	unsigned map_count;
	struct bpf_object *loaded[RUNTIME_MAX];
};

static bool is_runtime(enum runtime which)
{
	return which > RUNTIME_NONE && which < RUNTIME_MAX && sources[which].object;
}

/* Returns the descriptor of the sampling program's map, or -ENOENT. */
static int find_map(const struct runtimes *r, const char *name)
{
	for (unsigned i = 0; i < r->map_count; i++)
		if (strcmp(r->maps[i].name, name) == 0)
			return r->maps[i].fd;
	return -ENOENT;
}

/* Adds a program to the table of programs for the sampling program's tail calls. */
static int enter(struct runtimes *r, struct bpf_object *o, const char *name, uint32_t at)
{
	const struct bpf_program *p = bpf_object__find_program_by_name(o, name);
	int programs = find_map(r, "programs");
	int fd = p ? bpf_program__fd(p) : -ENOENT;

	if (fd < 0 || programs < 0)
		return fd < 0 ? fd : programs;
	return bpf_map_update_elem(programs, &at, &fd, BPF_ANY);
}

int runtimes_new(struct bpf_object *host, struct runtimes **ret)
{
	struct runtimes *r = calloc(1, sizeof(*r));

	const struct bpf_map *m;

	if (!r)
		return -ENOMEM;
	bpf_object__for_each_map(m, host) {
		if (bpf_map__is_internal(m))
			continue;
		if (r->map_count == RUNTIMES_MAPS) {
			free(r);
			return -E2BIG;
		}
		r->maps[r->map_count].name = bpf_map__name(m);
		r->maps[r->map_count++].fd = bpf_map__fd(m);
	}
	int e = enter(r, host, "on_walk", RUNTIME_NONE);
	if (e) {
		free(r);
		return e;
	}
	*ret = r;
	return 0;
}

void runtimes_free(struct runtimes *r)
{
	if (!r)
		return;
	for (int i = 0; i < RUNTIME_MAX; i++)
		bpf_object__close(r->loaded[i]);
	free(r);
}

unsigned runtimes_maps(const struct runtimes *r, int *ret)
{
	for (unsigned i = 0; i < r->map_count; i++)
		ret[i] = r->maps[i].fd;
	return r->map_count;
}

void runtimes_maps_moved(struct runtimes *r, int first)
{
	for (unsigned i = 0; i < r->map_count; i++)
		r->maps[i].fd = first + (int)i;
}

/* Makes o use the sampling program's maps of the same names. */
static int share_maps(struct runtimes *r, struct bpf_object *o)
{
	struct bpf_map *m;

	bpf_object__for_each_map(m, o) {
		int fd = find_map(r, bpf_map__name(m));
		int e = fd >= 0 && !bpf_map__is_internal(m) ? bpf_map__reuse_fd(m, fd) : 0;

		if (e)
			return e;
	}
	return 0;
}

int runtimes_load(struct runtimes *r, enum runtime which)
{
	size_t size;

	if (!is_runtime(which))
		return -EINVAL;
	if (r->loaded[which])
		return 0;
	const void *bytes = sources[which].object(&size);
	struct bpf_object *o = bpf_object__open_mem(bytes, size, NULL);
	if (!o)
		return -errno;
	int e = share_maps(r, o);
	if (!e)
		e = bpf_object__load(o);
	if (!e)
		e = enter(r, o, sources[which].program, (uint32_t)which);
	if (!e && bpf_object__find_program_by_name(o, sources[which].frame))
		e = enter(r, o, sources[which].frame, RUNTIME_MAX + (uint32_t)which);
	if (e) {
		bpf_object__close(o);
		return e;
	}
	r->loaded[which] = o;
	return 0;
}

const char *runtimes_name(enum runtime which)
{
	return is_runtime(which) ? sources[which].name : "?";
}

/* Names with which files begin. */
struct named {
	const char *begin;
	enum runtime runtime;
};

static enum runtime find_named(const char *base, const struct named *names, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (strncmp(base, names[i].begin, strlen(names[i].begin)) == 0)
			return names[i].runtime;
	}
	return RUNTIME_NONE;
}

static const char *base_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static enum runtime named_like(const char *path)
{
	static const struct named names[] = {
#define RUNTIME(number, NAME, name, title, type, mark) { #name, RUNTIME_##NAME },
#include "bpf/runtimes.def"
		{ "jvm", RUNTIME_HOTSPOT }, /* libjvm.so contains HotSpot */
		{ "node", RUNTIME_V8 },	    /* contains V8 */
	};
	const char *base = base_of(path);

	if (strncmp(base, "lib", 3) == 0)
		base += 3;
	return find_named(base, names, sizeof(names) / sizeof(names[0]));
}

enum runtime runtimes_early(const char *path)
{
	/* What is mapped before the runtime's file: java and javac, and the library of all
	 * launchers of Java. */
	static const struct named launchers[] = { { "java", RUNTIME_HOTSPOT },
						  { "libjli.", RUNTIME_HOTSPOT } };
	const enum runtime r = find_named(base_of(path), launchers,
					  sizeof(launchers) / sizeof(launchers[0]));

	return r != RUNTIME_NONE ? r : named_like(path);
}

bool runtimes_is_named(const char *path)
{
	return named_like(path) != RUNTIME_NONE;
}
