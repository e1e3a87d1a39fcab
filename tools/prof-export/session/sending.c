/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-export/session/sending.h"

#include <string.h>
#include "common/base/command/log.h"

#define MEMORY_PART 3 /* share of the memory for a session beside that of the output */

int sending_init(struct sending *s, struct session_options *main, bool apart)
{
	s->on = true;
	s->apart = apart;
	s->outlet = OUTLET_NONE;
	if (!apart) {
		main->send = outlet_put;
		main->send_ctx = &s->outlet;
		return 0;
	}
	struct session_options own = *main;

	own.format = FORMAT_OTLP;
	own.requests_max = main->requests_max / 2;
	own.memory_max = main->memory_max / MEMORY_PART + own.requests_max;
	own.send = outlet_put;
	own.send_ctx = &s->outlet;
	main->memory_max -= main->memory_max / MEMORY_PART;
	main->others = own.memory_max + own.requests_max;
	const int r = session_init(&s->own, &own, -1);

	s->apart = !r;
	return r;
}

int sending_open(struct sending *s, const char *run_dir, uid_t uid)
{
	return s->on ? outlet_open(&s->outlet, run_dir, uid) : 0;
}

/* Stops making requests; the output continues. */
static void give_up(struct sending *s, int error)
{
	log_warning(
		"no further OTLP requests are made: %s; other outputs continue; give the run more "
		"memory, for example by --memory-limit",
		strerror(-error));
	session_done(&s->own);
	s->apart = false;
}

void sending_replay(struct sending *s, const struct journal *j, void (*beat)(void *ctx), void *ctx)
{
	struct journal mine = { .fd = j->fd, .max = j->max };

	if (!s->apart)
		return;
	session_replay(&s->own);
	const int r = journal_replay(&mine, &s->own, beat, ctx);

	session_replayed(&s->own);
	if (r < 0)
		give_up(s, r);
}

void sending_feed(struct sending *s, struct span bytes)
{
	if (!s->apart)
		return;
	const int r = session_feed(&s->own, bytes);

	if (r == STREAM_MALFORMED || r == STREAM_SCHEMA)
		model_lose(s->own.model, LOST_MALFORMED, 1);
	else if (r < 0)
		give_up(s, r);
}

void sending_reopen(struct sending *s)
{
	if (s->apart)
		session_reopen(&s->own);
}

void sending_tell(struct sending *s, struct str name, uint64_t value)
{
	if (s->apart && s->own.begun)
		(void)session_tell(&s->own, name, value);
}

void sending_hear(struct sending *s, const struct witness_word *w)
{
	if (s->apart)
		model_witness(s->own.model, w);
}

void sending_interrupted(struct sending *s, bool replayed)
{
	if (s->apart)
		model_interrupted(s->own.model, replayed);
}

void sending_over(struct sending *s)
{
	if (s->apart)
		model_over(s->own.model);
}

void sending_time(struct sending *s, uint64_t ns)
{
	const int r = s->apart ? session_time(&s->own, ns) : 0;

	if (r)
		give_up(s, r);
}

void sending_finish(struct sending *s)
{
	s->outlet.ending = true;
	if (!s->apart || !s->own.begun)
		return;
	model_missing(s->own.model, stream_missing(&s->own.in));
	const int r = session_finish(&s->own);

	if (r)
		give_up(s, r);
}

void sending_end(struct sending *s, bool whole)
{
	if (s->on && s->outlet.bus && whole)
		outlet_end(&s->outlet);
	else if (s->on)
		outlet_close(&s->outlet);
	if (s->apart)
		session_done(&s->own);
	s->apart = false;
}

void sending_status(const struct sending *s, struct status *st)
{
	if (s->on)
		outlet_status(&s->outlet, st);
}
