/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Input: messages of a compromised extractor. They come in any order, about requested files and
 * others, with any rows and rules, and with bytes that are no stream. The peer also disconnects and
 * returns.
 *
 * An input is a list of steps: a byte that selects the step, one that selects the file, and its
 * data. Only requested files get rows, each request is settled in the end, and after a peer broke
 * the rules nothing of it is read.
 */
#include "common/walk/tables/tables.h"
#include "tests/fuzz/fake_peer.h"
#include "tests/memory_tables.h"
#include "tools/prof-bpf/peers/row_server.h"

#define SLOTS 6
#define MAX_STEPS 64

enum step { ASK, FREE, WENT, BEGIN, RULES, CHUNK, END, RAW, STEPS };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* --- the steps --- */

struct bench {
	struct tables *tables;
	struct row_server *server;
	struct quarantine *quarantine;
	struct stream_out out;
	uint64_t now_ns;
	uint16_t slots[SLOTS];
	bool used[SLOTS], ended[SLOTS];
	uint64_t asked;
};

static void on_death(void *ctx, struct str name, const struct quarantine_key *of,
		     enum lastword_end end, enum quarantine_verdict verdict)
{
	must(verdict <= QUARANTINE_OF_USER);
}

static void ask(struct bench *b, unsigned i)
{
	const struct quarantine_key of = { .dev = 1, .inode = i, .size = 4096, .uid = i / 2 };

	if (b->used[i] || tables_file_new(b->tables, &b->slots[i]))
		return;
	b->used[i] = true;
	tables_file_pending(b->tables, b->slots[i]);
	must(row_server_request(b->server, b->slots[i], FAR_FD, &of, STR_LIT("/a/file"), NULL) ==
	     0);
	b->asked++;
}

static void step(struct bench *b, enum step what, uint8_t which, struct span *rest)
{
	struct msg m = { 0 };
	uint32_t head[5] = { 0 };
	struct span bytes = { 0 };
	uint8_t n = 0;

	switch (what) {
	case ASK:
		ask(b, which % SLOTS);
		return;
	case FREE:
		if (b->used[which % SLOTS])
			tables_file_free(b->tables, b->slots[which % SLOTS]);
		b->used[which % SLOTS] = false;
		return;
	case WENT:
		fake_peer.went = fake_peer.connected;
		fake_peer.has_batch = false;
		fake_peer.last = (struct lastword){ .kind = which & 1,
						    .end = which >> 1 & 1,
						    .id = which >> 2 };
		return;
	case BEGIN:
		(void)span_read(rest, head, sizeof(head));
		m.id = MSG_ROWS_BEGIN;
		m.rows_begin.id = which;
		m.rows_begin.status = head[0] & 7;
		m.rows_begin.base = head[1];
		m.rows_begin.span = head[2];
		m.rows_begin.rows = head[3] & 0xffff;
		m.rows_begin.rules = head[4] & 0xff;
		break;
	case RULES:
	case CHUNK:
	case RAW:
		(void)span_read(rest, &n, 1);
		(void)span_take(rest, n < rest->len ? n : rest->len, &bytes);
		m.id = what == RULES ? MSG_ROWS_RULES : MSG_ROWS_CHUNK;
		if (what == RULES) {
			m.rows_rules.id = which;
			m.rows_rules.rules = bytes;
		} else {
			m.rows_chunk.id = which;
			m.rows_chunk.rows = bytes;
		}
		break;
	case END:
	case STEPS:
		m.id = MSG_ROWS_END;
		m.rows_end.id = which;
		break;
	}
	if (what == RAW)
		fake_peer_say_bytes(bytes);
	else
		fake_peer_say(&b->out, &m, 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct tables *tables;
	static uint64_t now_ns = 1;
	struct bench b = { .now_ns = now_ns };
	struct span rest = { .data = data, .len = size };
	struct row_server_figures figures;
	uint8_t head[2];

	if (!tables) {
		const struct tables_config c = memory_tables(TABLES_SLAB_BYTES);

		must(tables_new(&c, &tables) == 0);
	}
	b.tables = tables;
	fake_peer_reset();
	tables_tick(tables, now_ns);
	must(quarantine_new(&b.quarantine) == 0);
	const struct row_server_config c = { .run_dir = "/nowhere",
					     .tables = tables,
					     .quarantine = b.quarantine,
					     .on_death = on_death,
					     .ctx = &b };

	must(row_server_new(&c, &b.server) == 0);
	stream_out_init(&b.out, 4096, fake_peer_keep, NULL);
	fake_peer_come(&b.out, ++b.now_ns);
	for (int i = 0; i < MAX_STEPS && span_read(&rest, head, sizeof(head)); i++) {
		const bool heard = fake_peer.connected && !fake_peer.dropped;

		step(&b, head[0] % STEPS, head[1], &rest);
		b.now_ns += (head[0] & 0x80) ? 9000000000ull : 1000000;
		must(row_server_run(b.server, b.now_ns) == 0);
		for (uint16_t slot; row_server_take_unopened(b.server, &slot);)
			tables_file_none(b.tables, slot);
		/* A dropped peer disconnects in the end, and another one connects. */
		if (fake_peer.dropped && !(head[0] & 0x40) && heard)
			fake_peer.went = true;
		if (!fake_peer.connected && !fake_peer.came)
			fake_peer_come(&b.out, ++b.now_ns);
	}
	row_server_figures(b.server, &figures);
	must(figures.answered <= b.asked);
	uint64_t ready = 0;

	for (unsigned i = 0; i < SLOTS; i++) {
		if (!b.used[i])
			continue;
		ready += tables_file_state(tables, b.slots[i]) == TABLES_FILE_READY;
		tables_file_free(tables, b.slots[i]);
	}
	must(ready <= figures.answered);
	row_server_free(b.server);
	quarantine_free(b.quarantine);
	stream_out_done(&b.out);
	buf_done(&fake_peer.batch);
	now_ns = b.now_ns + 2 * TABLES_GRACE_NS;
	return 0;
}
