/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All of prof-bpf: what main.c sets up, feed.c turns into the stream, answers.c into files for
 * prof-symd, and loop.c drives.
 */
#ifndef PROFPIPE_PROF_H
#define PROFPIPE_PROF_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include "common/budget.h"
#include "common/bus.h"
#include "common/clock.h"
#include "common/deploy.h"
#include "common/log.h"
#include "tools/prof-bpf/deferred.h"
#include "tools/prof-bpf/emit.h"
#include "tools/prof-bpf/extractor.h"
#include "tools/prof-bpf/filesrv.h"
#include "tools/prof-bpf/host.h"
#include "tools/prof-bpf/jitfiles.h"
#include "tools/prof-bpf/cpus.h"
#include "tools/prof-bpf/kallsyms.h"
#include "tools/prof-bpf/limit.h"
#include "tools/prof-bpf/loader.h"
#include "tools/prof-bpf/opener.h"
#include "tools/prof-bpf/options.h"
#include "tools/prof-bpf/outbox.h"
#include "tools/prof-bpf/quarantine.h"
#include "tools/prof-bpf/reader.h"
#include "tools/prof-bpf/rowsrv.h"
#include "tools/prof-bpf/sideband.h"
#include "tools/prof-bpf/tables.h"

#define DRAIN_MS_AT_99_HZ 50 /* oftener above, since deferred samples are large */
#define DRAIN_MS_MIN 10
#define DRAIN_MS_MAX 250
#define CPUS_MAX 1024
#define UNKNOWN_RUNTIMES 8
#define OFFERS 16 /* at once; one more each second */

enum source {
	FROM_TIMER,
	FROM_SIDEBAND,
	FROM_SIGNAL,
	FROM_LIFE,
	FROM_ROWS,
	FROM_ROWS_LANE,
	FROM_FILES,
	FROM_FILES_LANE,
	FROM_STREAM,
	FROM_OPENER,
	FROM_READER,
	FROM_CPUS
};

/* DRAINING: sampling has ended, and the last samples wait for what they need; FINISHING: the end
 * was sent. */
enum phase { CONNECTING, SAMPLING, DRAINING, FINISHING };

struct described;

/* A route that failed rests until the timer's next turn. */
struct route {
	bool rests;
	uint64_t failures;
};

struct prof {
	struct options options;
	struct budget budget; /* the shares, at the start */
	struct limit limit;   /* who has how much of it now */
	struct loader *loader;
	struct cpus cpus;
	struct sideband *sideband;
	struct tables *tables;
	struct deferred_queue *deferred;
	struct quarantine *quarantine;
	uint64_t quarantine_refused; /* requests for what is in it */
	struct rowsrv *rowsrv;
	struct filesrv *filesrv; /* deployed only */
	struct opener *opener;
	struct reader *reader;	   /* deployed only */
	struct jitfiles *jitfiles; /* deployed only */
	struct host *host;
	struct kallsyms *kallsyms; /* NULL until read */
	struct kallsyms *names;	   /* the reading thread's, until it has ended */
	pthread_t names_thread;
	bool names_reading, names_done, names_said;
	/* Samples that wait for them. */
	struct held *held, **held_end;
	size_t held_bytes;
	int names_result;
	struct emit *emit;
	struct bus *stream; /* deployed only */
	bool stream_begun;  /* its peer came, and an epoch was begun for it */
	struct outbox outbox;
	struct extractor extractor; /* by hand only */
	/* Builds of interpreters that nobody knows: each is said once. */
	char unknown_runtimes[UNKNOWN_RUNTIMES][64];
	/* Files that prof-symd is to be told of, and by when those told of so far are paid for. Of
	 * how many it has yet to say what they hold. */
	uint32_t offers[OFFERS];
	unsigned offer_count, offers_open;
	uint64_t offer_ns;
	bool lied; /* prof-symd, of a file: it was said */
	/* What prof-symd said of files that could not be looked at. */
	struct described *unmarked;
	uint64_t unmarked_ns; /* when they were tried last */
	struct status status;
	int epoll, timer, signals, output;
	enum phase phase;
	uint64_t connected_ns; /* since when all peers are there; 0: they are not */
	enum end_reason end;
	bool exit_now, failed;
	bool output_begun;
	bool again;	   /* failed, but another start may do */
	bool command_runs; /* a sample of it came, after its exec or of a child */
	bool objects_lost; /* copies of them did not go on */
	bool new_files;	   /* that no process had mapped before */
	unsigned hurried;  /* turns of the timer that are to come early */
	uint64_t hurry_ns; /* by when all those that were allowed so far are paid for */
	struct route rows, files;
	bool rows_due, files_due; /* something came for those routes, or is to be sent */
	uint64_t since_ns;	  /* of the phase */
	uint64_t figures_ns, clock_ns, flushed_ns; /* when these were sent last */
	uint64_t put_off, put_off_ns; /* opens, when that was told last; and when that was */
	uint64_t forgot_ns;	      /* when objects_lost was made good last */
	unsigned drain_ms;
	uint64_t drained_ns;		  /* side-band records up to here have been handled */
	uint64_t began_ns;		  /* this process */
	uint64_t sampling_ns, sampled_ns; /* when sampling began and was over; 0: not yet */
	uint64_t samples;		  /* that were to go on to prof-symd */
	/* What was said of losses so far, so that only the difference is sent. */
	uint64_t ring_full_sent[CPUS_MAX], sideband_sent[CPUS_MAX];
	uint64_t malformed_sent, undecoded_sent, untracked_sent, queue_full, queue_full_sent,
		throttled, throttled_sent;
	uint64_t unkept, unkept_sent; /* samples whose process or thread had no room */
};

