/* SPDX-License-Identifier: Apache-2.0 */
/* prof-symd: names frames, in a deployment or by hand. See prof-symd(1). */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include "common/base/system/clock.h"
#include "common/base/command/cmdline.h"
#include "common/base/command/exits.h"
#include "common/base/system/heap.h"
#include "common/base/command/log.h"
#include "common/base/command/stdfds.h"
#include "common/cell/cell.h"
#include "common/cell/deploy.h"
#include "common/cell/dial.h"
#include "common/names/jit/codereader.h"
#include "common/names/jit/codeworker.h"
#include "common/names/jit/jit.h"
#include "common/names/program/filekeeper.h"
#include "common/names/program/fileworker.h"
#include "common/names/program/program.h"
#include "common/names/program/workercell.h"
#include "common/wire/peer/lastword.h"
#include "tools/prof-symd/files/worker_warnings.h"
#include "tools/prof-symd/by_hand/addresses.h"
#include "tools/prof-symd/by_hand/recording.h"
#include "tools/prof-symd/by_hand/one_file.h"
#include "tools/prof-symd/serve.h"

#define MEMORY_LEAST (1ull << 20)
#define MEMORY_MOST (64ull << 30)
#define DIAL_MS 60000 /* timeout of connecting; the launcher gives up before */
#define MAX_ADDRESS_SPACE (2ull << 30)
#define MAX_FILES 512
#define BEAT_NS 1000000000u
#define THREADS 16		  /* threads that nng starts */
#define KEEPER_BYTES (2ull << 20) /* bytes of memory of the workers' keeper */
#define BY_HAND_HEAP (192ull << 20)
/* Bytes that a worker for perf maps and jitdumps uses besides their names. */
#define CODE_BESIDE (8ull << 20)

struct options {
	struct deploy deploy;
	const char *file; /* -e */
	const char *described;
	bool show_address, basenames;
	uint64_t memory; /* bytes; 0: the default */
	struct reporting reporting;
};

/* clang-format off */
static const char usage[] =
	"usage: prof-symd [-m SIZE] [--names all|interpreted|none] <RAW.prof >NAMED.prof\n"
	"       prof-symd -e FILE [-as] [-m SIZE] [ADDR...]\n"
	"       prof-symd --describe FILE\n"
	"\n"
	"Name the native frames of a recorded stream, or the addresses of one file (from\n"
	"standard input when none are given).\n"
	"\n"
	"  -e, --exe FILE      print the functions, files and lines of ELF addresses of FILE\n"
	"  -a, --addresses     print each address before its function\n"
	"  -s, --basenames     print file names without their folders\n"
	"  -f, -i, -C, -p      accepted for compatibility with addr2line; always in effect\n"
	"  -m, --memory SIZE   memory for symbols and DWARF (default 16M; with -e 1G)\n"
	REPORTING_NAMES_USAGE
	"  --describe FILE     print which interpreter FILE holds, and details of that build\n"
	CMDLINE_USAGE
	"\n"
	"In a deployment (see prof-symd(1)):\n"
	"  --run-dir DIR --ids GID:B:D:S:E --memory-limit SIZE --status-fd N --life-fd N\n"
	"    [--with-send] [--with-metrics]\n"
	DEPLOY_USAGE;
/* clang-format on */

/* --- the processes that parse files --- */

/* Limits of memory, in bytes. */
struct heap {
	uint64_t first;	    /* DWARF of the first workers */
	uint64_t most;	    /* DWARF of later workers */
	uint64_t beside;    /* everything else in a worker */
	uint64_t generated; /* all names of generated code */
	uint64_t own_fence; /* limit of this process */
};

/* Starts the keeper of the workers. Logs errors. */
static bool start_keeper(struct heap heap)
{
	int control, r = filekeeper_start(&fileworker_class, &codeworker_class,
					  heap.most + heap.beside, &control);

	if (r) {
		log_error("the process that starts readers of files cannot be started: %s; "
			  "allow more processes (ulimit -u, pids.max)",
			  strerror(-r));
		return false;
	}
	program_use_keeper(control, FILEWORKER_LIFE_S, heap.first, heap.beside);
	/* Half as much again, since a map that grows takes twice its memory for a moment. */
	codereader_use_workers(heap.generated + heap.generated / 2 + CODE_BESIDE);
	return true;
}

