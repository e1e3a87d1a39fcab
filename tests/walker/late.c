/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests the kernel's side when user space is late or a tail call is refused, on a child that spins.
 *
 * `late exec`: mappings from before an exec are published once more after it. No sample is walked
 * with them until mappings are published with knowledge of the exec.
 *
 * `late call`: the program that walks is missing from its table for a while. Samples of that time
 * are lost and counted, and leave nothing for later ones.
 *
 * Exits with 0 if both hold. Needs the same rights as prof-bpf.
 */
#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/wait.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include "common/base/system/clock.h"
#include "common/base/system/procfs.h"
#include "tests/walker/process.h"
#include "tools/prof-bpf/kernel/loader.h"

#define HZ 499
#define ENOUGH_NS 100000000u /* cpu time; 50 samples */

static struct loader *l;
static struct tables *t;
static struct space space;
static pid_t child;
static int go[2], begun[2];
static unsigned long walked, deferred, older;
static uint64_t since_ns;

static void on_deferred(void *ctx, const struct deferred_sample *d)
{
	(void)ctx, (void)d;
	deferred++;
}

static void on_sample(void *ctx, const struct sample *s)
{
	(void)ctx;
	if (s->time_ns < since_ns)
		older++;
	else
		walked += s->user_frames > 0;
}

static void drop_child(void)
{
	if (child > 0)
		kill(child, SIGKILL);
}

/* Reports through the descriptor that it runs, with all files mapped by its linker. */
static void spin(int fd)
{
	if (write(fd, "", 1) != 1)
		_exit(1);
	for (volatile unsigned long i = 0;; i++)
		;
}

/* A child that execs `spin` of this program on command. */
static void start_child(void)
{
	if (pipe(go) || pipe(begun))
		err(1, "pipe");
	child = fork();
	if (child < 0)
		err(1, "fork");
	if (child == 0) {
		char byte, fd[16], name[] = "late", what[] = "spin";
		char *argv[] = { name, what, fd, NULL };

		snprintf(fd, sizeof(fd), "%d", begun[1]);
		if (read(go[0], &byte, 1) == 1)
			execv("/proc/self/exe", argv);
		_exit(1);
	}
	close(begun[1]);
	atexit(drop_child);
}

/* When this returns, the child's last tick is over. */
static void stop_child(void)
{
	if (kill(child, SIGSTOP) || waitpid(child, NULL, WUNTRACED) != child)
		err(1, "stop");
	usleep(50000);
}

/* Only the program itself can tell that its exec is over: the kernel shows its command line before
 * that, and a cpu may be taken from it in between. */
static void exec_child(void)
{
	char byte;

	if (write(go[1], "", 1) != 1 || read(begun[0], &byte, 1) != 1)
		err(1, "pipe");
	stop_child();
}

static void publish(uint64_t heard_ns)
{
	struct procfs_stat st;
	struct tables_mapping *m = space_tables(&space);
	const int proc = open("/proc", O_PATH | O_CLOEXEC);
	uint32_t generation;

	if (!m || procfs_read_stat(proc, (uint32_t)child, &st) ||
	    tables_process_set(t, (uint32_t)child, st.start_ns, heard_ns, m, space.mapping_count,
			       true, &generation))
		errx(1, "the child cannot be published");
	close(proc);
	free(m);
}

/* Samples of a tenth of a second of cpu time, however long the child has to wait for it. It is
 * stopped before and after that, so changes happen between two samples. */
static void sample(void)
{
	const uint64_t enough_ns = clock_cpu_ns(child) + ENOUGH_NS;

	loader_drain(l, on_sample, on_deferred, NULL);
	walked = deferred = older = 0;
	since_ns = clock_mono_ns();
	if (kill(child, SIGCONT))
		err(1, "continue");
	while (clock_cpu_ns(child) < enough_ns) {
		usleep(50000);
		loader_drain(l, on_sample, on_deferred, NULL);
	}
	stop_child();
	loader_drain(l, on_sample, on_deferred, NULL);
	printf("walked %lu deferred %lu older %lu\n", walked, deferred, older);
}

static int stale_exec(void)
{
	const uint64_t heard_ns = clock_mono_ns();

	publish(heard_ns);
	exec_child();
	publish(heard_ns);
	sample();
	if (walked || !deferred)
		errx(1, "walked with the mappings of before an exec");
	process_load(&space);
	publish(clock_mono_ns());
	sample();
	if (!walked)
		errx(1, "not walked with the mappings of after it");
	return 0;
}

