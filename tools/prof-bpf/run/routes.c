/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/run/routes.h"

#include <string.h>
#include "common/base/command/log.h"
#include "tools/prof-bpf/run/ending.h"
#include "tools/prof-bpf/run/prof.h"
#include "tools/prof-bpf/stream/definitions.h"

#define EVENTS_AT_ONCE 8

static void listen_to_rows(struct prof *p, bool hears)
{
	wakeups_listen(&p->wakeups, row_server_bus_fd(p->row_server), WAKEUPS_ROWS, hears);
	wakeups_listen(&p->wakeups, row_server_lane_fd(p->row_server), WAKEUPS_ROWS_LANE, hears);
}

static void listen_to_files(struct prof *p, bool hears)
{
	wakeups_listen(&p->wakeups, file_server_bus_fd(p->file_server), WAKEUPS_FILES, hears);
	wakeups_listen(&p->wakeups, file_server_lane_fd(p->file_server), WAKEUPS_FILES_LANE, hears);
}

void routes_wake(struct prof *p, enum wakeups_source from)
{
	struct prof_route *rows = &p->routes.rows, *files = &p->routes.files;

	/* The routes have their own descriptors. But these do not report unsent data, opened files
	 * or deadlines, nor anything while a route is not used. */
	rows->due |= from == WAKEUPS_ROWS || from == WAKEUPS_ROWS_LANE ||
		     (from == WAKEUPS_TIMER && (rows->rests || !row_server_idle(p->row_server)));
	files->due |= from == WAKEUPS_FILES || from == WAKEUPS_FILES_LANE ||
		      ((from == WAKEUPS_TIMER || from == WAKEUPS_HELPERS) && p->file_server &&
		       (files->rests || !file_server_idle(p->file_server)));
}

/*
 * Handles the result of a route. A route that fails, e.g. for lack of memory, is tried again at the
 * next timer tick, so this costs only a delay. Until then the loop ignores its descriptors, which
 * stay readable.
 */
static void ran(struct prof *p, struct prof_route *route, const char *name,
		void (*listen)(struct prof *, bool), int r)
{
	if (!r && !route->rests)
		return;
	if (r && !route->failures++)
		log_warning("messages of %s cannot be handled: %s; prof-bpf tries again; leave the "
			    "run more memory if this goes on",
			    name, strerror(-r));
	if (route->rests != (r != 0))
		listen(p, r == 0);
	route->rests = r != 0;
}

static void run_rows(struct prof *p)
{
	uint16_t slot;

	p->routes.rows.due = false;
	ran(p, &p->routes.rows, "prof-deltas", listen_to_rows,
	    row_server_run(p->row_server, clock_mono_ns()));
	while (row_server_take_unopened(p->row_server, &slot)) {
		struct host_file *f = host_slot_file(p->host, slot);

		if (f)
			host_want_rows(p->host, f);
	}
}

static void send_offers(struct prof *p)
{
	uint32_t id;

	if (!p->offers.count || !output_peer_takes(&p->output))
		return;
	for (id = offers_take(&p->offers); id; id = offers_take(&p->offers)) {
		struct host_file *f = host_file(p->host, id);

		if (!f)
			continue;
		const struct emit_file offered = definition_of_file(f);
		output_emitted(&p->output, emit_file(p->output.emit, &offered));
		offers_sent(&p->offers);
	}
	/* The command has mapped the file, so it runs, unless it is still held. */
	p->samples.command_runs |= p->lifecycle.phase != LIFECYCLE_CONNECTING;
	output_emitted(&p->output, emit_flush(p->output.emit));
}

void routes_run(struct prof *p)
{
	send_offers(p);
	if (p->routes.rows.due)
		run_rows(p);
	/* Files with an open descriptor are sent at once. */
	if (p->routes.rows.due)
		run_rows(p);
	if (p->file_server && p->routes.files.due) {
		p->routes.files.due = false;
		ran(p, &p->routes.files, "prof-symd", listen_to_files,
		    file_server_run(p->file_server));
	}
	if (p->output.bus)
		(void)outbox_run(&p->output.outbox);
}

static void peer_came(struct prof *p)
{
	p->samples.renewed_ns = 0;
	output_peer_came(&p->output);
	output_emitted(&p->output, emit_figure(p->output.emit, "began", p->lifecycle.began_ns));
	if (p->lifecycle.sampling_ns)
		output_emitted(&p->output, emit_figure(p->output.emit, "sampling_since",
						       p->lifecycle.sampling_ns));
	ending_peer_came(p);
}

void routes_take_peers(struct prof *p)
{
	for (int n = 0; n < EVENTS_AT_ONCE; n++) {
		const int r = bus_event(p->output.bus);

		if (r == BUS_EMPTY)
			return;
		if (r == BUS_PEER_CAME) {
			peer_came(p);
		} else {
			output_peer_went(&p->output);
			ending_peer_went(p);
		}
	}
}

static bool is_key_of(const struct quarantine_key *key, const struct host_file *f)
{
	return f->dev == key->dev && f->inode == key->inode && f->ctime_ns == key->ctime_ns &&
	       f->size == key->size;
}

void routes_ask_again(struct prof *p, uint64_t now_ns)
{
	enum quarantine_parser parser;
	struct quarantine_key freed;
	bool names = false;

	while (quarantine_freed(p->quarantine, now_ns, &parser, &freed)) {
		names |= parser == QUARANTINE_NAMES;
		for (uint32_t slot = 1; parser == QUARANTINE_ROWS && slot < TABLES_MAX_FILES;
		     slot++) {
			struct host_file *f = host_slot_file(p->host, (uint16_t)slot);

			if (f && is_key_of(&freed, f))
				host_want_rows(p->host, f);
		}
	}
	/* In a new epoch, prof-symd requests the files again. */
	if (names && p->output.has_peer)
		output_emitted(&p->output, emit_restart(p->output.emit));
}