/* Starts the keeper with prof-symd's user, before this process gives up the right to fork. */
static int start_keeper_confined(void *ctx)
{
	const struct heap *heap = ctx;

	if (!start_keeper(*heap))
		return -ECANCELED;
	const int r = WORKERCELL_ASAN ? 0 : sandbox_lower(RLIMIT_DATA, heap->own_fence);

	if (r)
		log_error(
			"prof-symd's memory cannot be limited: %s; this is a bug: report this line",
			strerror(-r));
	return r;
}

/* --- the deployment --- */

static int open_links(const struct deploy *d, struct serve_links *links)
{
	const struct dial export = { .deploy = d, .to = DEPLOY_EXPORT, .timeout_ms = DIAL_MS },
			  bpf = { .deploy = d, .to = DEPLOY_BPF, .timeout_ms = DIAL_MS };
	struct peer_config c = { .route = BUSROUTE_FILES,
				 .producer = "prof-symd",
				 /* One request per batch, since the route's messages are small. */
				 .batch_max = 1024 };

	int r = dial_bus(&export, BUSROUTE_NAMED, &links->named);

	if (!r)
		r = dial_peer(&bpf, c, &links->files);
	c.route = BUSROUTE_STREAM;
	return r ? r : dial_peer(&bpf, c, &links->stream);
}

static int say_served(int r, const struct serve_counts *c)
{
	if (c->dwarf_too_large)
		log_warning("memory limit: the debug information of %llu files was too much; their "
			    "functions have names of the symbol table, without lines and inlined "
			    "calls; raise --memory-limit",
			    (unsigned long long)c->dwarf_too_large);
	worker_warnings_codes_lost(c->code_lost);
	if (c->named.unnamed)
		log_warning("memory limit: %llu frames have no names; raise --memory-limit",
			    (unsigned long long)c->named.unnamed);
	if (c->named.late)
		log_warning("%llu frames have no names, because naming the programs of their users "
			    "took too long",
			    (unsigned long long)c->named.late);
	switch (r) {
	case 0:
		if (c->keeper_gone)
			log_warning("the process that starts readers of files ended or hangs; "
				    "prof-symd passed on the stream until then, and exits; "
				    "restart it (profpipe does so)");
		else if (c->peer_lost)
			log_warning("prof-bpf went before the end of its stream; prof-symd passed "
				    "on the part before; see prof-bpf's own messages");
		return c->peer_lost ? EXITS_AGAIN : EXITS_DONE;
	case SERVE_LIFE_OVER:
		return EXITS_FAILED;
	case SERVE_EXPORT_GONE:
		log_error("prof-export: ended before the stream; see its own messages");
		return EXITS_AGAIN;
	case SERVE_MALFORMED:
		log_error("prof-bpf: sent an invalid message; the stream before it was passed on; "
			  "install all tools from one build");
		return EXITS_FAILED;
	case SERVE_SCHEMA:
		log_error("prof-bpf: has another version than prof-symd; "
			  "install all tools from one build");
		return EXITS_FAILED;
	}
	log_error("the stream ended early: %s; see the messages of prof-bpf and prof-export",
		  strerror(-r));
	return EXITS_FAILED;
}

struct beat {
	const struct deploy *deploy;
	struct status status;
	uint64_t beaten_ns;
};

/* Tells the launcher once a second that the loop is alive. */
static void beat(void *ctx, uint64_t samples)
{
	struct beat *b = ctx;
	const uint64_t now_ns = clock_mono_ns();

	if (now_ns - b->beaten_ns < BEAT_NS)
		return;
	b->beaten_ns = now_ns;
	b->status.samples = samples;
	deploy_status(b->deploy, &b->status, STATUS_RUNNING);
}

