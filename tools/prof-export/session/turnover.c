/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-export/session/turnover.h"

#include <sys/socket.h>
#include "common/base/bytes/numbers.h"
#include "common/base/files/fd.h"
#include "common/wire/bus/scm.h"

void turnover_look(struct turnover *t)
{
	struct deploy_next next;
	int fds[2];

	while (t->socket >= 0 &&
	       scm_receive(t->socket, &next, sizeof(next), fds, 2, MSG_DONTWAIT) == sizeof(next)) {
		if (fds[0] < 0) {
			t->sum = next.sum;
			continue;
		}
		fd_close(&t->next_output);
		fd_close(&t->next_journal);
		t->next_file = next.file;
		t->next_output = fds[0];
		t->next_journal = fds[1];
	}
}

bool turnover_due(const struct turnover *t, struct session *s, struct span bytes)
{
	return t->next_output >= 0 && s->begun && stream_turns(&s->in, bytes);
}

static void add_all(uint64_t *sums, const uint64_t *more, size_t n)
{
	for (size_t i = 0; i < n; i++)
		sums[i] += more[i];
}

#define ADD_ALL(sums, more) add_all(sums, more, sizeof(sums) / sizeof((sums)[0]))

/* Adds figures, except those that cannot be added: a process can run during several outputs. */
static void add(struct status *sum, const struct status *one)
{
	sum->samples += one->samples;
	sum->user_stacks += one->user_stacks;
	sum->complete += one->complete;
	sum->left_out += one->left_out;
	sum->bytes += one->bytes;
	sum->duration_ns += one->duration_ns;
	sum->unsampled_ns += one->unsampled_ns;
	sum->unsampled += one->unsampled;
	sum->processes = numbers_larger(sum->processes, one->processes);
	sum->threads = numbers_larger(sum->threads, one->threads);
	ADD_ALL(sum->truncated, one->truncated);
	ADD_ALL(sum->lost, one->lost);
	ADD_ALL(sum->unnamed, one->unnamed);
	ADD_ALL(sum->runtime_samples, one->runtime_samples);
	ADD_ALL(sum->runtime_truncated, one->runtime_truncated);
	ADD_ALL(sum->runtime_unnamed, one->runtime_unnamed);
}

/* Tells the launcher before the next journal has a byte. If prof-export dies earlier, its successor
 * writes the completed output once more. */
static void tell(const struct turnover *t, bool failed)
{
	const struct deploy_next word = { .file = t->file, .failed = failed, .sum = t->sum };

	(void)scm_send(t->socket, &word, sizeof(word), NULL, 0, MSG_DONTWAIT);
}

int turnover_run(struct turnover *t, struct session *s, struct journal *j)
{
	struct status ended;
	const int r = session_turn(s, t->next_output, &ended);

	add(&t->sum, &ended);
	fd_close(&t->output);
	fd_close(&t->journal);
	t->output = t->next_output;
	t->journal = t->next_journal;
	t->next_output = t->next_journal = -1;
	t->file = t->next_file;
	tell(t, r != 0);
	journal_next(j, t->journal, s->model);
	return r;
}

void turnover_status(const struct turnover *t, struct status *st)
{
	add(st, &t->sum);
}