/* Our descriptor of the table of programs. */
static int find_programs(void)
{
	DIR *d = opendir("/proc/self/fd");
	const struct dirent *e;
	int ret = -1;

	while (d && ret < 0 && (e = readdir(d))) {
		struct bpf_map_info info = { 0 };
		uint32_t size = sizeof(info);
		const int fd = atoi(e->d_name);

		if (!bpf_obj_get_info_by_fd(fd, &info, &size) &&
		    info.type == BPF_MAP_TYPE_PROG_ARRAY)
			ret = fd;
	}
	closedir(d);
	if (ret < 0)
		errx(1, "no table of programs");
	return ret;
}

static void load_python(void)
{
	struct pollfd p = { .fd = loader_late_fd(l), .events = POLLIN };

	while (loader_runtime(l, RUNTIME_PYTHON) == -EAGAIN) {
		if (poll(&p, 1, 30000) != 1 || loader_hear_late(l))
			errx(1, "prof-bpf-loader does not answer");
	}
	if (loader_runtime(l, RUNTIME_PYTHON))
		errx(1, "the runtime's program: %s", loader_trouble(l));
}

static int refused_call(void)
{
	const struct runtime_config config = { .runtime = RUNTIME_PYTHON };
	const int programs = find_programs();
	const uint32_t key = RUNTIME_NONE;
	struct loader_figures before, after;
	uint32_t id;

	exec_child();
	process_load(&space);
	if (loader_start_late(l))
		errx(1, "prof-bpf-loader");
	load_python();
	/* It contains a runtime that finds no frames: its program runs before the native walk. */
	struct tables_mapping *m = space_tables(&space);
	if (!m || tables_file_runtime(t, m[0].slot, &config))
		errx(1, "no runtime");
	free(m);
	publish(clock_mono_ns());
	sample();
	if (!walked)
		errx(1, "not walked");
	if (bpf_map_lookup_elem(programs, &key, &id))
		err(1, "the program that walks");
	const int fd = bpf_prog_get_fd_by_id(id);
	if (fd < 0 || bpf_map_delete_elem(programs, &key))
		err(1, "the program that walks");
	loader_figures(l, &before);
	sample();
	loader_figures(l, &after);
	printf("lost %lu\n", (unsigned long)(after.ring_full - before.ring_full));
	if (walked || deferred || after.ring_full == before.ring_full)
		errx(1, "a sample whose walk was refused is neither lost nor counted");
	if (bpf_map_update_elem(programs, &key, &fd, BPF_ANY))
		err(1, "the program that walks");
	sample();
	if (!walked || older)
		errx(1, "a sample went on that had been lost");
	return 0;
}

int main(int argc, char **argv)
{
	struct tables_config c = { .max_bytes = 32u << 20 };
	const struct loader_config lc = {
		.hz = HZ, .ring_max = 4u << 20, .drain_ms = 10, .only_selected = true
	};

	if (argc == 3 && !strcmp(argv[1], "spin"))
		spin(atoi(argv[2]));
	if (argc != 2 || (strcmp(argv[1], "exec") != 0 && strcmp(argv[1], "call") != 0))
		errx(2, "usage: late exec|call");
	/* The same program lies at the same addresses before and after an exec. */
	const int persona = personality(0xffffffff);
	if (!(persona & ADDR_NO_RANDOMIZE)) {
		if (personality((unsigned)persona | ADDR_NO_RANDOMIZE) < 0 ||
		    execv("/proc/self/exe", argv))
			err(1, "personality");
	}
	start_child();
	int r = loader_new(&lc, &l);
	if (r || (r = loader_load(l)))
		errx(1, "BPF: %s (%s)", strerror(-r), r ? loader_trouble(l) : "");
	loader_tables(l, &c);
	if (tables_new(&c, &t))
		errx(1, "tables");
	process_open(&space, t, child);
	process_load(&space);
	if (loader_start(l))
		errx(1, "start");
	r = !strcmp(argv[1], "exec") ? stale_exec() : refused_call();
	loader_stop(l);
	space_done(&space);
	loader_free(l);
	tables_free(t);
	return r;
}
