/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-send/transfer/sender.h"

#include <errno.h>
#include <string.h>
#include "common/base/command/log.h"
#include "common/base/system/clock.h"
#include "tools/prof-send/transfer/patience.h"

int sender_init(struct sender *s, struct transfer *transfers, size_t n)
{
	*s = (struct sender){ .multi = curl_multi_init(), .transfers = transfers, .n = n };
	return s->multi ? patience_begin() : -ENOMEM;
}

void sender_done(struct sender *s)
{
	for (size_t i = 0; i < s->n; i++) {
		if (s->transfers[i].request)
			curl_multi_remove_handle(s->multi, s->transfers[i].easy);
		transfer_abandon(&s->transfers[i]);
	}
	curl_multi_cleanup(s->multi);
	s->multi = NULL;
}

static void say_spool(struct transfer *t)
{
	const int e = t->queue.spool_failure;

	if (e && !t->said_spool)
		log_warning("%s: the spool cannot be written: %s; requests wait in memory; make "
			    "room on its disk",
			    t->endpoint.name, strerror(-e));
	t->said_spool = e != 0;
}

void sender_put(struct sender *s, struct request *r)
{
	for (size_t i = 0; i < s->n; i++) {
		queue_put(&s->transfers[i].queue, r);
		say_spool(&s->transfers[i]);
	}
}

static void begin_all(struct sender *s)
{
	const uint64_t now = clock_mono_ns();

	for (size_t i = 0; i < s->n; i++) {
		struct transfer *t = &s->transfers[i];

		if (transfer_begin(t, now) && curl_multi_add_handle(s->multi, t->easy) != CURLM_OK)
			transfer_end(t, CURLE_OUT_OF_MEMORY);
	}
}

static bool take_ended(struct sender *s)
{
	bool any = false;
	int left;

	for (const CURLMsg *m = curl_multi_info_read(s->multi, &left); m;
	     m = curl_multi_info_read(s->multi, &left)) {
		struct transfer *t = NULL;
		/* Copy the result: removing the handle frees the message. */
		const CURLcode result = m->data.result;
		CURL *easy = m->easy_handle;

		if (m->msg != CURLMSG_DONE)
			continue;
		curl_easy_getinfo(easy, CURLINFO_PRIVATE, &t);
		curl_multi_remove_handle(s->multi, easy);
		transfer_end(t, result);
		any = true;
	}
	return any;
}

void sender_work(struct sender *s)
{
	int running;

	do {
		begin_all(s);
		patience_start();
		curl_multi_perform(s->multi, &running);
		patience_stop();
	} while (take_ended(s));
}

/* The time until the next endpoint that is backing off may be tried again. */
static int rest_ms(const struct sender *s, int most)
{
	const uint64_t now = clock_mono_ns();
	uint64_t ms = (uint64_t)most;

	for (size_t i = 0; i < s->n; i++) {
		const struct transfer *t = &s->transfers[i];

		if (t->request || queue_is_empty(&t->queue))
			continue;
		const uint64_t left = t->next_ns > now ? (t->next_ns - now) / 1000000u + 1 : 0;

		ms = left < ms ? left : ms;
	}
	return (int)ms;
}

void sender_wait(struct sender *s, struct curl_waitfd *fds, unsigned n, int timeout_ms)
{
	curl_multi_poll(s->multi, fds, n, rest_ms(s, timeout_ms), NULL);
}

bool sender_is_empty(const struct sender *s)
{
	for (size_t i = 0; i < s->n; i++)
		if (!queue_is_empty(&s->transfers[i].queue))
			return false;
	return true;
}

bool sender_is_half_full(const struct sender *s)
{
	for (size_t i = 0; i < s->n; i++)
		if (queue_is_half_full(&s->transfers[i].queue))
			return true;
	return false;
}
