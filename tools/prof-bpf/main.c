/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prof-bpf: the only process with privileges. It loads the BPF programs, maintains the tables that
 * they read, follows processes and mappings, opens files for other tools, and sends the raw stream.
 * It parses no file format.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>
#include "common/base/command/exits.h"
#include "common/base/command/log.h"
#include "common/base/command/stdfds.h"
#include "common/base/system/clock.h"
#include "common/base/system/heap.h"
#include "common/cell/budget/priority.h"
#include "tools/prof-bpf/checking.h"
#include "tools/prof-bpf/checks/probes.h"
#include "tools/prof-bpf/events.h"
#include "tools/prof-bpf/hello.h"
#include "tools/prof-bpf/open/closing.h"
#include "tools/prof-bpf/run/figures.h"
#include "tools/prof-bpf/run/host_news.h"
#include "tools/prof-bpf/run/loop.h"
#include "tools/prof-bpf/run/prof.h"
#include "tools/prof-bpf/stream/definitions.h"
#include "tools/prof-bpf/system_calls.h"

/* Threads of nng, the closers, and the thread that reads kernel names. */
#define THREADS 18
#define COPIES_PART 8 /* part of the limit that copies of files may use */
#define SIDEBAND_LEAST (32u << 10)
/* The smallest useful size of the tables: a slab for mappings and one for rows. */
#define TABLES_LEAST (2 * TABLES_SLAB_BYTES)

static int fail(const char *what, int r, const char *remedy)
{
	log_error("%s: %s%s%s", what, strerror(-r), *remedy ? "; " : "", remedy);
	return r;
}

#define REMEDY_PERF \
	"run as root, or with CAP_PERFMON and CAP_BPF; " \
	"kernel.perf_event_paranoid above 2 requires CAP_SYS_ADMIN"

#define REMEDY_MEMORY "leave the run more memory, in its cgroup or by --memory-limit"
#define REMEDY_FILES "allow more open files (ulimit -n, fs.file-max)"
#define REMEDY_PROCESSES "allow more processes (ulimit -u, pids.max)"

static long cpus(void)
{
	const long n = sysconf(_SC_NPROCESSORS_CONF);

	return n > 0 ? n : 1;
}

/* Returns the bytes of each cpu's ring of side-band records. */
static size_t sideband_bytes(const struct prof *p)
{
	const uint64_t n = p->budget.sideband / (uint64_t)cpus();

	return n < SIDEBAND_LEAST	 ? SIDEBAND_LEAST
	       : n > SIDEBAND_RING_BYTES ? SIDEBAND_RING_BYTES
					 : (size_t)n;
}

/* Refuses to write the stream to a terminal when prof-bpf runs by hand. */
static int check_terminal(const struct options *o)
{
	if (o->deploy.run_dir || o->output || o->check || o->cpus || !isatty(STDOUT_FILENO))
		return EXITS_GO_ON;
	log_error("standard output: is a terminal; use -o FILE, or a pipe to prof-symd");
	return EXITS_USAGE;
}

/* Opens perf events, which need more rights than the tool keeps. */
static int open_privileged(struct prof *p)
{
	struct sideband_figures rings;
	int r;

	/* On a busy host, prof-bpf must update the tables within microseconds of an exec, and
	 * side-band records must not pile up. Without the right to raise its priority, it runs at
	 * the normal one. */
	priority_raise();
	r = events_open(p);
	if (r)
		return fail("the sampling events cannot be opened", r, REMEDY_PERF);
	r = sideband_new(sideband_bytes(p), -1, &p->sideband);
	if (r)
		return fail("the side-band events cannot be opened", r, REMEDY_PERF);
	sideband_figures(p->sideband, &rings);
	const struct cpus_config later = { .hz = p->options.sampling.hz,
					   .events = { .cycles = strcmp(loader_event(p->loader),
									"cycles") == 0,
						       .ksymbols = rings.ksymbols },
					   .deploy = &p->options.deploy };
	r = cpus_start(&later, &p->cpus);
	if (r)
		log_warning("cpus that come online later are not sampled: prof-cpus cannot be "
			    "started: %s; " REMEDY_PROCESSES,
			    strerror(-r));
	return 0;
}

