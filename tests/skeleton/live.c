/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's walks of programs with runtimes, the toys among them, without the tools around:
 * `live [OPTION]... PROGRAM ARGUMENT... [-- PROGRAM ARGUMENT...]...` runs programs, describes their
 * files, samples them, and prints one line for each sample:
 *
 *     N REASON FRAME;FRAME;...
 *
 * N counts the programs from 0 on. REASON ends with `,stopped` if interpreted frames are missing as
 * well. The outermost frame is first. A frame is one of
 *
 *   FILE+0xOFFSET     native: the base name of its file, and a place in it
 *   +0xADDRESS        native, in no file
 *   @CHECK:POSITION   an interpreted one, by the check of its object (bpf/runtime.h), in hex;
 *                     /CHECK is behind it where it has a second object
 *
 * A native frame begins with `?` if it was found by frame pointer, and with `~` if it is part of an
 * interpreter's loop. A last line for each program says `N samples N deferred N frames N items N`:
 * frames and items are the words and the items that a sample had at most. The very last one has the
 * time that a sample took.
 *
 *   -s SECONDS  of sampling, at most (60)
 *   -n SAMPLES  of each program, after which sampling ends (100)
 *   -f HZ       (99)
 *   -w MS       a program is looked at when it has written something, or used so much cpu time
 *   -d FILE     each program runs twice, and the second one has the next number. Of that one, the
 *               kernel does not hear of the mappings of files whose paths contain FILE. A walk that
 *               gets there is deferred, and walked in full here, as prof-bpf does it.
 *   -q          no lines for samples
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "common/base/system/clock.h"
#include "common/base/system/procfs.h"
#include "common/names/elf/symfile.h"
#include "common/names/runtime/runtime.h"
#include "common/walk/weave.h"
#include "common/wire/msg.h"
#include "common/wire/reason.h"
#include "tests/walker/process.h"
#include "tools/prof-bpf/kernel/loader.h"
#include "tools/prof-bpf/stream/deferred.h"

#define PROGRAMS 16
#define TURN_US 20000
#define CEILING (64u << 20)

static struct loader *loader;
static struct tables *tables;
static struct space space;
static struct deferred_queue *queue;
static bool quiet;
static struct program {
	pid_t pid;
	int out;			 /* what it writes */
	struct tables_mapping *mappings; /* all, also those unknown to the kernel */
	uint32_t mapping_count;
	uint64_t samples, deferred, frames, items;
} programs[PROGRAMS];
static unsigned program_count;

/* --- what is printed --- */

static const struct runtime_config *runtime_of(void *ctx, uint16_t slot)
{
	(void)ctx;
	return tables_runtime(tables, slot);
}

static const char *file_name(uint16_t slot)
{
	for (uint32_t i = 0; slot && i < space.file_count; i++) {
		if (space.files[i].slot != slot)
			continue;
		const char *slash = strrchr(space.files[i].path, '/');

		return slash ? slash + 1 : space.files[i].path;
	}
	return "";
}

static void print_frame(const struct weave_frame *f)
{
	if (f->interpreted) {
		printf("@%" PRIx64 ":%" PRIu64, f->mark >> RUNTIME_CHECK_SHIFT,
		       (uint64_t)(f->mark & RUNTIME_POSITION_MASK));
		if (f->address2)
			printf("/%" PRIx64, f->mark2 >> RUNTIME_CHECK_SHIFT);
		return;
	}
	printf("%s%s%s+%#" PRIx64, f->word & SAMPLE_FRAME_FP ? "?" : "", f->loop ? "~" : "",
	       file_name(sample_frame_slot(f->word)),
	       (uint64_t)(f->word & SAMPLE_FRAME_OFFSET_MASK));
}

static struct program *program_of(const struct sample *s)
{
	for (unsigned i = 0; i < program_count; i++)
		if ((uint32_t)programs[i].pid == s->pid)
			return &programs[i];
	errx(1, "a sample of a process that is not ours");
}

static void print_sample(void *ctx, const struct sample *s)
{
	struct program *p = program_of(s);
	static struct weave_frame frames[WEAVE_MAX];
	const struct weave_config config = { .runtime = runtime_of };
	bool truncated;

	(void)ctx;
	p->samples++;
	if (s->user_frames > p->frames)
		p->frames = s->user_frames;
	if (s->items > p->items)
		p->items = s->items;
	if (quiet)
		return;
	uint32_t n = weave(s, &config, frames, &truncated);

	printf("%d %s%s ", (int)(p - programs), reason_walk_word(s->reason),
	       truncated ? ",stopped" : "");
	while (n-- > 0) {
		print_frame(&frames[n]);
		if (n)
			putchar(';');
	}
	putchar('\n');
}

/* --- samples --- */

