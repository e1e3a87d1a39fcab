/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Follows the whole host like prof-bpf, but without BPF, and prints its view.
 *
 *   host-watch [-v] [-d SECONDS] [-l FILE]
 *
 * At SIGINT, or after SECONDS, compares what it knows of each process (or those whose pids are in
 * FILE by then) with /proc/PID/maps and prints a line for each difference, then the figures. A line
 * that begins with "!" is a difference. SIGUSR1 compares and continues; "compared" is printed at
 * its end.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/base/bytes/buf.h"
#include "common/base/command/log.h"
#include "common/base/system/clock.h"
#include "common/base/system/procfs.h"
#include "tests/host/each_mapping.h"
#include "tests/host/fake-tables.h"
#include "tools/prof-bpf/host/host.h"
#include "tools/prof-bpf/open/workers/workerpool.h"

#define COPIES (64u << 20)

struct watch {
	struct sideband *sideband;
	struct workerpool *pool;
	struct opener *opener;
	struct host *host;
	bool verbose;
	uint64_t rows, gone;
	const char *list;
};

static volatile sig_atomic_t ended, asked;

static void on_signal(int number)
{
	if (number == SIGUSR1)
		asked = 1;
	else
		ended = 1;
}

static void say(const char *what, struct str name, const char *more)
{
	struct buf b = BUF_INIT(1u << 20);

	(void)log_escape(&b, name, 4096);
	printf("%s %.*s%s\n", what, (int)b.len, b.data ? (const char *)b.data : "", more);
	buf_done(&b);
}

static void needs_rows(void *ctx, struct host_file *f, int fd)
{
	struct watch *w = ctx;
	struct stat st;
	char more[160];

	w->rows++;
	if (fstat(fd, &st) || st.st_size != (off_t)f->size)
		printf("! file %u: the descriptor is not of %" PRIu64 " bytes\n", f->id, f->size);
	close(fd);
	snprintf(more, sizeof(more),
		 " id=%u slot=%u dev=%" PRIx64 " inode=%" PRIu64 " size=%" PRIu64 " flags=%u",
		 f->id, f->slot, f->dev, f->inode, f->size, f->flags);
	if (w->verbose)
		say("file", (struct str){ .data = f->path, .len = f->path_len }, more);
}

static void process_gone(void *ctx, struct host_process *p)
{
	((struct watch *)ctx)->gone++;
}

static void on_event(void *ctx, const struct sideband_event *e)
{
	static const char *const names[] = { "?",    "mmap", "comm",	"fork",
					     "exit", "lost", "ksymbol", "throttle" };
	struct watch *w = ctx;
	char more[160];

	if (w->verbose) {
		snprintf(more, sizeof(more),
			 " pid=%u tid=%u parent=%u addr=%" PRIx64 " length=%" PRIx64
			 " offset=%" PRIx64 " inode=%" PRIu64,
			 e->pid, e->tid, e->parent_pid, e->addr, e->length, e->offset, e->inode);
		say(e->exec ? "exec" : names[e->type], e->name, more);
	}
	host_event(w->host, e);
}

/* --- comparing --- */

struct area {
	uint64_t start, end, offset, inode;
	bool pending, deleted;
};
struct areas {
	struct area *at;
	size_t len, cap;
};

static void add_area(struct areas *a, struct area add)
{
	struct area *last = a->len ? &a->at[a->len - 1] : NULL;

	/* The kernel and we may split the same code differently. */
	if (last && last->end == add.start && last->inode == add.inode &&
	    last->pending == add.pending &&
	    (!add.inode || last->offset + (last->end - last->start) == add.offset)) {
		last->end = add.end;
		return;
	}
	if (a->len == a->cap) {
		a->cap = a->cap ? a->cap * 2 : 64;
		a->at = reallocarray(a->at, a->cap, sizeof(*a->at));
		if (!a->at)
			abort();
	}
	a->at[a->len++] = add;
}