/* Computes the initial size of the tables: what maps and rings leave of their guaranteed share. */
static int share_tables(struct prof *p, size_t *ret)
{
	struct loader_figures f;

	loader_figures(p->loader, &f);
	const uint64_t rest = f.map_bytes + (uint64_t)cpus() * sideband_bytes(p);

	if (!p->options.table_bytes && rest + TABLES_LEAST > p->budget.maps) {
		log_error("the %ld cpus of this host need %llu MiB for BPF maps and rings alone; "
			  "raise --memory-limit",
			  cpus(), (unsigned long long)rest >> 20);
		return -ENOMEM;
	}
	const uint64_t sure = p->budget.maps > rest ? p->budget.maps - rest : 0;

	*ret = p->options.table_bytes ? p->options.table_bytes : sure;
	return limit_init(&p->limit, &p->budget, &p->options.deploy, rest, sure);
}

static void on_rows_come(void *ctx, uint64_t bytes)
{
	struct prof *p = ctx;

	limit_rows(&p->limit, bytes, clock_mono_ns());
}

static int load_bpf(struct prof *p)
{
	struct tables_config c = { 0 };
	int r = loader_load(p->loader);

	if (r && !loader_trouble(p->loader))
		return r; /* already logged */
	if (r) {
		log_error("the BPF programs cannot be loaded: %s (%s); this needs CAP_BPF, "
			  "CAP_PERFMON, and Linux 5.10 or later with BTF",
			  strerror(-r), loader_trouble(p->loader));
		return r;
	}
	/* Do this while there is only one thread. */
	if (p->options.deploy.run_dir) {
		r = loader_start_late(p->loader);
		if (r)
			return fail("prof-bpf-loader cannot be started", r, REMEDY_PROCESSES);
		/* Load Python's programs at once, so that its first frames are read: they are
		 * small, and most hosts run Python. */
		(void)loader_runtime(p->loader, RUNTIME_PYTHON);
	}
	r = kernel_names_open(&p->names);
	if (r)
		log_warning("/proc/kallsyms: %s; kernel functions have no names; see `profpipe "
			    "doctor`",
			    strerror(-r));
	loader_tables(p->loader, &c);
	r = share_tables(p, &c.max_bytes);
	if (r)
		return r;
	r = tables_new(&c, &p->tables);
	if (!r) {
		const struct deferred_config d = { .tables = p->tables,
						   .ceiling = p->budget.deferred,
						   .mappings = samples_mappings,
						   .changes = samples_changes,
						   .wants = samples_want,
						   .is_behind = samples_are_behind,
						   .emit = samples_walked,
						   .ctx = &p->samples };

		r = deferred_new(&d, &p->deferred);
	}
	return r ? fail("the unwind tables cannot be made", r, REMEDY_MEMORY) : 0;
}

static int open_routes(struct prof *p, const char *run_dir)
{
	const struct deploy *d = &p->options.deploy;
	const struct row_server_config rows = { .run_dir = run_dir,
						.peer = d->uid[DEPLOY_DELTAS],
						.tables = p->tables,
						.quarantine = p->quarantine,
						.on_death = parser_deaths_rows,
						.on_aside = parser_deaths_aside,
						.rows_come = on_rows_come,
						.ctx = p };
	int r = row_server_new(&rows, &p->row_server);

	if (!r && d->run_dir) {
		const struct file_server_config files = { .run_dir = run_dir,
							  .peer = d->uid[DEPLOY_SYMD],
							  .want_file = requests_file,
							  .want_debug = requests_debug,
							  .want_jit = requests_jit,
							  .take_runtime = requests_runtime,
							  .want_memory = requests_memory,
							  .peer_died = requests_peer_died,
							  .ctx = &p->requests };

		r = file_server_new(&files, &p->file_server);
		if (!r)
			r = bus_listen(BUSROUTE_STREAM, run_dir, d->uid[DEPLOY_SYMD],
				       &p->output.bus);
		p->output.outbox = (struct outbox){ .bus = p->output.bus, .max = p->budget.outbox };
	}
	return r ? fail(run_dir, r, "the run needs sockets here") : 0;
}

static void pass_over(void *ctx, const struct sideband_event *e)
{
}

