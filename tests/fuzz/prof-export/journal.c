/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Input: the streams of three senders, one after the other. A header selects the lengths of the
 * first two, the size of the pieces, the journal's ceiling, and the places where prof-export is
 * killed. A session restored from the journal has the same contents as the one before.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include "tests/fuzz/must.h"
#include "tools/prof-export/session/journal.h"

#define SENDERS 3
#define MODEL_BYTES (256u << 10)
#define UNIT 8 /* unit of a sender's length, in bytes */

struct head {
	uint8_t length[SENDERS - 1], piece, max, killed;
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct session session;
static struct journal journal;
static uint64_t refused; /* senders, of this session */
static bool refused_known;

static void no_beat(void *ctx)
{
	(void)ctx;
}

static void begin(void)
{
	const struct session_options o = { .format = FORMAT_FOLDED,
					   .memory_max = MODEL_BYTES,
					   .many = true };

	must(session_init(&session, &o, -1) == 0);
}

/* broken: the last sender's stream was refused, and is still in the journal. */
static void kill_it(bool broken)
{
	const struct model_totals before = *model_totals(session.model), *after;
	const bool lost = session.lost, full = journal.full;

	session_done(&session);
	begin();
	journal = (struct journal){ .fd = journal.fd, .max = journal.max };
	must(journal_replay(&journal, &session, no_beat, NULL) <= STREAM_AGAIN);
	must(lseek(journal.fd, 0, SEEK_END) == (off_t)journal.bytes);
	after = model_totals(session.model);
	/* The journal attributes what follows an end to the next sender. */
	const bool whole = !full && !lost;

	must(!whole || (after->samples == before.samples && after->value == before.value));
	for (unsigned i = 0; whole && i < STATUS_REASONS; i++) {
		if (i != LOST_MALFORMED)
			must(after->lost[i] == before.lost[i]);
		else if (refused_known)
			must(after->lost[i] + refused - broken == before.lost[i]);
	}
	refused = broken;
	refused_known = whole;
}

/* Returns false if the stream has ended. */
static bool send(struct span rest, size_t piece, size_t killed)
{
	bool broken = false;

	for (size_t i = 0; rest.len && !broken && !session.lost; i++) {
		struct span part;

		must(span_take(&rest, rest.len < piece ? rest.len : piece, &part));
		const int r = journal_feed(&journal, &session, part);

		must(r >= 0 && r <= STREAM_SCHEMA);
		must(journal.bytes <= journal.max);
		if (r == STREAM_SCHEMA || (r == 0 && !session.lost))
			return false;
		broken = r == STREAM_MALFORMED;
		refused += broken;
		if (i == killed) {
			kill_it(broken);
			return true;
		}
	}
	journal_reopen(&journal, &session);
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct span rest = { .data = data, .len = size }, head;
	bool open = true;

	if (!span_take(&rest, sizeof(struct head), &head))
		return 0;
	struct head h;

	memcpy(&h, head.data, sizeof(h));
	if (!journal.fd)
		journal.fd = memfd_create("journal", MFD_CLOEXEC);
	must(journal.fd > 0 && ftruncate(journal.fd, 0) == 0 &&
	     lseek(journal.fd, 0, SEEK_SET) == 0);
	journal = (struct journal){ .fd = journal.fd, .max = h.max * 16u };
	refused = 0;
	refused_known = true;
	begin();
	for (size_t i = 0; i < SENDERS && open; i++) {
		size_t length = i < SENDERS - 1 ? (size_t)h.length[i] * UNIT : rest.len;
		struct span one;

		must(span_take(&rest, length < rest.len ? length : rest.len, &one));
		open = send(one, 1 + h.piece, h.killed >> i * 2 & 3);
	}
	if (open)
		kill_it(false);
	session_done(&session);
	return 0;
}