static void on_sample(void *ctx, const struct sample *s)
{
	if (s->flags & (SAMPLE_ITEMS | SAMPLE_FETCHED))
		deferred_ahead(queue, s);
	else if (!(s->flags & SAMPLE_OBJECT))
		print_sample(ctx, s);
}

static void on_deferred(void *ctx, const struct deferred_sample *d)
{
	(void)ctx;
	program_of(&d->sample)->deferred++;
	deferred_put(queue, d);
}

static ssize_t all_mappings(void *ctx, const struct sample *s, const struct tables_mapping **ret,
			    bool *ret_whole)
{
	const struct program *p = program_of(s);

	(void)ctx;
	*ret = p->mappings;
	*ret_whole = true;
	return p->mapping_count;
}

static void want_nothing(void *ctx, const struct sample *s, const uint64_t *addresses, size_t n)
{
	(void)ctx, (void)s, (void)addresses, (void)n;
}

static void is_never_behind(void *ctx, const struct sample *s)
{
	(void)ctx, (void)s;
}

static void drain(bool all)
{
	loader_drain(loader, on_sample, on_deferred, NULL);
	deferred_run(queue, clock_mono_ns(), all);
}

/* --- the programs --- */

static void drop_programs(void)
{
	for (unsigned i = 0; i < program_count; i++)
		kill(programs[i].pid, SIGKILL);
}

/* Stops it when it has written something, or has used this much cpu time: then its start is
 * over. */
static void start_program(struct program *p, char **argv, long ms)
{
	struct timespec used = { 0 };
	clockid_t clock;
	int out[2];

	if (pipe2(out, O_CLOEXEC))
		err(1, "pipe");
	p->pid = fork();
	if (p->pid < 0)
		err(1, "fork");
	if (p->pid == 0) {
		if (setpriority(PRIO_PROCESS, 0, 0) == 0 &&
		    dup2(out[1], STDOUT_FILENO) == STDOUT_FILENO)
			execvp(argv[0], argv);
		_exit(1);
	}
	program_count++;
	close(out[1]);
	p->out = out[0];
	while (used.tv_sec * 1000 + used.tv_nsec / 1000000 < ms) {
		struct pollfd f = { .fd = p->out, .events = POLLIN };

		if (poll(&f, 1, 1) > 0 && f.revents & POLLIN)
			break;
		if (waitpid(p->pid, NULL, WNOHANG) || clock_getcpuclockid(p->pid, &clock) ||
		    clock_gettime(clock, &used))
			errx(1, "%s ended", argv[0]);
	}
	if (kill(p->pid, SIGSTOP) || waitpid(p->pid, NULL, WUNTRACED) != p->pid)
		err(1, "%s", argv[0]);
}

/* As prof-symd does it. */
static int describe(struct tables *t, struct space_file *f)
{
	struct runtime_build *b;
	struct symfile *s;
	int fd;

	if (f->described)
		return 0;
	f->described = true;
	fd = fcntl(f->fd, F_DUPFD_CLOEXEC, 3);
	if (fd < 0 || symfile_open(fd, &s)) {
		if (fd >= 0)
			close(fd);
		return 0;
	}
	b = calloc(1, sizeof(*b));
	if (b && runtime_describe(s, b) == 0 && b->known &&
	    tables_file_runtime(t, f->slot, &b->config) == 0)
		f->build = b;
	else
		free(b);
	symfile_free(s);
	return b ? 0 : -ENOMEM;
}

/* The kernel gets the programs of all runtimes of the process. */
static void load_runtimes(void)
{
	for (uint32_t i = 0; i < space.file_count; i++) {
		if (!space.files[i].build)
			continue;
		const enum runtime which = (enum runtime)space.files[i].build->config.runtime;
		struct pollfd p = { .fd = loader_late_fd(loader), .events = POLLIN };

		while (loader_runtime(loader, which) == -EAGAIN) {
			if (poll(&p, 1, 60000) != 1 || loader_hear_late(loader))
				errx(1, "prof-bpf-loader does not answer");
		}
		if (loader_runtime(loader, which))
			errx(1, "%s: %s", space.files[i].build->name, loader_trouble(loader));
	}
}

/* Tells the kernel of the process, but not of files that `unheard` names. */
static void publish(struct program *p, const char *unheard)
{
	struct tables_mapping *told = space_tables(&space);
	const int proc = open("/proc", O_PATH | O_CLOEXEC);
	struct procfs_stat st;
	uint32_t generation;
	size_t n = 0;

	p->mappings = space_tables(&space);
	p->mapping_count = space.mapping_count;
	if (!p->mappings || !told || proc < 0)
		errx(1, "no memory");
	for (uint32_t i = 0; i < p->mapping_count; i++) {
		const uint32_t file = space.mappings[i].file;

		if (unheard && file != SPACE_NO_FILE && strstr(space.files[file].path, unheard))
			continue;
		told[n++] = p->mappings[i];
	}
	if (procfs_read_stat(proc, (uint32_t)p->pid, &st) ||
	    tables_process_set(tables, (uint32_t)p->pid, st.start_ns, clock_mono_ns(), told, n,
			       true, &generation))
		errx(1, "the process cannot be published");
	close(proc);
	free(told);
}

