/* SPDX-License-Identifier: Apache-2.0 */
/* The testimony: prof-bpf tells prof-export directly what it sent to prof-symd (witness.h). */
#ifndef PROF_BPF_STREAM_TESTIMONY_H
#define PROF_BPF_STREAM_TESTIMONY_H

#include "common/status/witness.h"
#include "common/wire/datagram.h"
#include "tools/prof-bpf/stream/emit.h"

struct losses;
struct output;

struct testimony {
	struct datagram to; /* fd is -1 by hand */
	struct witness_word word;
	bool told; /* prof-export has received a word, so it knows the key */
	bool over; /* the last word was made */
};
#define TESTIMONY_NONE ((struct testimony){ .to = DATAGRAM_NONE })

/* Opens the datagram socket and makes a key. Returns 0, -EIO of getrandom, -ENAMETOOLONG or
 * -errno. */
int testimony_open(struct testimony *t, const char *run_dir, uint64_t began_ns);
void testimony_done(struct testimony *t);
/* Whether sampling may begin: prof-export has the key, or does not take any. */
bool testimony_ready(const struct testimony *t);
/* Records that sampling begins. If prof-export does not have the key yet, the next words tell it
 * so. */
void testimony_begin(struct testimony *t);
/* Adds a sample that was sent. */
void testimony_sample(struct testimony *t, const struct sample *s, const struct emit_process *p,
		      const struct emit_thread *th);
/* Reports what was sent so far. final: the end of the stream comes next. If prof-export does not
 * take this word, the next one includes it. */
void testimony_tell(struct testimony *t, const struct losses *l, uint64_t taken, bool final);
/* Repeats the last word: prof-export may have been restarted, or its queue may have been full. */
void testimony_repeat(struct testimony *t);

#endif
