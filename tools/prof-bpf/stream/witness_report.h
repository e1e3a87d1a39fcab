/* SPDX-License-Identifier: Apache-2.0 */
/* The witness report: prof-bpf tells prof-export directly what it sent to prof-symd (witness.h). */
#ifndef PROF_BPF_STREAM_WITNESS_REPORT_H
#define PROF_BPF_STREAM_WITNESS_REPORT_H

#include "common/status/witness.h"
#include "common/wire/datagram.h"
#include "tools/prof-bpf/stream/emit.h"

struct losses;
struct output;

struct witness_report {
	struct datagram to; /* fd is -1 by hand */
	struct witness_word word;
	bool told; /* prof-export has received a word, so it knows the key */
	bool over; /* the last word was made */
};
#define WITNESS_REPORT_NONE ((struct witness_report){ .to = DATAGRAM_NONE })

/* Opens the datagram socket and makes a key. Returns 0, -EIO of getrandom, -ENAMETOOLONG or
 * -errno. */
int witness_report_open(struct witness_report *t, const char *run_dir, uint64_t began_ns);
void witness_report_done(struct witness_report *t);
/* Whether sampling may begin: prof-export has the key, or does not take any. */
bool witness_report_ready(const struct witness_report *t);
/* Records that sampling begins. If prof-export does not have the key yet, the next words tell it
 * so. */
void witness_report_begin(struct witness_report *t);
/* Adds a sample that was sent. */
void witness_report_sample(struct witness_report *t, const struct sample *s,
			   const struct emit_process *p, const struct emit_thread *th);
/* Reports what was sent so far. final: the end of the stream comes next. If prof-export does not
 * take this word, the next one includes it. */
void witness_report_tell(struct witness_report *t, const struct losses *l, uint64_t taken,
			 bool final);
/* Repeats the last word: prof-export may have been restarted, or its queue may have been full. */
void witness_report_repeat(struct witness_report *t);

#endif