static void add_program(char **argv, long wait_ms, const char *unheard)
{
	struct program *p = &programs[program_count];

	if (program_count == PROGRAMS)
		errx(2, "too many programs");
	start_program(p, argv, wait_ms);
	if (p == programs)
		process_open(&space, tables, p->pid);
	else
		process_turn_to(p->pid);
	process_load(&space);
	load_runtimes();
	publish(p, unheard);
}

/* One program after the other; argv is changed. */
static void add_programs(char **argv, long wait_ms, const char *unheard)
{
	for (char **end = argv; *argv; argv = end) {
		while (*end && strcmp(*end, "--") != 0)
			end++;
		if (*end)
			*end++ = NULL;
		add_program(argv, wait_ms, NULL);
		if (unheard)
			add_program(argv, wait_ms, unheard);
	}
}

static uint64_t fewest_samples(void)
{
	uint64_t ret = UINT64_MAX;

	for (unsigned i = 0; i < program_count; i++)
		if (programs[i].samples < ret)
			ret = programs[i].samples;
	return ret;
}

static void sample(double seconds, uint64_t enough)
{
	if (loader_start(loader))
		errx(1, "start");
	for (unsigned i = 0; i < program_count; i++)
		kill(programs[i].pid, SIGCONT);
	for (double left = seconds * 1e6; left > 0 && fewest_samples() < enough; left -= TURN_US) {
		usleep(TURN_US);
		drain(false);
	}
	loader_stop(loader);
	drain(true);
}

static void print_figures(void)
{
	struct loader_figures f;

	for (unsigned i = 0; i < program_count; i++) {
		const struct program *p = &programs[i];

		printf("%u samples %" PRIu64 " deferred %" PRIu64 " frames %" PRIu64
		       " items %" PRIu64 "\n",
		       i, p->samples, p->deferred, p->frames, p->items);
	}
	loader_figures(loader, &f);
	printf("us_per_sample %.1f lost %" PRIu64 "\n",
	       f.runs ? (double)f.ns / 1000 / (double)f.runs : 0, f.ring_full);
}

int main(int argc, char **argv)
{
	struct tables_config config = { .max_bytes = 256u << 20 };
	struct loader_config load = {
		.hz = 99, .ring_max = 16u << 20, .drain_ms = 10, .only_selected = true
	};
	const char *unheard = NULL;
	double seconds = 60;
	long wait_ms = 1000, enough = 100;

	for (int o; (o = getopt(argc, argv, "+s:n:f:w:d:q")) != -1;) {
		switch (o) {
		case 's':
			seconds = atof(optarg);
			break;
		case 'n':
			enough = atol(optarg);
			break;
		case 'f':
			load.hz = (unsigned)atoi(optarg);
			break;
		case 'w':
			wait_ms = atol(optarg);
			break;
		case 'd':
			unheard = optarg;
			break;
		case 'q':
			quiet = true;
			break;
		default:
			return 2;
		}
	}
	if (optind == argc)
		errx(2, "usage: live [OPTION]... PROGRAM ARGUMENT... [-- PROGRAM ARGUMENT...]...");
	/* The ring of deferred samples has room for thirty of them. */
	if (setpriority(PRIO_PROCESS, 0, -20))
		err(1, "priority");
	int r = loader_new(&load, &loader);
	if (r || (r = loader_load(loader)) || (r = loader_start_late(loader)))
		errx(1, "BPF: %s (%s)", strerror(-r), r ? loader_trouble(loader) : "");
	loader_tables(loader, &config);
	if (tables_new(&config, &tables))
		errx(1, "tables");
	const struct deferred_config dc = { .tables = tables,
					    .ceiling = CEILING,
					    .mappings = all_mappings,
					    .wants = want_nothing,
					    .is_behind = is_never_behind,
					    .emit = print_sample };
	if (deferred_new(&dc, &queue))
		errx(1, "no memory");
	process_find_runtimes(describe);
	atexit(drop_programs);
	add_programs(argv + optind, wait_ms, unheard);
	sample(seconds, (uint64_t)enough);
	print_figures();
	deferred_free(queue);
	for (unsigned i = 0; i < program_count; i++)
		free(programs[i].mappings);
	space_done(&space);
	loader_free(loader);
	tables_free(tables);
	return 0;
}
