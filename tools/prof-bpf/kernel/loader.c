/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/kernel/loader.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "bpf/reasons.h"
#include "bpf/tables.h"
#include "common/base/files/smallfile.h"
#include "common/cell/confine/namespace.h"
#include "common/cell/targets/targets.h"
#include "common/walk/tables/tables.h"
#include "sample.skel.h"
#include "tools/prof-bpf/kernel/kernel_types.h"
#include "tools/prof-bpf/kernel/late_loader.h"
#include "tools/prof-bpf/kernel/record.h"
#include "tools/prof-bpf/kernel/runtimes.h"
#include "tools/prof-bpf/kernel/targeting.h"

#define RING_MIN (256u << 10)
#define DEFERRED_RING_MIN (512u << 10)
#define DEFERRED_MEAN (40u << 10) /* bytes; on most hosts one deferred sample in ten is large */
#define RING_BYTES_PER_SAMPLE 512 /* bytes of a sample on most hosts: 50 frames */
#define RING_SECONDS 1
#define DRAIN_LATE_MS 50 /* how late the loop may be */
#define PROCESSES_MIN 4096u
#define PROCESSES_SPARE 4 /* factor for the number of processes at the start */

enum counter {
#define COUNTER(name) COUNTER_##name,
#include "bpf/counters.def"
#undef COUNTER
};

struct loader {
	struct loader_config config;
	struct sample_bpf *skel;
	struct ring_buffer *ring, *deferred_ring;
	struct runtimes *runtimes;
	struct targeting *targeting; /* NULL: all processes are wanted */
	struct late_loader late;
	/* Results of loading each: 1: not requested; -EAGAIN: requested. */
	int runtime_results[RUNTIME_MAX];
	int *events; /* indexed by cpu number; -1: offline */
	/* Links of the sampling program to the events; -1: none, or the event itself holds the
	 * program. */
	int *links;
	uint64_t *values; /* one counter of all cpus, as read from the map */
	unsigned cpus;	  /* number of possible cpus */
	bool cycles, started;
	bool bad_target; /* a target was the reason of a failure, and this was logged */
	uint64_t malformed;
	uint64_t map_bytes;
	void (*whole)(void *ctx, const struct sample *s);
	void (*deferred)(void *ctx, const struct deferred_sample *d);
	void *ctx;
	uint32_t verified; /* instructions; 0: not read yet */
};

/* libbpf's callback has no context, so the first warning is kept here. */
static char trouble[512];

static int keep_trouble(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	char line[sizeof(trouble)];

	if (level != LIBBPF_WARN)
		return 0;
	vsnprintf(line, sizeof(line), fmt, ap);
	/* Inner maps with our value size have no BTF. libbpf tries with BTF first, and warns. */
	if (strstr(line, "Retrying without BTF"))
		return 0;
	line[strcspn(line, "\n")] = '\0';
	if (!trouble[0])
		memcpy(trouble, line, sizeof(trouble));
	return 0;
}

const char *loader_trouble(const struct loader *l)
{
	return l->bad_target ? NULL : trouble;
}