/* --- feed.c --- */

/* The callbacks of emit.h, host.h, rowsrv.h and deferred.h; ctx is the struct prof. */
int feed_batch(void *ctx, struct span batch);
bool feed_kernel_name(void *ctx, uint64_t address, struct str *ret_name, struct str *ret_module,
		      uint64_t *ret_start);
bool feed_slot_file(void *ctx, uint16_t slot, struct emit_file *ret);
const struct runtime_config *feed_runtime(void *ctx, uint16_t slot);
void feed_process_gone(void *ctx, struct host_process *h);
void feed_file_needs_rows(void *ctx, struct host_file *f, int fd);
void feed_reopen(void *ctx, uint16_t slot);
void feed_sample(void *ctx, const struct sample *s);
/* A sample that may have to wait for the kernel's names, when these are being read. */
void feed_walked(void *ctx, const struct sample *s);
ssize_t feed_mappings(void *ctx, const struct sample *s, const struct tables_mapping **ret,
		      bool *ret_whole);
/* What emit.h returned: after an error in the middle of definitions all is begun anew. */
void feed_emitted(struct prof *p, int r);
/* Takes all that the kernel has written, samples and side-band records in the order of their time.
 */
void feed_drain(struct prof *p);
/* Tells prof-symd of new files that are called like an interpreter. */
void feed_offers(struct prof *p);
/* Sends the processes again that changed after they were sent. */
void feed_processes(struct prof *p);
/* Cpus that have come online are sampled and followed from now on. */
void feed_cpus(struct prof *p);
/* Sends what was lost since it was last sent, and the figures. */
void feed_losses(struct prof *p);
/* Samples that the kernel took of what is sampled, wherever they went. */
uint64_t feed_taken(struct prof *p);
void feed_figures(struct prof *p);

/* --- answers.c: the callbacks of filesrv.h --- */

void answers_file(void *ctx, uint64_t ticket, const struct msg_file_request *m);
void answers_debug(void *ctx, uint64_t ticket, const struct msg_debug_request *m);
void answers_jit(void *ctx, uint64_t ticket, const struct msg_jit_request *m);
bool answers_runtime(void *ctx, const struct msg_runtime *m);
/* Looks at files again that could not be looked at. */
void answers_tick(struct prof *p, uint64_t now_ns);
void answers_done(struct prof *p);
void answers_memory(void *ctx, uint64_t ticket, const struct msg_memory_request *m);

/* --- deaths.c --- */

struct quarantine_key deaths_key(const struct host_file *f);
/* True: the parser is not to have it. */
bool deaths_refuse(struct prof *p, enum quarantine_parser parser, const struct quarantine_key *of);
/* The same of what prof-symd asks for by the id of a process. */
bool deaths_refuse_process(struct prof *p, uint64_t id);
/* The callbacks of rowsrv.h and filesrv.h. */
void deaths_rows(void *ctx, struct str name, const struct quarantine_key *of, enum lastword_end end,
		 enum quarantine_verdict verdict);
void deaths_names(void *ctx, const struct lastword *last);

/* --- loop.c --- */

/* Everything that happens, until the stream has ended or all is over (p->exit_now). */
void loop_run(struct prof *p);
/* Waits for the thread that reads kernel names, if it still does. */
void loop_take_names(struct prof *p, bool wait);

#endif