static void say_slow(uint64_t owner)
{
	log_warning("the programs of user %u (container %u) take too long to name: some of their "
		    "functions have no names, so that others have theirs",
		    (unsigned)owner, (unsigned)(owner >> 32));
}

static int run_deployed(const struct options *o)
{
	struct sandbox sandbox = { .caps = SANDBOX_NO_CAPS,
				   .max_files = MAX_FILES,
				   .max_memory = MAX_ADDRESS_SPACE };
	static struct beat b;
	struct serve_links links = {
		.life_fd = o->deploy.life_fd,
		.names = o->reporting.names,
		.beat = beat,
		.ctx = &b,
		.say_killed = worker_warnings_killed,
		.say_lost = worker_warnings_lost,
		.say_died = worker_warnings_died,
		.say_too_large = worker_warnings_too_large,
		.say_slow = say_slow,
		.say_code_lost = worker_warnings_code_lost,
	};
	struct deploy deploy = o->deploy;
	struct budget budget;
	struct serve_counts counts = { 0 };
	int status = EXITS_AGAIN;

	b.deploy = &o->deploy;

	lastword_watch(LASTWORD_SLOW_S);
	deploy_budget(&o->deploy, &budget);
	struct budget most = budget;

	/* Later grants of memory may go to a worker, so the limit includes them. */
	budget_symd(&most, budget.symd_most);
	sandbox.max_data = budget_fence(most.symd, THREADS);
	struct heap heap = { .first = budget.dwarf,
			     .most = budget.dwarf_most,
			     .beside = most.symd - most.dwarf,
			     .generated = budget.generated,
			     .own_fence = budget_fence(most.symd - most.dwarf - most.programs -
							       most.generated - KEEPER_BYTES,
						       THREADS) };

	deploy.confined = start_keeper_confined;
	deploy.confined_ctx = &heap;
	if (deploy_enter(&deploy, DEPLOY_SYMD, &sandbox) != 0)
		return EXITS_FAILED;
	if (open_links(&o->deploy, &links) == 0 && deploy_seal() == 0) {
		deploy_status(&o->deploy, &b.status, STATUS_READY);
		status = say_served(serve_run(&links, &budget, &counts), &counts);
	}
	b.status.samples = counts.named.samples;
	deploy_status(&o->deploy, &b.status, status == EXITS_DONE ? STATUS_DONE : STATUS_FAILED);
	peer_free(links.stream);
	peer_free(links.files);
	bus_free(links.named);
	return status;
}

/* Confines prof-symd when it runs by hand. heap: bytes for libdw's worker, whose keeper is started
 * first; 0: no keeper. */
static int confine(enum cell_hand how, uint64_t heap)
{
	if (heap &&
	    !start_keeper((struct heap){ .first = heap, .most = heap, .generated = JIT_MEMORY }))
		return EXITS_FAILED;
	return cell_by_hand(how) ? EXITS_FAILED : EXITS_GO_ON;
}

/* Refuses options that would have no effect, and wrong operands. The list of operands ends with
 * NULL. */
static int check(const struct options *o, char *const *operands)
{
	const char *operand = operands[0];
	const char *one = o->described ? "describe" : o->file ? "exe" : NULL;

	if (o->described && o->file)
		return cmdline_refuse_all("--describe: not together with --exe; give one of them");
	if (o->deploy.run_dir && one)
		return cmdline_refuse_all("--%s: not together with --run-dir; give one of them",
					  one);
	if (o->deploy.run_dir && o->memory)
		return cmdline_refuse_all("--memory: not together with --run-dir; give "
					  "--memory-limit, the limit of the whole run");
	if (one && o->reporting.names)
		return cmdline_refuse_all("--names: not together with --%s; it is for a stream",
					  one);
	if (o->described && o->memory)
		return cmdline_refuse_all("--memory: not together with --describe, which needs "
					  "none; omit it");
	if ((o->show_address || o->basenames) && !o->file)
		return cmdline_refuse_all("--%s: needs -e FILE, whose addresses it prints",
					  o->show_address ? "addresses" : "basenames");
	if (operand && o->described)
		return cmdline_refuse_all("%s: not an option; --describe takes one file", operand);
	if (operand && !o->file)
		return cmdline_refuse_all("%s: not an option; addresses need -e FILE, "
					  "and a stream comes on standard input",
					  operand);
	for (uint64_t address; *operands; operands++)
		if (!addresses_parse(*operands, &address))
			return cmdline_refuse_all("%s: not an address; use hexadecimal digits, "
						  "with or without 0x",
						  *operands);
	return EXITS_GO_ON;
}