static void add_known(void *ctx, const struct host_process *p, uint64_t start, uint64_t end,
		      uint64_t offset, const struct host_file *file, bool pending)
{
	bool real = file && file->inode;

	add_area(ctx, (struct area){ .start = start,
				     .end = end,
				     .offset = real ? offset : 0,
				     .inode = real ? file->inode : 0,
				     .pending = pending });
}

static void add_true(void *ctx, const struct procfs_mapping *m)
{
	bool real = m->kind == PROCFS_FILE;

	if (m->kind != PROCFS_VSYSCALL)
		add_area(ctx, (struct area){ .start = m->start,
					     .end = m->end,
					     .offset = real ? m->offset : 0,
					     .inode = real ? m->inode : 0 });
}

/* Each piece of executable code must be known, with its file and place. A known piece that no
 * longer exists was unmapped, which no record reports: it is counted as stale. */
static unsigned compare_process(struct watch *w, int proc, uint32_t pid, unsigned *stale)
{
	struct areas known = { 0 }, there = { 0 };
	unsigned differences = 0;
	uint64_t covered = 0, in_all = 0;

	host_each_mapping(w->host, pid, add_known, &known);
	ssize_t n = procfs_read_maps(proc, pid, HOST_MAX_MAPPINGS, add_true, &there);
	for (size_t i = 0, j = 0; n >= 0 && j < there.len; j++) {
		const struct area *t = &there.at[j];

		while (i < known.len && known.at[i].end <= t->start)
			i++;
		const struct area *k = i < known.len ? &known.at[i] : NULL;
		bool same = k && k->start <= t->start && k->end >= t->end && k->inode == t->inode &&
			    !k->pending &&
			    (!t->inode || k->offset + (t->start - k->start) == t->offset);
		covered += t->end - t->start;
		if (same)
			continue;
		differences++;
		printf("! %u: %" PRIx64 "-%" PRIx64 " offset %" PRIx64 " inode %" PRIu64
		       " is not known so",
		       pid, t->start, t->end, t->offset, t->inode);
		if (k)
			printf(", but %" PRIx64 "-%" PRIx64 " offset %" PRIx64 " inode %" PRIu64
			       "%s",
			       k->start, k->end, k->offset, k->inode, k->pending ? " pending" : "");
		printf("\n");
	}
	for (size_t i = 0; i < known.len; i++)
		in_all += known.at[i].end - known.at[i].start;
	*stale += n >= 0 && in_all > covered;
	free(known.at);
	free(there.at);
	return differences;
}

struct comparison {
	struct watch *watch;
	int proc;
	unsigned processes, differences, stale;
};

static void compare_pid(void *ctx, uint32_t pid)
{
	struct comparison *c = ctx;

	c->processes++;
	c->differences += compare_process(c->watch, c->proc, pid, &c->stale);
}

static void drain(struct watch *w)
{
	uint64_t now = clock_mono_ns();

	sideband_drain(w->sideband, now, on_event, w);
	workerpool_run(w->pool, now);
	opener_tick(w->opener, now);
	host_tick(w->host, now, now);
}

