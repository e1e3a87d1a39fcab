// SPDX-License-Identifier: Apache-2.0
/* prof-deltas: the extractor of unwind rows. By hand it prints those of files; in the deployment it
 * serves prof-bpf. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/cell.h"
#include "common/clock.h"
#include "common/deploy.h"
#include "common/heap.h"
#include "common/lastword.h"
#include "common/log.h"
#include "common/priority.h"
#include "common/stdfds.h"
#include "tools/prof-deltas/extract.h"
#include "tools/prof-deltas/print.h"
#include "tools/prof-deltas/serve.h"

#define DIAL_MS 60000 /* a launcher gives up no later */
#define MAX_MEMORY (1ull << 30)
#define MAX_FILES 256
#define THREADS 16 /* nng's */

static const char usage[] =
	"Usage: prof-deltas [--registers | --stats] [--derive-only] FILE...\n"
	"Print the unwind rows of ELF files: address, CFA, caller's RBP, return address.\n"
	"\n"
	"      --debug FILE  read .debug_frame of this separate debug file as well\n"
	"      --derive-only rows from the code alone, as if there were no CFI\n"
	"  -r, --registers   print where the caller's RBX is saved, too\n"
	"  -s, --stats       print figures instead of rows: per file, and in all\n"
	"  -v, --verbose     say more\n"
	"  -h, --help        print this\n"
	"      --version     print the version\n"
	"\n"
	"In a deployment (see prof-deltas(1)):\n"
	"  --run-dir DIR --ids GID:B:D:S:E --limit SIZE --status-fd N --life-fd N\n";

/* --- by hand --- */

struct totals {
	struct print_stats stats;
	struct rows_rules rules; /* of all files */
};

/* *ret_name is to be freed; NULL without memory. */
static char *printable(const char *name)
{
	struct buf b = BUF_INIT(64 << 10);

	if (log_escape(&b, str_from(name), 4096) < 0 || buf_append(&b, "", 1) < 0) {
		buf_done(&b);
		return NULL;
	}
	return (char *)b.data;
}

static int add_stats(struct totals *t, const struct rows *rows, uint64_t time_ns,
		     struct print_stats *ret)
{
	*ret = (struct print_stats){
		.rows = rows->count,
		.rules = rows->rules.n,
		.fdes = rows->fdes,
		.cies = rows->cies,
		.time_ns = time_ns,
		.memory = rows->peak_bytes + rows->rules.cap * sizeof(*rows->rules.rule) +
			  rows->rules.slots * sizeof(*rows->rules.slot),
	};
	memcpy(ret->skipped, rows->skipped, sizeof(ret->skipped));
	t->stats.files++;
	t->stats.rows += ret->rows;
	t->stats.fdes += ret->fdes;
	t->stats.cies += ret->cies;
	t->stats.time_ns += time_ns;
	for (unsigned i = 0; i < ROWS_SKIP_COUNT; i++)
		t->stats.skipped[i] += ret->skipped[i];
	for (uint32_t i = 0; i < rows->rules.n; i++) {
		uint16_t number;
		int r = rows_rules_put(&t->rules, &rows->rules.rule[i], &number);

		if (r < 0)
			return r;
		if (r > 0)
			break;
	}
	t->stats.rules = t->rules.n;
	return 0;
}

struct wanted {
	bool stats, registers, derive_only;
	const char *debug; /* path of the separate debug file; NULL: none */
};

/* -1 when it cannot be opened, which was said. */
static int open_file(const char *path)
{
	/* Not to be held up by a FIFO. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	if (fd < 0)
		log_error("cannot open %s: %s; name a readable ELF file", path, strerror(errno));
	return fd;
}

/* 0, or -1 when there is something to complain of, which was said. */
static int one_file(const char *path, const char *name, const struct wanted *w, struct totals *t)
{
	struct extract e = { .why = "" };
	uint64_t start = clock_mono_ns();
	struct rows rows;
	int fd = open_file(path), debug_fd = fd < 0 || !w->debug ? -1 : open_file(w->debug), r;

	if (fd < 0 || (w->debug && debug_fd < 0)) {
		if (fd >= 0)
			close(fd);
		return -1;
	}
	rows_init(&rows);
	r = w->derive_only ? extract_derived(fd, &rows, &e) : extract_rows(fd, debug_fd, &rows, &e);
	close(fd);
	if (debug_fd >= 0)
		close(debug_fd);
	if (r < 0) {
		log_error("cannot read %s: %s", path, strerror(-r));
	} else if (r == ROWS_NONE || (r == 0 && !rows.count && !e.truncated)) {
		/* A sound file may have none. */
		printf("# %s: no rows: %s\n", name, e.why);
		r = 0;
	} else if (r > 0) {
		log_error("%s: %s%s", path, e.why, r == ROWS_NOT_ELF ? "; name an ELF file" : "");
	} else {
		struct print_stats s;

		if (w->stats) {
			r = add_stats(t, &rows, clock_mono_ns() - start, &s);
			if (!r)
				print_stats(stdout, name, &s);
		} else {
			printf("# %s\n", name);
			r = print_rows(stdout, &rows, w->registers);
		}
		if (r < 0 && !ferror(stdout))
			log_error("%s: %s", path, strerror(-r));
		if (!r && e.truncated) {
			log_error(
				"%s: truncated: its headers name bytes past its end; these are the rows of what is there; use a whole copy",
				path);
			r = -1;
		}
	}
	rows_done(&rows);
	return r ? -1 : 0;
}

/* Of this process since its exec, in bytes: ru_maxrss would begin with what its parent held at the
 * fork. 0 without /proc. */
static uint64_t peak_memory(void)
{
	unsigned long long kib = 0;
	char line[128];
	FILE *f = fopen("/proc/self/status", "re");

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "VmHWM: %llu", &kib) == 1)
			break;
	}
	if (f)
		fclose(f);
	return kib * 1024;
}