static int parse(int argc, char **argv, struct options *o)
{
	static const struct option longs[] = {
		{ "exe", required_argument, NULL, 'e' },
		{ "addresses", no_argument, NULL, 'a' },
		{ "basenames", no_argument, NULL, 's' },
		{ "functions", no_argument, NULL, 'f' },
		{ "inlines", no_argument, NULL, 'i' },
		{ "demangle", no_argument, NULL, 'C' },
		{ "pretty-print", no_argument, NULL, 'p' },
		{ "memory", required_argument, NULL, 'm' },
		{ "describe", required_argument, NULL, 'D' },
		REPORTING_NAMES_OPTION,
		DEPLOY_OPTIONS,
		CMDLINE_OPTIONS,
		{ 0 },
	};
	struct cmdline c = { .tool = "prof-symd",
			     .usage = usage,
			     .shorts = ":e:asfiCpm:vh",
			     .longs = longs,
			     .argc = argc,
			     .argv = argv };
	int r = EXITS_GO_ON;

	deploy_init(&o->deploy);
	while (r == EXITS_GO_ON) {
		const int val = cmdline_next(&c);

		if (val == CMDLINE_END)
			break;
		switch (val) {
		case CMDLINE_EXIT:
			r = c.status;
			break;
		case 'e':
			r = cmdline_path(&c, &o->file);
			break;
		case 'a':
			o->show_address = true;
			break;
		case 's':
			o->basenames = true;
			break;
		case 'f':
		case 'i':
		case 'C':
		case 'p':
			break;
		case 'm':
			r = cmdline_size(&c, MEMORY_LEAST, MEMORY_MOST, &o->memory);
			break;
		case 'D':
			r = cmdline_path(&c, &o->described);
			break;
		case REPORTING_NAMES:
			r = reporting_option(&o->reporting, &c, val);
			break;
		default:
			r = deploy_option(&o->deploy, &c, val);
		}
	}
	if (r == EXITS_GO_ON)
		r = deploy_check_options(&o->deploy, DEPLOY_SYMD);
	return r == EXITS_GO_ON ? check(o, argv + optind) : r;
}

int main(int argc, char **argv)
{
	struct options o = { 0 };

	stdfds_hold();
	log_init("prof-symd", LOG_WARNING);
	int r = parse(argc, argv, &o);

	if (r != EXITS_GO_ON)
		return r;
	heap_setup();
	if (o.deploy.run_dir)
		return run_deployed(&o);
	if (o.described)
		r = confine(CELL_READS, 0);
	else if (o.file)
		r = confine(CELL_READS, BY_HAND_HEAP + 2 * (o.memory ? o.memory : ONE_FILE_DWARF));
	else
		r = confine(CELL_READS_BELOW,
			    BY_HAND_HEAP + 2 * (o.memory ? o.memory : FILESTORE_BUDGET));
	if (r != EXITS_GO_ON)
		return r;
	if (o.file)
		return one_file_addresses(
			&(struct one_file){ .path = o.file,
					    .show_address = o.show_address,
					    .basenames = o.basenames,
					    .dwarf_max = o.memory ? o.memory : ONE_FILE_DWARF },
			argc - optind, argv + optind);
	return o.described ? one_file_describe(o.described)
			   : recording_name(o.memory, o.reporting.names);
}