int loader_event_open(unsigned hz, bool cycles, unsigned cpu)
{
	struct perf_event_attr a = {
		.size = sizeof(a),
		.type = cycles ? PERF_TYPE_HARDWARE : PERF_TYPE_SOFTWARE,
		.config = cycles ? (uint64_t)PERF_COUNT_HW_CPU_CYCLES
				 : (uint64_t)PERF_COUNT_SW_CPU_CLOCK,
		.disabled = 1,
	};

	if (cycles) {
		a.freq = 1;
		a.sample_freq = hz;
	} else {
		a.sample_period = 1000000000u / hz;
	}
	int fd = (int)syscall(SYS_perf_event_open, &a, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Whether the targets are on this cpu. */
static bool has_cpu(const struct loader *l, unsigned cpu)
{
	const struct targets *t = l->config.targets;

	return !t || cpulist_empty(&t->cpus) || cpulist_has(&t->cpus, cpu);
}

int loader_new(const struct loader_config *c, struct loader **ret)
{
	struct loader *l = calloc(1, sizeof(*l));
	int opened = 0, r = -ENODEV;

	if (!l)
		return -ENOMEM;
	libbpf_set_print(keep_trouble);
	const int cpus = libbpf_num_possible_cpus();

	l->config = *c;
	if (cpus < 1) {
		free(l);
		return cpus < 0 ? cpus : -ENODEV;
	}
	l->cpus = (unsigned)cpus;
	l->events = calloc(l->cpus, sizeof(*l->events));
	l->links = calloc(l->cpus, sizeof(*l->links));
	l->values = calloc(l->cpus, sizeof(*l->values));
	if (!l->events || !l->links || !l->values) {
		free(l->values);
		free(l->events);
		free(l->links);
		free(l);
		return -ENOMEM;
	}
	for (unsigned i = 0; i < l->cpus; i++)
		l->events[i] = l->links[i] = -1;
	for (int i = 0; i < RUNTIME_MAX; i++)
		l->runtime_results[i] = 1;
	l->late = LATE_LOADER_NONE;
	for (int cycles = 1; cycles >= 0 && !opened; cycles--) {
		l->cycles = cycles;
		for (unsigned i = 0; i < l->cpus; i++) {
			int fd = has_cpu(l, i) ? loader_event_open(c->hz, cycles, i) : -ENODEV;

			if (fd >= 0) {
				l->events[i] = fd;
				opened++;
			} else if (fd != -ENODEV) {
				r = fd;
				break;
			}
		}
		if (r == -EACCES || r == -EPERM)
			break;
	}
	if (!opened) {
		loader_free(l);
		return r;
	}
	*ret = l;
	return 0;
}

/* Returns the memory of a map, from the memlock line of its fdinfo. */
static uint64_t map_memory(int fd)
{
	char path[64], text[1024];

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	(void)smallfile_read(AT_FDCWD, path, text, sizeof(text));
	const char *at = strstr(text, "memlock:");
	return at ? strtoull(at + strlen("memlock:"), NULL, 10) : 0;
}

static int on_record(void *ctx, void *data, size_t size)
{
	struct loader *l = ctx;
	const struct sample *s = record_sample(data, size);

	if (s)
		l->whole(l->ctx, s);
	else
		l->malformed++;
	return 0;
}

static int on_deferred(void *ctx, void *data, size_t size)
{
	struct loader *l = ctx;
	const struct deferred_sample *d = record_deferred(data, size);

	if (d)
		l->deferred(l->ctx, d);
	else
		l->malformed++;
	return 0;
}

static volatile uint32_t state_bytes;

static void on_signal(int sig, siginfo_t *info, void *context)
{
	const ucontext_t *u = context;
	struct _fpx_sw_bytes state;

	if (!u->uc_mcontext.fpregs)
		return;
	/* The last bytes of this area hold the size of what follows. */
	memcpy(&state, (const char *)(u->uc_mcontext.fpregs + 1) - sizeof(state), sizeof(state));
	if (state.magic1 == FP_XSTATE_MAGIC1)
		state_bytes = state.extended_size;
}

/* Returns how many bytes of extended state the kernel puts on the stack for a signal handler. Only
 * the cpu knows, so this sends one signal. 0: unknown. */
static uint32_t signal_state(void)
{
	struct sigaction action = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO }, before;

	if (sigaction(SIGURG, &action, &before) < 0)
		return 0;
	raise(SIGURG);
	sigaction(SIGURG, &before, NULL);
	return state_bytes;
}

/* Returns the size of the map of processes. Its elements are preallocated, since a tick must not
 * allocate. */
static uint32_t process_room(void)
{
	uint32_t room = PROCESSES_MIN, n = 0;
	DIR *proc = opendir("/proc");

	if (!proc)
		return TABLES_MAX_PROCESSES;
	for (const struct dirent *e = readdir(proc); e; e = readdir(proc))
		n += e->d_name[0] >= '1' && e->d_name[0] <= '9';
	closedir(proc);
	while (room < n * PROCESSES_SPARE && room < TABLES_MAX_PROCESSES)
		room *= 2;
	return room;
}

/* Attaches the sampling program to a cpu's event. libbpf is not used: it would enable the event,
 * and first load a program to probe the kernel. */
static int attach(struct loader *l, unsigned cpu)
{
	const int program = bpf_program__fd(l->skel->progs.on_tick);

	l->links[cpu] = bpf_link_create(program, l->events[cpu], BPF_PERF_EVENT, NULL);
	if (l->links[cpu] >= 0)
		return 0;
	/* Before Linux 5.15 there is no such link; the event holds the program. */
	return ioctl(l->events[cpu], PERF_EVENT_IOC_SET_BPF, program) < 0 ? -errno : 0;
}

/* Opens the programs. libbpf gets only those of the kernel's types that they need, in a file that
 * must exist until they are loaded. Returns its descriptor, or -errno. */
static int open_with(struct loader *l, struct span all)
{
	LIBBPF_OPTS(bpf_object_open_opts, options);
	char path[32];
	int types = memfd_create("types", MFD_CLOEXEC);

	if (types < 0)
		return -errno;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", types);
	options.btf_custom_path = path;
	l->skel = sample_bpf__open_opts(&options);
	const int r = l->skel ? kernel_types_write(types, all, bpf_object__btf(l->skel->obj))
			      : -errno;
	if (!r)
		return types;
	sample_bpf__destroy(l->skel);
	l->skel = NULL;
	close(types);
	return r;
}

/* Opens the programs. *ret_types: a file that is needed until they are loaded, or -1. Returns 0 or
 * -errno. */
static int open_programs(struct loader *l, int *ret_types)
{
	struct buf all = { 0 };
	const int r = kernel_types_read(&all);

	*ret_types = r ? -1 : open_with(l, buf_span(&all));
	/* libbpf can read all types itself, and reports what is wrong with them. A limit on the
	 * size of files does not affect this. */
	if (*ret_types < 0)
		l->skel = sample_bpf__open();
	const int opened = l->skel ? 0 : -errno;
	if (l->skel)
		l->skel->rodata->exec_state_dumpable =
			kernel_types_offset(buf_span(&all), "task_exec_state", "dumpable");
	buf_done(&all);
	return opened;
}

/* Attaches a program that follows processes and cgroups. Returns 0 or -errno. */
static int hook(const struct bpf_program *p, struct bpf_link **ret)
{
	*ret = bpf_program__attach(p);
	return *ret ? 0 : -errno;
}

/* Sets whom the programs sample. Call it before they are loaded. Returns 0 or -errno. */
static int choose_targets(struct loader *l)
{
	const struct targets *targets = l->config.targets;
	struct sample_bpf *s = l->skel;
	const bool any = targets && targets_any(targets);
	const int r = any ? targeting_new(targets, l->config.again, &l->targeting) : 0;

	if (r) {
		l->bad_target = r == -ENOENT;
		return r;
	}
	static const struct targeting_plan none;
	const struct targeting_plan *p = any ? targeting_plan(l->targeting) : &none;
	const struct {
		struct bpf_map *map;
		uint32_t room;
	} maps[] = {
		{ s->maps.target_cgroups, p->cgroup_room },
		{ s->maps.target_names, p->name_room },
		{ s->maps.target_ids, p->id_room },
		{ s->maps.target_comms, p->comm_room },
		{ s->maps.target_users, p->user_room },
		{ s->maps.target_pids, p->pid_room },
		{ s->maps.target_descended, p->descended_room },
	};

	s->rodata->target_checks = p->checks;
	s->rodata->target_tree = p->tree;
	s->rodata->target_min_age_ns = p->min_age_ns;
	s->rodata->target_descendants = p->descendants;
	bpf_program__set_autoload(s->progs.on_free, p->descendants);
	bpf_program__set_autoload(s->progs.on_cgroup, p->cgroups);
	bpf_program__set_autoload(s->progs.on_cgroup_end, p->cgroups);
	for (size_t i = 0; any && i < sizeof(maps) / sizeof(maps[0]); i++) {
		const int e = bpf_map__set_max_entries(maps[i].map, maps[i].room);

		if (e < 0)
			return e;
	}
	return 0;
}

/* Fills the maps of targets. Call it before any program runs. Returns 0 or -errno. */
static int fill_targets(struct loader *l)
{
	struct sample_bpf *s = l->skel;
	const struct targeting_maps maps = { .cgroups = bpf_map__fd(s->maps.target_cgroups),
					     .names = bpf_map__fd(s->maps.target_names),
					     .ids = bpf_map__fd(s->maps.target_ids),
					     .comms = bpf_map__fd(s->maps.target_comms),
					     .users = bpf_map__fd(s->maps.target_users),
					     .pids = bpf_map__fd(s->maps.target_pids) };
	const int r = l->targeting ? targeting_fill(l->targeting, &maps) : 0;

	l->bad_target = r != 0;
	return r;
}

/* Finds targets that already exist. Call it when the programs are already notified of new ones.
 * Returns 0 or -errno. */
static int find_targets(struct loader *l)
{
	const struct targeting_plan *p = l->targeting ? targeting_plan(l->targeting) : NULL;
	struct sample_bpf *s = l->skel;
	int r = 0;

	if (p && p->descendants)
		r = hook(s->progs.on_free, &s->links.on_free);
	if (!r && p && p->cgroups)
		r = hook(s->progs.on_cgroup, &s->links.on_cgroup);
	if (!r && p && p->cgroups)
		r = hook(s->progs.on_cgroup_end, &s->links.on_cgroup_end);
	if (r || !p)
		return r;
	r = targeting_find(l->targeting);
	l->bad_target = r != 0;
	return r;
}

/* Returns the number of our pid namespace, for the programs; 0: it is the host's. */
static uint32_t viewer_pid_ns(void)
{
	uint32_t number;

	return namespace_is_first(NAMESPACE_PID) == NAMESPACE_OTHER &&
			       namespace_number(NAMESPACE_PID, &number) == 0
		       ? number
		       : 0;
}

/* Sets the sizes of maps. Returns 0 or -errno. */
static int size_maps(struct loader *l)
{
	uint64_t ring = RING_MIN, deferred = DEFERRED_RING_MIN,
		 wanted = (uint64_t)l->config.hz * l->cpus * RING_BYTES_PER_SAMPLE * RING_SECONDS;

	while (ring < wanted && ring * 2 <= l->config.ring_max)
		ring *= 2;
	/* All samples between two turns of the loop may be deferred. If the ring cannot hold them,
	 * it wakes the loop when it is half full. */
	wanted = (uint64_t)l->config.hz * l->cpus * (l->config.drain_ms + DRAIN_LATE_MS) / 1000 *
		 DEFERRED_MEAN;
	while (deferred < wanted && deferred * 2 <= l->config.ring_max)
		deferred *= 2;

	const struct {
		struct bpf_map *map;
		uint32_t entries;
	} sizes[] = {
		{ l->skel->maps.ring, (uint32_t)ring },
		{ l->skel->maps.deferred_ring, (uint32_t)deferred },
		{ l->skel->maps.processes, process_room() },
		{ l->skel->maps.fetched, l->cpus },
	};
	int r = 0;

	for (size_t i = 0; !r && i < sizeof(sizes) / sizeof(sizes[0]); i++)
		r = bpf_map__set_max_entries(sizes[i].map, sizes[i].entries);
	return r;
}

/* Sets the constants of the programs. Returns 0 or -errno. */
static int set_constants(struct loader *l)
{
	l->skel->rodata->only_selected = l->config.only_selected;
	l->skel->rodata->follow_forks = l->config.follow_forks;
	l->skel->rodata->viewer_pid_ns = viewer_pid_ns();
	l->skel->rodata->signal_state = signal_state();
	l->skel->rodata->have_task_pt_regs =
		libbpf_probe_bpf_helper(BPF_PROG_TYPE_PERF_EVENT, BPF_FUNC_task_pt_regs, NULL) == 1;
	return choose_targets(l);
}

/* Opens and loads the programs. Returns 0 or -errno. */
static int load_programs(struct loader *l)
{
	int types = -1, r;

	libbpf_set_print(keep_trouble);
	trouble[0] = '\0';
	r = open_programs(l, &types);
	if (!r)
		r = size_maps(l);
	if (!r)
		r = set_constants(l);
	if (!r) {
		trouble[0] = '\0';
		r = sample_bpf__load(l->skel);
	}
	if (types >= 0)
		close(types);
	return r;
}

/* Attaches the programs to their tracepoints and to the events. Returns 0 or -errno. */
static int attach_programs(struct loader *l)
{
	int r = hook(l->skel->progs.on_exec, &l->skel->links.on_exec);

	if (!r)
		r = hook(l->skel->progs.on_fork, &l->skel->links.on_fork);
	if (!r)
		r = find_targets(l);
	for (unsigned i = 0; !r && i < l->cpus; i++)
		r = l->events[i] >= 0 ? attach(l, i) : 0;
	return r;
}

int loader_load(struct loader *l)
{
	struct bpf_map *m;
	int r = load_programs(l);

	if (!r)
		r = runtimes_new(l->skel->obj, &l->runtimes);
	if (r)
		return r;
	l->ring = ring_buffer__new(bpf_map__fd(l->skel->maps.ring), on_record, l, NULL);
	if (!l->ring)
		return -errno;
	l->deferred_ring = ring_buffer__new(bpf_map__fd(l->skel->maps.deferred_ring), on_deferred,
					    l, NULL);
	if (!l->deferred_ring)
		return -errno;
	bpf_object__for_each_map(m, l->skel->obj)
		l->map_bytes += map_memory(bpf_map__fd(m));
	r = fill_targets(l);
	return r ? r : attach_programs(l);
}

int loader_samples_fd(const struct loader *l)
{
	return bpf_map__fd(l->skel->maps.ring);
}

int loader_deferred_fd(const struct loader *l)
{
	return bpf_map__fd(l->skel->maps.deferred_ring);
}

int loader_start_late(struct loader *l)
{
	return late_loader_start(l->runtimes, trouble, &l->late);
}

int loader_late_fd(const struct loader *l)
{
	return l->late.fd;
}

pid_t loader_late_pid(const struct loader *l)
{
	return l->late.pid;
}

int loader_hear_late(struct loader *l)
{
	struct late_loader_answer a;
	int r;

	for (r = late_loader_hear(&l->late, &a); r == 0; r = late_loader_hear(&l->late, &a)) {
		if (a.runtime >= RUNTIME_MAX)
			continue;
		l->runtime_results[a.runtime] = a.result;
		if (a.result)
			snprintf(trouble, sizeof(trouble), "%s", a.trouble);
	}
	return r == -EAGAIN ? 0 : r;
}

int loader_runtime(struct loader *l, enum runtime which)
{
	if (which <= RUNTIME_NONE || which >= RUNTIME_MAX)
		return -EINVAL;
	if (l->runtime_results[which] == 1) {
		const int r = late_loader_ask(&l->late, which);

		l->runtime_results[which] = r ? r : -EAGAIN;
	}
	return l->runtime_results[which];
}

bool loader_is_loading(const struct loader *l)
{
	for (unsigned i = 0; i < RUNTIME_MAX; i++) {
		if (l->runtime_results[i] == -EAGAIN)
			return true;
	}
	return false;
}

int loader_forget_objects(struct loader *l)
{
	const uint32_t zero = 0;
	void *none = calloc(1, bpf_map__value_size(l->skel->maps.seen_objects));
	const int fd = bpf_map__fd(l->skel->maps.seen_objects);
	const int r = none ? bpf_map_update_elem(fd, &zero, none, BPF_ANY) : -ENOMEM;

	free(none);
	return r;
}

int loader_forget_some(struct loader *l, uint32_t pid, const uint64_t *addresses, size_t n)
{
	const uint32_t zero = 0;
	const int fd = bpf_map__fd(l->skel->maps.seen_objects);
	uint64_t *sets = calloc(RUNTIME_SEEN_SETS, sizeof(*sets));
	int r = sets ? bpf_map_lookup_elem(fd, &zero, sets) : -ENOMEM;

	for (size_t i = 0; !r && i < n; i++)
		sets[runtime_seen_set(pid, addresses[i])] = 0;
	/* Objects that are copied meanwhile may be copied once more. */
	if (!r)
		r = bpf_map_update_elem(fd, &zero, sets, BPF_ANY);
	free(sets);
	return r;
}

void loader_tables(const struct loader *l, struct tables_config *ret)
{
	ret->slabs_fd = bpf_map__fd(l->skel->maps.slabs);
	ret->files_fd = bpf_map__fd(l->skel->maps.files);
	ret->rules_fd = bpf_map__fd(l->skel->maps.rules);
	ret->processes_fd = bpf_map__fd(l->skel->maps.processes);
	ret->max_processes = bpf_map__max_entries(l->skel->maps.processes);
}

int loader_start(struct loader *l)
{
	for (unsigned i = 0; i < l->cpus; i++)
		if (l->events[i] >= 0 && ioctl(l->events[i], PERF_EVENT_IOC_ENABLE, 0) < 0)
			return -errno;
	l->started = true;
	return 0;
}

int loader_pause(struct loader *l)
{
	int r = 0;

	for (unsigned i = 0; i < l->cpus; i++)
		if (l->events[i] >= 0 && ioctl(l->events[i], PERF_EVENT_IOC_DISABLE, 0) < 0)
			r = -errno;
	l->started = false;
	return r;
}

static void close_event(struct loader *l, unsigned cpu)
{
	if (l->links[cpu] >= 0)
		close(l->links[cpu]);
	if (l->events[cpu] >= 0) {
		ioctl(l->events[cpu], PERF_EVENT_IOC_DISABLE, 0);
		close(l->events[cpu]);
	}
	l->links[cpu] = l->events[cpu] = -1;
}

int loader_cpu(struct loader *l, unsigned cpu, int event)
{
	if (cpu >= l->cpus || !has_cpu(l, cpu)) {
		close(event);
		return cpu >= l->cpus ? -EINVAL : 0;
	}
	close_event(l, cpu);
	l->events[cpu] = event;
	int r = attach(l, cpu);
	if (!r && l->started && ioctl(event, PERF_EVENT_IOC_ENABLE, 0) < 0)
		r = -errno;
	if (r)
		close_event(l, cpu);
	return r;
}

void loader_stop(struct loader *l)
{
	for (unsigned i = 0; i < l->cpus; i++)
		close_event(l, i);
	l->started = false;
}

int loader_drain(struct loader *l, void (*whole)(void *, const struct sample *),
		 void (*deferred)(void *, const struct deferred_sample *), void *ctx)
{
	l->whole = whole;
	l->deferred = deferred;
	l->ctx = ctx;
	int r = ring_buffer__consume(l->ring), more = 0;

	if (r >= 0)
		more = ring_buffer__consume(l->deferred_ring);
	/* Items of deferred samples may have come meanwhile. */
	if (whole && r >= 0 && more > 0)
		r = ring_buffer__consume(l->ring);
	return r < 0 ? r : more < 0 ? more : r + more;
}

const char *loader_event(const struct loader *l)
{
	return l->cycles ? "cycles" : "cpu-clock";
}

const char *loader_unit(const struct loader *l)
{
	return l->cycles ? "cycles" : "nanoseconds";
}

uint64_t loader_period(const struct loader *l)
{
	return l->cycles ? 0 : 1000000000u / l->config.hz;
}

/* Returns a counter of one cpu, or the sum over all (-1). */
static uint64_t counter(struct loader *l, uint32_t which, int cpu)
{
	uint64_t sum = 0;

	if (bpf_map_lookup_elem(bpf_map__fd(l->skel->maps.counters), &which, l->values) < 0)
		return 0;
	if (cpu >= 0)
		return l->values[cpu];
	for (unsigned i = 0; i < l->cpus; i++)
		sum += l->values[i];
	return sum;
}

static uint32_t verified(const struct bpf_program *p)
{
	struct bpf_prog_info info = { 0 };
	uint32_t size = sizeof(info);

	return bpf_obj_get_info_by_fd(bpf_program__fd(p), &info, &size) ? 0 : info.verified_insns;
}

void loader_figures(struct loader *l, struct loader_figures *ret)
{
	ret->runs = counter(l, COUNTER_RUNS, -1);
	ret->ns = counter(l, COUNTER_NS, -1);
	ret->ticks = counter(l, COUNTER_TICKS, -1);
	ret->skipped = counter(l, COUNTER_SKIPPED, -1);
	ret->ring_full = counter(l, COUNTER_RING_FULL, -1);
	ret->map_bytes = l->map_bytes;
	ret->cpus = l->cpus;

	if (!l->verified)
		l->verified = verified(l->skel->progs.on_tick) + verified(l->skel->progs.on_walk);
	ret->verified = l->verified;
}

bool loader_wants(const struct loader *l, uint32_t pid, uint64_t exec_ns)
{
	const uint32_t at = pid % TABLES_EXECS;
	struct exec_entry e;

	return bpf_map_lookup_elem(bpf_map__fd(l->skel->maps.execs), &at, &e) == 0 &&
	       e.pid == pid && e.ns >= exec_ns && !e.skipped;
}

uint64_t loader_ring_full(struct loader *l, unsigned cpu)
{
	return cpu < l->cpus ? counter(l, COUNTER_RING_FULL, (int)cpu) : 0;
}

uint64_t loader_malformed(const struct loader *l)
{
	return l->malformed;
}

void loader_free(struct loader *l)
{
	if (!l)
		return;
	loader_stop(l);
	ring_buffer__free(l->ring);
	ring_buffer__free(l->deferred_ring);
	late_loader_stop(&l->late);
	runtimes_free(l->runtimes);
	targeting_free(l->targeting);
	sample_bpf__destroy(l->skel);
	free(l->values);
	free(l->events);
	free(l->links);
	free(l);
}
