/* SPDX-License-Identifier: Apache-2.0 */
/* prof-deltas: extracts unwind rows from files. Run by hand, it prints the rows; in a deployment it
 * serves prof-bpf. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/base/command/cmdline.h"
#include "common/base/command/exits.h"
#include "common/base/command/log.h"
#include "common/base/command/stdfds.h"
#include "common/base/system/clock.h"
#include "common/base/system/heap.h"
#include "common/cell/cell.h"
#include "common/cell/deploy.h"
#include "common/rows/extract/extract.h"
#include "common/rows/print.h"
#include "common/wire/peer/lastword.h"
#include "tools/prof-deltas/serve.h"

#define DIAL_MS 60000 /* timeout of connecting; the launcher gives up before */
#define MAX_MEMORY (1ull << 30)
#define MAX_FILES 256
#define THREADS 16 /* threads that nng starts */

static const char usage[] =
	"usage: prof-deltas [--registers | --stats] [--debug FILE | --derive-only] FILE...\n"
	"Print the unwind rows of ELF files: address, CFA, caller's RBP, return address.\n"
	"\n"
	"      --debug FILE  also read .debug_frame of this separate debug file\n"
	"      --derive-only derive rows from the code alone, as if there were no CFI\n"
	"  -r, --registers   also print where the caller's RBX is saved\n"
	"  -s, --stats       print figures instead of rows, for each file and in total\n"
	"  -v, --verbose     log more\n"
	"  -h, --help        print this help\n"
	"      --version     print the version\n"
	"\n"
	"In a deployment (see prof-deltas(1)):\n"
	"  --run-dir DIR --ids GID:B:D:S:E --memory-limit SIZE --status-fd N --life-fd N\n"
	"    [--with-send] [--with-metrics]\n" DEPLOY_USAGE;

/* --- by hand --- */

struct totals {
	struct print_stats stats;
	struct rows_rules rules; /* of all files */
};

/* Returns a name with unprintable characters escaped. The caller frees it; NULL: no memory. */
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
	const char *debug; /* path; NULL: none */
};

/* Opens a file. Returns its descriptor; or -errno, logged. */
static int open_file(const char *path)
{
	/* Do not block on a FIFO. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	if (fd >= 0)
		return fd;
	fd = -errno;
	log_error("%s: cannot be opened: %s; name a readable ELF file", path, strerror(-fd));
	return fd;
}

/* Prints one file. Returns 0; or, logged, -errno, a verdict of extract_rows, or -EBADMSG for a
 * truncated file. */
static int one_file(const char *path, const char *name, const struct wanted *w, struct totals *t)
{
	struct extract e = { .why = "" };
	uint64_t start = clock_mono_ns();
	struct rows rows;
	int fd = open_file(path), debug_fd = fd < 0 || !w->debug ? -1 : open_file(w->debug), r;

	if (fd < 0)
		return fd;
	if (w->debug && debug_fd < 0) {
		close(fd);
		return debug_fd;
	}
	rows_init(&rows);
	r = w->derive_only ? extract_derived(fd, &rows, &e) : extract_rows(fd, debug_fd, &rows, &e);
	close(fd);
	if (debug_fd >= 0)
		close(debug_fd);
	if (r < 0) {
		log_error("%s: cannot be read: %s; %s", path, strerror(-r),
			  r == -ENOMEM ? "free memory on this host" : "name a readable ELF file");
	} else if (r == MSG_ROWS_NONE || (r == 0 && !rows.count && !e.truncated)) {
		/* A valid file may have no rows. */
		printf("# %s: no rows: %s\n", name, e.why);
		r = 0;
	} else if (r > 0) {
		log_error("%s: %s%s", path, e.why,
			  r == MSG_ROWS_NOT_ELF ? "; name an ELF file" : "");
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
			log_error("%s: cannot be printed: %s; free memory on this host", path,
				  strerror(-r));
		if (!r && e.truncated) {
			log_error("%s: truncated: its headers point past its end; printed the rows "
				  "of what is there; use a complete copy",
				  path);
			r = -EBADMSG;
		}
	}
	rows_done(&rows);
	return r;
}

/* Returns the peak memory of this process since its exec, in bytes; 0 without /proc. ru_maxrss
 * would include the parent's memory at the fork. */
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
	int status = EXITS_DONE;

	if (cell_by_hand(CELL_READS))
		return EXITS_FAILED;
	for (int i = 0; i < n && !ferror(stdout); i++) {
		char *name = printable(paths[i]);

		if (!name || one_file(paths[i], name, w, &t))
			status = EXITS_FAILED;
		free(name);
	}
	if (w->stats) {
		t.stats.memory = peak_memory();
		print_stats(stdout, "total", &t.stats);
	}
	rows_rules_done(&t.rules);
	if (stdfds_flush() != EXITS_DONE)
		status = EXITS_FAILED;
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
	struct serve *service = NULL;
	bool again = false;
	int r;

	/* Each thread's malloc arena reserves address space, which counts towards the limit. nng
	 * starts a dozen threads. */
	deploy_budget(d, &budget);
	box.max_data = budget_fence(budget.deltas, THREADS);
	signal(SIGPIPE, SIG_IGN);
	lastword_watch(LASTWORD_SLOW_S);
	if (deploy_enter(d, DEPLOY_DELTAS, &box) < 0) {
		deploy_status(d, &st, STATUS_FAILED);
		return EXITS_FAILED;
	}
	const struct dial bpf = { .deploy = d, .to = DEPLOY_BPF, .timeout_ms = DIAL_MS };

	r = serve_new(&bpf, &service);
	again = r < 0;
	if (!r)
		r = deploy_seal();
	if (!r) {
		deploy_status(d, &st, STATUS_READY);
		r = serve_run(service);
		if (r == SERVE_SCHEMA)
			log_error("prof-bpf: has another version than prof-deltas; "
				  "install all tools from one build");
		else if (r == SERVE_MALFORMED)
			log_error("prof-bpf: sent an invalid message; "
				  "install all tools from one build");
		else if (r < 0)
			log_error(
				"prof-bpf: the connection failed: %s; see prof-bpf's own messages",
				strerror(-r));
	}
	serve_free(service);
	deploy_status(d, &st, r ? STATUS_FAILED : STATUS_DONE);
	return again ? EXITS_AGAIN : r ? EXITS_FAILED : EXITS_DONE;
}