/* Connects the parts, once all but the stream exist. */
static void connect_parts(struct prof *p)
{
	struct samples *s = &p->samples;

	p->limit.tables = p->tables;
	p->limit.file_server = p->file_server;
	p->limit.opener = p->opener;
	p->limit.tables_fixed = p->options.table_bytes != 0;

	p->throttle.row_server = p->row_server;
	p->throttle.file_server = p->file_server;
	p->throttle.owners = host_owners(p->host);
	throttle_init(&p->throttle, p->options.sampling.cpu_limit, (unsigned)cpus());

	p->deaths.host = p->host;
	row_server_charge(p->row_server, host_owners(p->host));

	p->requests.file_server = p->file_server;
	p->requests.host = p->host;
	p->requests.jitfiles = p->jitfiles;
	p->requests.pool = p->pool;
	p->requests.loader = p->loader;
	p->requests.tables = p->tables;
	p->requests.offers = &p->offers;
	p->requests.deaths = &p->deaths;
	p->requests.may_read_memory = !p->options.sampling.memory_none;

	s->loader = p->loader;
	s->sideband = p->sideband;
	s->names = &p->names;
	s->host = p->host;
	s->tables = p->tables;
	s->deferred = p->deferred;
	deferred_keep_owners(p->deferred, host_owners(p->host));
	s->limit = &p->limit;
	s->deaths = &p->deaths;
	s->row_server = p->row_server;
	s->output = &p->output;
	s->witness_report = &p->witness_report;
	s->thinning = throttle_thinning(&p->throttle);
	s->without_objects = p->options.sampling.memory_none;
	s->command = p->options.follow;

	p->output.charges.owners = host_owners(p->host);
	p->losses.output = &p->output;
	p->losses.loader = p->loader;
	p->losses.sideband = p->sideband;
	p->losses.host = p->host;
	p->losses.samples = &s->lost;
}

static int open_host(struct prof *p)
{
	const struct deploy *d = &p->options.deploy;
	const struct sampling *s = &p->options.sampling;
	const bool selects = p->options.follow || s->pid_count;
	const struct host_config c = {
		.tables = p->tables,
		.opener = p->opener,
		.pool = p->pool,
		.proc = "/proc",
		.only_selected = selects,
		.follow_forks = options_follow_forks(&p->options),
		.is_wanted = !selects && targets_any(&s->targets) ? host_news_is_wanted : NULL,
		.self_uids = d->uid,
		.self_uid_count = d->ids_given ? DEPLOY_TOOLS + d->send_given : 0,
		.memory = p->budget.host,
		.file_known = host_news_file_known,
		.file_needs_rows = host_news_file_needs_rows,
		.file_gone = host_news_file_gone,
		.attributes_known = host_news_attributes_known,
		.environment = { .names = p->options.sampling.env,
				 .count = (unsigned)p->options.sampling.env_count,
				 .command_line = p->options.sampling.command_lines },
		.process_gone = host_news_process_gone,
		.thread_gone = host_news_thread_gone,
		.ctx = p,
	};

	/* host_new requests the vDSO's rows at once. */
	p->deaths.quarantine = p->quarantine;
	p->offers.wanted = p->output.bus != NULL;
	int r = host_new(&c, &p->host);
	if (!r) {
		(void)subids_read(&p->subids);
		owners_fold(host_owners(p->host), &p->subids);
	}
	if (!r && p->file_server)
		r = jitfiles_new(p->host, p->opener, &p->jitfiles);
	if (r)
		return fail("the host cannot be followed", r, REMEDY_MEMORY);
	connect_parts(p);
	workerpool_charge(p->pool, host_owners(p->host));
	opener_charge(p->opener, host_owners(p->host));
	host_mark_self(p->host, (uint32_t)getpid());
	host_mark_self(p->host, (uint32_t)workerpool_keeper(p->pool));
	if (p->extractor.pid)
		host_mark_self(p->host, (uint32_t)p->extractor.pid);
	if (p->cpus.pid)
		host_mark_self(p->host, (uint32_t)p->cpus.pid);
	if (loader_late_pid(p->loader))
		host_mark_self(p->host, (uint32_t)loader_late_pid(p->loader));
	for (size_t i = 0; i < p->options.sampling.pid_count; i++) {
		if (host_select(p->host, p->options.sampling.pids[i])) {
			log_error("--pid: %u: there is no such process; see `ps -e`",
				  p->options.sampling.pids[i]);
			return -ESRCH;
		}
	}
	if (p->options.follow && host_select(p->host, p->options.follow)) {
		log_error("--follow: %u: there is no such process; see `ps -e`", p->options.follow);
		return -ESRCH;
	}
	if ((p->options.follow && p->options.resume) || s->targets.descendants)
		(void)host_select_children(p->host);
	/* Discard all records so far: the scan will find everything they tell. On a busy host the
	 * rings are full of them. */
	sideband_drain(p->sideband, UINT64_MAX, pass_over, p);
	losses_forget(&p->losses);
	r = host_scan(p->host);
	return r ? fail("/proc", r, "mount it, readable") : 0;
}

static int on_batch(void *ctx, struct span batch)
{
	struct prof *p = ctx;

	return output_batch(&p->output, batch);
}

static bool kernel_name(void *ctx, uint64_t address, struct str *ret_name, struct str *ret_module,
			uint64_t *ret_start)
{
	struct prof *p = ctx;

	return kernel_names_lookup(&p->names, address, ret_name, ret_module, ret_start);
}

