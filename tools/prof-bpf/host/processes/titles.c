/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/host/processes/titles.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

void titles_take(struct process_thread *t, const struct record_title *title)
{
	if (!t->title)
		t->title = malloc(sizeof(*t->title));
	if (t->title)
		*t->title = *title;
}

static struct process_thread *find(struct process_thread *t, const struct record_title *title)
{
	for (struct process_thread *i = t->titled; i; i = i->more)
		if (i->pub.title_len == title->len &&
		    memcmp(i->pub.title, title->text, title->len) == 0)
			return i;
	return NULL;
}

struct process_thread *titles_of(struct host *h, struct process_thread *t, const struct sample *s)
{
	struct process *p = (struct process *)t->pub.process;
	const struct record_title *title = t->title;

	if (!title || !title->len || (title->is_virtual && !(s->flags & SAMPLE_TITLED)))
		return t;
	struct process_thread *ret = find(t, title);

	if (ret) {
		process_thread_touch(h, ret, s->time_ns);
		return ret;
	}
	if (!process_may_rename(p, s->time_ns))
		return t;
	if (h->thread_count >= HOST_MAX_THREADS) {
		/* As for any new thread; but this one is in use. */
		if (h->thread_lru == t)
			return t;
		process_thread_free(h, h->thread_lru);
	}
	ret = calloc(1, sizeof(*ret));
	if (!ret)
		return t;
	ret->pub = t->pub;
	ret->pub.id = ++h->next_thread;
	ret->pub.sent = 0;
	ret->pub.title = malloc(title->len);
	if (!ret->pub.title) {
		free(ret);
		return t;
	}
	memcpy(ret->pub.title, title->text, title->len);
	ret->pub.title_len = title->len;
	ret->last_ns = s->time_ns;
	ret->of = t;
	ret->more = t->titled;
	t->titled = ret;
	DL_APPEND(h->thread_lru, ret);
	DL_APPEND2(p->thread_list, ret, of_prev, of_next);
	h->thread_count++;
	return ret;
}
