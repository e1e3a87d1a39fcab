/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A prof-symd that was taken over, towards prof-export: it names the stream as usual, and falsifies
 * its output. The name of the folder that contains it says how:
 *   two-stacks  all samples get the stack and thread of one of the first two
 *   move        each sample gets the thread and stack of the one before
 *   late        each sample gets the time of the one before
 *   heavy       each sample stands for a million
 *   labelled    each sample gets labels
 *   double      each sample comes twice
 *   drop        every second sample is dropped
 *   restart     the same, and the rest is called lost by restarts
 *   losses      losses are reported that did not happen
 *   threadless  each sample comes nine times more, without a thread
 *   early       each sample comes twice, and the stream ends after a hundred
 *   gone        the same, as if prof-bpf had gone
 *   figures     sends figures that only the launcher knows
 *   honest      falsifies nothing
 */
#include <limits.h>
#include <string.h>
#include <unistd.h>
#include "common/wire/stream.h"

int __real_stream_put(struct stream_out *s, const struct msg *m);
int __wrap_stream_put(struct stream_out *s, const struct msg *m);

static const char *how(void)
{
	static char path[PATH_MAX];
	static const char *name;

	if (!name) {
		const ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

		path[n > 0 ? n : 0] = '\0';
		*(strrchr(path, '/') ? strrchr(path, '/') : path) = '\0';
		name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	}
	return name;
}

/* While /proc can be read. */
__attribute__((constructor)) static void look(void)
{
	(void)how();
}

static bool does(const char *what)
{
	return strcmp(how(), what) == 0;
}

static int put_end(struct stream_out *s, uint64_t time_ns)
{
	return __real_stream_put(
		s, &(struct msg) {
			.id = MSG_END
			,
				.end = {.time_ns = time_ns,
					.reason = does("gone") ? MSG_END_PEER_LOST : MSG_END_DONE }
		});
}

static int put_sample(struct stream_out *s, const struct msg *m)
{
	static struct msg_sample first[2], before;
	static unsigned long count;
	struct msg changed = *m;
	struct msg_sample *c = &changed.sample;

	if (count < 2)
		first[count] = m->sample;
	count++;
	if (does("two-stacks") && count > 2) {
		c->stack = first[count % 2].stack;
		c->thread = first[count % 2].thread;
	}
	if (does("move") && count > 1) {
		c->stack = before.stack;
		c->thread = before.thread;
	}
	if (does("late") && count > 1)
		c->time_ns = before.time_ns;
	if (does("heavy"))
		c->count = 1000000;
	if (does("labelled"))
		c->labels = 1;
	before = m->sample;
	if ((does("drop") || does("restart")) && count % 2)
		return 0;
	const bool ends = does("early") || does("gone");

	if (ends && count > 100)
		return 0;
	int r = __real_stream_put(s, &changed);

	if (!r && (does("double") || ends))
		r = __real_stream_put(s, &changed);
	if (does("threadless")) {
		changed.sample.thread = 0;
		for (int i = 0; !r && i < 9; i++)
			r = __real_stream_put(s, &changed);
	}
	if (!r && ends && count == 100)
		r = put_end(s, m->sample.time_ns);
	return r;
}

static int put_figure(struct stream_out *s, const char *name, uint64_t value)
{
	return __real_stream_put(
		s, &(struct msg){ .id = MSG_FIGURE,
				  .figure = { .name = str_from(name), .value = value } });
}

int __wrap_stream_put(struct stream_out *s, const struct msg *m)
{
	if (m->id == MSG_SAMPLE)
		return put_sample(s, m);
	if (m->id == MSG_END && does("losses"))
		(void)__real_stream_put(
			s, &(struct msg){
				   .id = MSG_LOST,
				   .lost = { .reason = LOST_RING_FULL, .count = 1000, .cpu = 0 } });
	if (m->id == MSG_END && (does("figures") || does("restart"))) {
		(void)put_figure(s, "restarts_symd", 7);
		(void)put_figure(s, "run_taken", 1000000);
		(void)put_figure(s, "witness_more", 0);
	}
	return __real_stream_put(s, m);
}