static bool slot_file(void *ctx, uint16_t slot, struct emit_file *ret)
{
	struct prof *p = ctx;
	struct host_file *f = host_slot_file(p->host, slot);

	if (f)
		*ret = definition_of_file(f);
	return f != NULL;
}

static const struct runtime_config *slot_runtime(void *ctx, uint16_t slot)
{
	struct prof *p = ctx;

	return host_slot_runtime(p->host, slot);
}

static int open_emit(struct prof *p)
{
	static struct utsname u;
	static struct hello hello;

	uname(&u);
	hello_read(&hello, p->options.sampling.host_id);
	struct emit_config c = {
		.hello = { .producer = STR_LIT("profpipe " PROFPIPE_VERSION),
			   .arch = str_from(u.machine),
			   .kernel = str_from(u.release),
			   .hostname = str_from(u.nodename),
			   .cpus = (uint64_t)sysconf(_SC_NPROCESSORS_ONLN),
			   .event = str_from(loader_event(p->loader)),
			   .hz = p->options.sampling.hz,
			   .period = loader_period(p->loader),
			   .unit = str_from(loader_unit(p->loader)),
			   .kernel_build_id = { .data = hello.kernel_build_id,
						.len = hello.kernel_build_id_len },
			   .host_id = hello.host_id,
			   .no_memory = p->options.sampling.memory_none },
		.ceiling = p->budget.interned,
		.receiver = p->output.bus ? p->budget.definitions : 0,
		.owners = host_owners(p->host),
		.flush = on_batch,
		.file = slot_file,
		.runtime = slot_runtime,
		.kernel = kernel_name,
		.ctx = p,
	};
	int r = emit_new(&c, &p->output.emit);

	/* By hand the receiver exists from the start. */
	if (!r && !p->output.bus)
		r = emit_restart(p->output.emit);
	return r ? fail("the stream cannot begin", r, REMEDY_MEMORY) : 0;
}

static int open_loop(struct prof *p)
{
	const int r = loop_open(p);

	return r ? fail("the loop cannot be set up", r, REMEDY_FILES) : 0;
}

/* Before Linux 5.11 the memory of BPF maps counts as locked. If raising the limit is not allowed,
 * the check `memlock` reports the consequences. */
static void raise_memlock(void)
{
	const struct rlimit all = { .rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY };

	(void)setrlimit(RLIMIT_MEMLOCK, &all);
}

/* Makes the table of descriptors as large as it can become. Where there are threads, the kernel
 * waits for all cpus whenever it grows, which delays samples. */
static void reserve_descriptors(void)
{
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l) || !l.rlim_cur)
		return;
	const int fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, (int)l.rlim_cur - 1);

	if (fd >= 0)
		close(fd);
}

/* Gives up capabilities. Call it once the programs are loaded. */
static int reduce(void)
{
	const char *step = NULL;
	int r = sandbox_reduce(SANDBOX_RUN_CAPS, &step);

	return r ? fail(step, r, "this is a bug: report this line") : 0;
}

/* Restricts the system calls. Without seccomp the tool continues: then only its own code limits the
 * use of the capabilities. */
static int bound_calls(const struct prof *p)
{
	const int r = system_calls_enter(p->options.deploy.run_dir ? 0 : p->extractor.pid,
					 p->cpus.pid);

	if (r == -EOPNOTSUPP) {
		log_info("system calls: not restricted; this kernel has no seccomp filters");
		return 0;
	}
	if (r == -EPERM || r == -EACCES || r == -ENOSYS) {
		log_warning("system calls: not restricted: %s; "
			    "allow seccomp(2) where prof-bpf is started",
			    strerror(-r));
		return 0;
	}
	return r ? fail("the system calls cannot be restricted", r,
			"this is a bug: report this line")
		 : 0;
}