static int parse(int argc, char **argv, struct wanted *w, struct deploy *d)
{
	static const struct option longs[] = {
		{ "debug", required_argument, NULL, 'D' },
		{ "derive-only", no_argument, NULL, 'O' },
		{ "registers", no_argument, NULL, 'r' },
		{ "stats", no_argument, NULL, 's' },
		DEPLOY_OPTIONS,
		CMDLINE_OPTIONS,
		{ 0 },
	};
	struct cmdline c = { .tool = "prof-deltas",
			     .usage = usage,
			     .shorts = ":rsvh",
			     .longs = longs,
			     .argc = argc,
			     .argv = argv };
	int r = EXITS_GO_ON;

	deploy_init(d);
	while (r == EXITS_GO_ON) {
		const int val = cmdline_next(&c);

		if (val == CMDLINE_END)
			break;
		switch (val) {
		case CMDLINE_EXIT:
			r = c.status;
			break;
		case 'D':
			r = cmdline_path(&c, &w->debug);
			break;
		case 'O':
			w->derive_only = true;
			break;
		case 'r':
			w->registers = true;
			break;
		case 's':
			w->stats = true;
			break;
		default:
			r = deploy_option(d, &c, val);
		}
	}
	if (r == EXITS_GO_ON)
		r = deploy_check_options(d, DEPLOY_DELTAS);
	if (r != EXITS_GO_ON)
		return r;
	if (w->registers && w->stats)
		return cmdline_refuse_all(
			"--registers: not together with --stats; give one of them");
	if (d->run_dir && (w->registers || w->stats || w->derive_only || w->debug))
		return cmdline_refuse_all("--run-dir: not together with options for files; "
					  "omit it, or omit them");
	if (d->run_dir && optind < argc)
		return cmdline_refuse_all("%s: not an option; --run-dir takes no files",
					  argv[optind]);
	if (!d->run_dir && optind == argc)
		return cmdline_refuse_all("missing file; name one or more ELF files");
	if (w->debug && w->derive_only)
		return cmdline_refuse_all("--debug: %s: not together with --derive-only, which "
					  "reads no debug file; give one of them",
					  w->debug);
	if (w->debug && argc - optind != 1)
		return cmdline_refuse_all("--debug: %s: needs exactly one file; name one",
					  w->debug);
	return EXITS_GO_ON;
}

int main(int argc, char **argv)
{
	struct wanted w = { 0 };
	struct deploy d;

	stdfds_hold();
	log_init("prof-deltas", LOG_WARNING);
	heap_setup();
	const int r = parse(argc, argv, &w, &d);

	if (r != EXITS_GO_ON)
		return r;
	return d.run_dir ? serving(&d) : by_hand(argv + optind, argc - optind, &w);
}
