/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/stream/witness_report.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include "tools/prof-bpf/stream/losses.h"
#include "tools/prof-bpf/stream/output.h"

int witness_report_open(struct witness_report *t, const char *run_dir, uint64_t began_ns)
{
	*t = WITNESS_REPORT_NONE;
	t->word = (struct witness_word){ .magic = WITNESS_MAGIC, .began_ns = began_ns };
	if (getrandom(&t->word.key, sizeof(t->word.key), 0) != (ssize_t)sizeof(t->word.key))
		return -EIO;
	return datagram_open(run_dir, WITNESS_FOLDER, WITNESS_NAME, &t->to);
}

void witness_report_done(struct witness_report *t)
{
	datagram_done(&t->to);
}

bool witness_report_ready(const struct witness_report *t)
{
	return t->told || t->to.fd < 0;
}

void witness_report_begin(struct witness_report *t)
{
	t->word.unheard = !witness_report_ready(t);
}

void witness_report_sample(struct witness_report *t, const struct sample *s,
			   const struct emit_process *p, const struct emit_thread *th)
{
	if (t->to.fd < 0)
		return;
	witness_count(&t->word.sent, &t->word.key,
		      &(struct witness_sample){ .pid = p->def.pid,
						.tid = th->def.tid,
						.cpu = s->cpu,
						.time_ns = s->time_ns,
						.value = s->value,
						.source = s->source });
}

void witness_report_repeat(struct witness_report *t)
{
	if (t->to.fd >= 0)
		t->told |= datagram_send(&t->to, &t->word, sizeof(t->word)) == 0;
}

void witness_report_tell(struct witness_report *t, const struct losses *l, uint64_t taken,
			 bool final)
{
	t->over |= final;
	t->word.final = t->over;
	t->word.taken = taken;
	t->word.breaks = l->output->breaks;
	memcpy(t->word.lost, l->sent, sizeof(t->word.lost));
	witness_report_repeat(t);
}