static int set_up(struct prof *p)
{
	struct sandbox sandbox = { .caps = SANDBOX_BPF_CAPS,
				   .max_files = 4096,
				   .max_data = budget_fence(p->budget.bpf, THREADS) };
	const char *run_dir = p->options.deploy.run_dir;
	int r = checking_start(p, probe_event(0));

	/* Before the events are opened, since the keeper must not have their descriptors. */
	if (!r && !run_dir)
		r = output_open(&p->output, p->options.output, p->options.mode);
	if (!r)
		r = open_privileged(p);

	if (!r && !run_dir) {
		r = extractor_folder(&p->extractor);
		if (r)
			return fail(
				"/run", r,
				"make it or /tmp writable: prof-bpf needs a folder for sockets");
		run_dir = p->extractor.dir;
	}
	/* By hand the tool keeps its user, with only the rights that it needs. In a deployment it
	 * runs as its own user from here on. */
	if (!r)
		r = deploy_enter(&p->options.deploy, DEPLOY_BPF, &sandbox);
	/* Check again, since the rights of root's ids and groups may be gone now. */
	if (!r && p->options.deploy.run_dir)
		r = checking_start(p, 0);
	/* Start it before there are descriptors that it must not have, and while there is only one
	 * thread. */
	if (!r) {
		r = workerpool_start("/proc", &p->pool);
		if (r)
			fail("/proc", r,
			     "mount it, and allow more processes (ulimit -u, pids.max)");
	}
	reserve_descriptors();
	if (!r)
		r = quarantine_new(&p->quarantine);
	if (!r)
		r = load_bpf(p);
	/* Do this while there is only one thread. */
	if (!r)
		r = reduce();
	if (!r)
		r = open_routes(p, run_dir);
	if (!r && !p->options.deploy.run_dir) {
		r = extractor_start(&p->extractor);
		if (r)
			fail("prof-deltas cannot be started", r, "install it beside prof-bpf");
	}
	if (!r) {
		r = closing_start();
		if (r)
			log_warning(
				"no thread can be started to close files: %s; closing one may now "
				"delay samples; " REMEDY_PROCESSES,
				strerror(-r));
		r = opener_new(p->pool, p->budget.limit / COPIES_PART, &p->opener);
	}
	if (!r && p->options.deploy.run_dir) {
		r = witness_report_open(&p->witness_report, run_dir, p->lifecycle.began_ns);
		if (r)
			fail("the socket to prof-export", r, "see the messages of prof-export");
	}
	/* All threads exist now, and no untrusted byte has been read yet. */
	if (!r)
		r = bound_calls(p);
	if (!r)
		r = open_host(p);
	if (!r)
		r = open_emit(p);
	if (!r)
		r = open_loop(p);
	return r;
}

static void tear_down(struct prof *p)
{
	kernel_names_take(&p->names, true);
	if (p->tables) {
		deferred_free(p->deferred);
		requests_done(&p->requests);
		samples_done(&p->samples);
		charges_done(&p->output.charges);
		workerpool_charge(p->pool, NULL);
		if (p->opener)
			opener_charge(p->opener, NULL);
		jitfiles_free(p->jitfiles);
		host_free(p->host);
		subids_done(&p->subids);
		emit_free(p->output.emit);
		kernel_names_done(&p->names);
		file_server_free(p->file_server);
		bus_free(p->output.bus);
		outbox_reset(&p->output.outbox);
		row_server_free(p->row_server);
		tables_free(p->tables);
	}
	witness_report_done(&p->witness_report);
	workerpool_free(p->pool);
	opener_free(p->opener);
	quarantine_free(p->quarantine);
	sideband_free(p->sideband);
	loader_free(p->loader);
	cpus_stop(&p->cpus);
	extractor_stop(&p->extractor);
}

int main(int argc, char **argv)
{
	static struct prof p = { .output.file = OUTFILE_NONE };
	sigset_t set;

	stdfds_hold();
	log_init("prof-bpf", LOG_WARNING);
	heap_setup();
	int r = options_parse(argc, argv, &p.options);
	if (r != EXITS_GO_ON)
		return r;
	r = check_terminal(&p.options);
	if (r != EXITS_GO_ON)
		return r;
	if (p.options.cpus)
		return cpus_serve(&(struct cpus_config){ .hz = p.options.sampling.hz,
							 .events = p.options.events,
							 .deploy = &p.options.deploy });
	signal(SIGPIPE, SIG_IGN);
	/* Do this before any thread starts: all threads inherit the mask, so the loop gets the
	 * signals. */
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	p.lifecycle.since_ns = p.lifecycle.began_ns = clock_mono_ns();
	p.witness_report = WITNESS_REPORT_NONE;

	raise_memlock();
	deploy_budget(&p.options.deploy, &p.budget);
	if (p.options.check)
		return checking_host(&p);
	r = set_up(&p);
	if (!r) {
		p.lifecycle.since_ns = clock_mono_ns();
		loop_run(&p);
		p.status.taken = figures_taken(&p);
	}
	const bool closed = output_close(&p.output);
	bool failed = r || p.lifecycle.failed || p.output.failed || !closed;
	deploy_status(&p.options.deploy, &p.status, failed ? STATUS_FAILED : STATUS_DONE);
	tear_down(&p);
	if (p.lifecycle.again)
		return EXITS_AGAIN;
	return failed ? EXITS_FAILED : EXITS_DONE;
}