static int by_hand(char **paths, int n, const struct wanted *w)
{
	struct totals t = { 0 };
	int status = 0;
	const int r = cell_by_hand(CELL_READS, NULL);

	if (r) {
		log_error("cannot be confined: %s", strerror(-r));
		return 1;
	}
	for (int i = 0; i < n && !ferror(stdout); i++) {
		char *name = printable(paths[i]);

		if (!name || one_file(paths[i], name, w, &t) < 0)
			status = 1;
		free(name);
	}
	if (w->stats) {
		t.stats.memory = peak_memory();
		print_stats(stdout, "total", &t.stats);
	}
	rows_rules_done(&t.rules);
	if (fflush(stdout) != 0 || ferror(stdout)) {
		log_error("cannot write to standard output: %s", strerror(errno));
		status = 1;
	}
	return status;
}

/* --- serving --- */

static int serving(const struct deploy *d)
{
	struct sandbox box = { .caps = SANDBOX_NO_CAPS,
			       .max_files = MAX_FILES,
			       .max_memory = MAX_MEMORY };
	struct budget budget;
	struct status st = { 0 };
	struct bus *bus = NULL;
	struct fdlane *lane = NULL;
	bool again = false;
	int r;

	/* Each arena of a thread reserves address space that counts towards the limit; nng starts a
	 * dozen threads. */
	deploy_budget(d, &budget);
	box.max_data = budget_fence(budget.deltas, THREADS);
	signal(SIGPIPE, SIG_IGN);
	/* Samples wait for rows a second at most. */
	priority_raise();
	lastword_watch(LASTWORD_SLOW_S);
	if (deploy_enter(d, DEPLOY_DELTAS, &box) < 0) {
		deploy_status(d, &st, STATUS_FAILED);
		return 1;
	}
	r = bus_dial(BUS_ROWS, d->run_dir, d->uid[DEPLOY_BPF], DIAL_MS, &bus);
	if (!r)
		r = fdlane_dial(BUS_ROWS, d->run_dir, d->uid[DEPLOY_BPF], DIAL_MS, &lane);
	if (r < 0) {
		log_error("cannot reach prof-bpf below %s: %s; is it running?", d->run_dir,
			  strerror(-r));
		again = true;
	} else {
		r = deploy_seal(DEPLOY_DELTAS);
	}
	if (!r) {
		deploy_status(d, &st, STATUS_READY);
		r = serve(bus, lane, d->life_fd);
		if (r == SERVE_SCHEMA)
			log_error("prof-bpf speaks another schema; install tools of one version");
		else if (r == SERVE_MALFORMED)
			log_error(
				"prof-bpf sent what is no message of ours; install tools of one version");
		else if (r < 0)
			log_error("serving prof-bpf ended: %s", strerror(-r));
	}
	fdlane_free(lane);
	bus_free(bus);
	deploy_status(d, &st, r ? STATUS_FAILED : STATUS_DONE);
	return again ? DEPLOY_AGAIN : r ? 1 : 0;
}

int main(int argc, char **argv)
{
	static const struct option options[] = { { "debug", required_argument, NULL, 'D' },
						 { "derive-only", no_argument, NULL, 'O' },
						 { "registers", no_argument, NULL, 'r' },
						 { "stats", no_argument, NULL, 's' },
						 { "verbose", no_argument, NULL, 'v' },
						 { "help", no_argument, NULL, 'h' },
						 { "version", no_argument, NULL, 'V' },
						 DEPLOY_OPTIONS,
						 { 0 } };
	enum log_level level = LOG_WARNING;
	struct wanted w = { 0 };
	struct deploy d;
	int c;

	stdfds_hold();
	log_init("prof-deltas", level);
	heap_setup();
	deploy_init(&d);
	while ((c = getopt_long(argc, argv, "rsvh", options, NULL)) != -1) {
		switch (c) {
		case 'D':
			w.debug = optarg;
			break;
		case 'O':
			w.derive_only = true;
			break;
		case 'r':
			w.registers = true;
			break;
		case 's':
			w.stats = true;
			break;
		case 'v':
			level = level < LOG_DEBUG ? level + 1 : level;
			log_init("prof-deltas", level);
			break;
		case 'h':
			fputs(usage, stdout);
			return stdfds_flush();
		case 'V':
			puts("prof-deltas " PROFPIPE_VERSION);
			return stdfds_flush();
		case '?':
			fputs("Try prof-deltas --help.\n", stderr);
			return 2;
		default:
			if (deploy_option(&d, c, optarg) < 0)
				return 2;
			break;
		}
	}
	if (d.run_dir) {
		if (optind < argc) {
			log_error("FILE and --run-dir exclude each other; see --help");
			return 2;
		}
		return serving(&d);
	}
	if (optind == argc) {
		log_error("no FILE given; see --help");
		return 2;
	}
	if (w.debug && argc - optind != 1) {
		log_error("--debug goes with one FILE; see --help");
		return 2;
	}
	return by_hand(argv + optind, argc - optind, &w);
}
