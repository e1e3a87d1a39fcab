/* SPDX-License-Identifier: Apache-2.0 */
/* A simulated world for tests of the host: synthetic records, a /proc of text files, tables that
 * only record calls, and an opener that answers on command. */
#ifndef TESTS_HOST_WORLD_H
#define TESTS_HOST_WORLD_H

#include <criterion/criterion.h>
#include <stdarg.h>
#include "tests/host/fake-tables.h"
#include "tools/prof-bpf/host/host.h"
#include "tools/prof-bpf/open/opener.h"
#include "tools/prof-bpf/open/readers/startreader.h"

#define MS 1000000ull
#define DEV (8ull << 32 | 1)
#define MAX_JOBS 60000

/* A request to the opener. */
struct job {
	struct opener_request q;
	char path[256];
	opener_done *done;
	void *ctx;
	bool cancelled, answered;
};

extern struct job jobs[MAX_JOBS];
extern size_t job_count;
/* The file that the opener finds for every request, until it is changed; and the answer about a
 * file that is still open. */
extern struct opener_file the_file;
extern int the_status;
extern struct opener_file the_stat;
extern int the_stat_status;

extern struct fake_tables *tables;
extern struct host *host;
extern char proc[64];
extern uint64_t now;
extern unsigned rows_asked, gone, files_gone;
extern uint32_t last_gone_pid, last_gone_execs, last_rows_id, last_gone_file;

/* Whether files get slots before their first sample; true by default. */
extern bool eager;

/* Whether the next read of a process's maps lasts until answer_maps. */
extern bool maps_hang;
/* status 0: with the present contents of /proc. */
void answer_maps(int status);

/* The pending read of a process's arguments and environment; pid 0: none. */
extern struct startreader_request starting;
void answer_startup(int status, struct span values);

unsigned open_jobs(void);
void answer(struct job *j, int status, const struct opener_file *f);
void answer_all(void);
void needs_rows(void *ctx, struct host_file *f, int fd);
void process_gone(void *ctx, struct host_process *p);
/* Makes a new host in place of the former one; set_up makes one that follows all processes. */
extern struct environment_wanted wanted; /* of the next host; nothing by default */
extern struct host_process *last_known;
void make_host(bool only_selected, bool follow);
/* Likewise, with this much memory. */
void make_host_with(uint64_t memory);
/* Likewise, one of processes that are sampled, or that this function wants after an exec. */
void make_host_of_wanted(bool (*is_wanted)(void *ctx, uint32_t pid, uint64_t exec_ns));
void set_up(void);
void clean_up(void);
/* Events of the host. */
uint64_t tick_start(uint64_t mono_ns);
void event(struct sideband_event e);
void fork_of(uint32_t parent, uint32_t pid);
void begin_thread(uint32_t pid, uint32_t tid);
void exec_of(uint32_t pid, const char *name);
void exit_of(uint32_t pid, uint32_t tid);
void map_at(uint32_t pid, uint64_t addr, uint64_t length, uint64_t offset, uint64_t inode,
	    const char *name);
void tick(void);
void settle(void);
void let_time_pass(uint64_t ns);
struct sample sample_of(uint32_t pid, uint32_t tid, uint64_t start_ns, const char *comm);
struct host_sample_ref look(struct sample s);
uint64_t start_program(uint32_t pid, uint64_t inode);
void expect_published(uint32_t pid, size_t n, ...);
/* The processes of /proc. */
void write_proc(uint32_t pid, const char *name, const char *text);
void make_proc(uint32_t pid, const char *comm, char state, unsigned threads, uint64_t start_ns,
	       uint32_t uid, const char *maps);
void remove_proc(uint32_t pid);

/* A mapping, for expect_published. */
#define M(start, end, offset, inode) \
	(uint64_t)(start), (uint64_t)(end), (uint64_t)(offset), (uint64_t)(inode)

#endif
