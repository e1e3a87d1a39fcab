/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads every BPF program there is and says what the verifier had to do: "PROGRAM INSTRUCTIONS
 * MILLISECONDS" a line, with the kernel's own words where it refuses one. Status 1 where one was
 * refused; "iter/ksym", which kernels before 6.0 do not have, is optional. The programs behind
 * on_tick are also loaded for tracepoints, as "PROGRAM/raw_tp".
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "common/base/system/clock.h"
#include "ksyms.skel.h"
#include "runtimes.skel.h"
#include "sample.skel.h"

#define LOG_BYTES (16u << 20)
#define LOG_STATS 4 /* of bpf(2): what it took, without each step */
#define LOG_STEPS 1
#define TAIL 12000

static char text[LOG_BYTES];

static int quiet(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	return level == LIBBPF_WARN ? vfprintf(stderr, fmt, ap) : 0;
}

/* o uses host's copies of the maps that both have. */
static void share(struct bpf_object *host, struct bpf_object *o)
{
	struct bpf_map *m;

	bpf_object__for_each_map(m, o) {
		const int fd = bpf_object__find_map_fd_by_name(host, bpf_map__name(m));

		if (fd >= 0 && !bpf_map__is_internal(m))
			bpf_map__reuse_fd(m, fd);
	}
}

static int load(struct bpf_object *o, const char *name, unsigned level)
{
	struct bpf_program *p;

	bpf_object__for_each_program(p, o) {
		bpf_program__set_log_level(p, level);
		/* The last one's: each object's own programs are told apart by the libraries'
		 * words on standard error. */
		bpf_program__set_log_buf(p, text, sizeof(text));
	}
	text[0] = '\0';
	const uint64_t begun = clock_mono_ns();
	const int r = bpf_object__load(o);
	const uint64_t took = clock_mono_ns() - begun;
	const char *said = strstr(text, "processed ");

	if (!r)
		printf("%s %ld %.1f\n", name, said ? atol(said + strlen("processed ")) : 0,
		       (double)took / 1e6);
	return r;
}

/* Whether the program follows on_tick, and so needs no data of its context. */
static bool follows(const struct bpf_program *p)
{
	return bpf_program__type(p) == BPF_PROG_TYPE_PERF_EVENT &&
	       strcmp(bpf_program__name(p), "on_tick") != 0;
}

/* Of the object so opened, by itself, each program, so that what is said is of it alone. raw_tp:
 * only those that follow on_tick, as programs of tracepoints. */
static int load_each(const void *bytes, size_t size, struct bpf_object *host, bool raw_tp,
		     unsigned level)
{
	struct bpf_object *o = bpf_object__open_mem(bytes, size, NULL);
	struct bpf_program *p;
	int bad = 0;

	bpf_object__for_each_program(p, o) {
		if (raw_tp && !follows(p))
			continue;
		struct bpf_object *one = bpf_object__open_mem(bytes, size, NULL);
		struct bpf_program *q;
		char name[64];

		bpf_object__for_each_program(q, one) {
			bpf_program__set_autoload(
				q, !strcmp(bpf_program__name(q), bpf_program__name(p)));
			if (raw_tp)
				bpf_program__set_type(q, BPF_PROG_TYPE_RAW_TRACEPOINT);
		}
		if (host)
			share(host, one);
		snprintf(name, sizeof(name), "%s%s", bpf_program__name(p), raw_tp ? "/raw_tp" : "");
		const int r = load(one, name, level);

		if (r) {
			const size_t n = strlen(text);

			printf("%s refused: %s\n%s\n", name, strerror(-r),
			       text + (n > TAIL ? n - TAIL : 0));
			bad = 1;
		}
		bpf_object__close(one);
	}
	bpf_object__close(o);
	return bad;
}

int main(int argc, char **argv)
{
	const unsigned level = argc > 1 ? LOG_STEPS : LOG_STATS;
	size_t size;

	libbpf_set_strict_mode(LIBBPF_STRICT_ALL);
	libbpf_set_print(quiet);
	const void *bytes = sample_bpf__elf_bytes(&size);
	int bad = load_each(bytes, size, NULL, false, level);

	/* A table of programs holds one type, so each object has its own tables here. */
	bad |= load_each(bytes, size, NULL, true, level);

	struct sample_bpf *s = sample_bpf__open_and_load();
	if (!s)
		return 1;
#define RUNTIME(number, NAME, name, title, type, mark) \
	bytes = name##_bpf__elf_bytes(&size); \
	bad |= load_each(bytes, size, s->obj, false, level); \
	bad |= load_each(bytes, size, NULL, true, level);
#include "bpf/runtimes.def"
	bytes = ksyms_bpf__elf_bytes(&size);
	(void)load_each(bytes, size, NULL, false, level);
	sample_bpf__destroy(s);
	return bad;
}