static void compare(struct watch *w)
{
	struct comparison c = { .watch = w, .proc = open("/proc", O_PATH | O_CLOEXEC) };

	for (int i = 0; i < 200 && (i < 20 || !host_settled(w->host)); i++) {
		usleep(5000);
		drain(w);
	}
	FILE *list = w->list ? fopen(w->list, "re") : NULL;
	unsigned pid;
	while (list && fscanf(list, "%u", &pid) == 1)
		compare_pid(&c, pid);
	if (list)
		fclose(list);
	else
		(void)procfs_each(c.proc, compare_pid, &c);
	close(c.proc);
	printf("compared processes=%u differences=%u stale=%u\n", c.processes, c.differences,
	       c.stale);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct watch w = { 0 };
	double seconds = 1e9;
	int option;

	while ((option = getopt(argc, argv, "vd:l:")) != -1) {
		if (option == 'v')
			w.verbose = true;
		else if (option == 'd')
			seconds = strtod(optarg, NULL);
		else if (option == 'l')
			w.list = optarg;
		else
			return 2;
	}
	struct sigaction action = { .sa_handler = on_signal };
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGUSR1, &action, NULL);

	struct fake_tables *tables = fake_tables_new();
	int r = workerpool_start("/proc", &w.pool);
	if (!r)
		r = sideband_new(SIDEBAND_RING_BYTES, -1, &w.sideband);
	if (!r)
		r = opener_new(w.pool, COPIES, &w.opener);
	struct host_config config = {
		.tables = fake_tables_as_tables(tables),
		.opener = w.opener,
		.pool = w.pool,
		.proc = "/proc",
		.file_needs_rows = needs_rows,
		.process_gone = process_gone,
		.ctx = &w,
	};
	if (!r)
		r = host_new(&config, &w.host);
	if (r) {
		fprintf(stderr, "host-watch: %s\n", strerror(-r));
		return 1;
	}
	workerpool_charge(w.pool, host_owners(w.host));
	opener_charge(w.opener, host_owners(w.host));
	uint64_t before = clock_mono_ns();
	host_scan(w.host);
	printf("scanned ns=%" PRIu64 "\n", clock_mono_ns() - before);
	fflush(stdout);

	int poll_fd = epoll_create1(EPOLL_CLOEXEC);
	int fds[] = { sideband_fd(w.sideband), workerpool_fd(w.pool) };
	for (unsigned i = 0; i < 2; i++) {
		struct epoll_event e = { .events = EPOLLIN };

		epoll_ctl(poll_fd, EPOLL_CTL_ADD, fds[i], &e);
	}
	uint64_t until = clock_mono_ns() + (uint64_t)(seconds * 1e9), peak = 0, figures_ns = 0;
	while (!ended && clock_mono_ns() < until) {
		struct epoll_event e;
		struct host_sizes now;

		(void)epoll_wait(poll_fd, &e, 1, 50);
		/* Records that arrive together are processed together. */
		usleep(1000);
		drain(&w);
		if (clock_mono_ns() > figures_ns) {
			figures_ns = clock_mono_ns() + 100000000;
			host_sizes(w.host, &now);
			if (now.bytes > peak)
				peak = now.bytes;
		}
		if (asked) {
			asked = 0;
			compare(&w);
		}
	}
	compare(&w);

	struct host_figures f;
	struct host_sizes sizes;
	struct sideband_figures s;
	struct rusage u;
	uint64_t lost = 0;
	unsigned cpu;

	host_figures(w.host, &f);
	host_sizes(w.host, &sizes);
	sideband_figures(w.sideband, &s);
	getrusage(RUSAGE_SELF, &u);
	for (unsigned i = 0; i < s.cpus; i++)
		lost += sideband_lost(w.sideband, i, &cpu);
	printf("processes=%" PRIu64 " seen=%" PRIu64 " execs=%" PRIu64 " mappings=%" PRIu64
	       " files=%" PRIu64 " fds=%" PRIu64 " bytes=%" PRIu64 " peak=%" PRIu64 "\n",
	       f.processes, f.processes_seen, f.execs_seen, sizes.mappings, f.files, f.open_fds,
	       sizes.bytes, peak);
	printf("opens=%" PRIu64 " spared=%" PRIu64 " failed=%" PRIu64 " publishes=%" PRIu64
	       " rescans=%" PRIu64 " limit=%" PRIu64 " rows=%" PRIu64 " gone=%" PRIu64 "\n",
	       f.opens, f.opens_spared, f.opens_failed, f.publishes, f.rescans, f.limit, w.rows,
	       w.gone);
	printf("records=%" PRIu64 " malformed=%" PRIu64 " lost=%" PRIu64
	       " published=%zu slots=%zu cpu_ms=%ld\n",
	       s.records, s.malformed, lost, fake_tables_processes(tables),
	       fake_tables_slots(tables),
	       (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000 +
		       (u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1000);
	workerpool_charge(w.pool, NULL);
	opener_charge(w.opener, NULL);
	host_free(w.host);
	workerpool_free(w.pool);
	opener_free(w.opener);
	sideband_free(w.sideband);
	fake_tables_free(tables);
	close(poll_fd);
	return 0;
}
