/* SPDX-License-Identifier: Apache-2.0 */
/* Parsers that died: what they died on is remembered (quarantine.h), and said once. */
#include <stdio.h>
#include "common/clock.h"
#include "common/log.h"
#include "tools/prof-bpf/prof.h"

static const char *const parsers[] = {
	[QUARANTINE_ROWS] = "prof-deltas", [QUARANTINE_NAMES] = "prof-symd"
};
static const char *const lacks[] = {
	[QUARANTINE_ROWS] = "has no unwind rows", [QUARANTINE_NAMES] = "is not named"
};
static const char *const cost[] = {
	[QUARANTINE_ROWS] = "have incomplete stacks", [QUARANTINE_NAMES] = "are not named"
};

struct quarantine_key deaths_key(const struct host_file *f)
{
	return (struct quarantine_key){ .dev = f->dev,
					.inode = f->inode,
					.ctime_ns = f->ctime_ns,
					.size = f->size,
					.uid = f->uid,
					.theirs = f->theirs };
}

static struct quarantine_key key_of_process(const struct host_process *h)
{
	return (struct quarantine_key){ .dev = QUARANTINE_PROCESS, .inode = h->id, .uid = h->uid };
}

bool deaths_refuse(struct prof *p, enum quarantine_parser parser, const struct quarantine_key *of)
{
	const bool refused = quarantine_check(p->quarantine, parser, of, clock_mono_ns()) !=
			     QUARANTINE_FREE;

	p->quarantine_refused += refused;
	return refused;
}

bool deaths_refuse_process(struct prof *p, uint64_t id)
{
	const struct host_process *h = NULL;
	struct quarantine_key of;

	/* It is a search through all of them. */
	if (!quarantine_is_empty(p->quarantine) && id <= UINT32_MAX)
		h = host_process(p->host, (uint32_t)id);
	if (!h)
		return false;
	of = key_of_process(h);
	return deaths_refuse(p, QUARANTINE_NAMES, &of);
}

static void say_file(enum quarantine_parser parser, struct str name, enum lastword_end end)
{
	struct buf b = BUF_INIT(0);

	if (log_escape(&b, name, 256) == 0)
		log_warning("%.*s: %s: %s %s", (int)b.len, (const char *)b.data, lacks[parser],
			    parsers[parser],
			    end == LASTWORD_CRASH  ? "died on it twice"
			    : end == LASTWORD_SLOW ? "took too long over it"
						   : "was killed over it, again and again");
	buf_done(&b);
}

static void say_user(enum quarantine_parser parser, const struct quarantine_key *of)
{
	if (of->theirs || of->uid == 0)
		log_warning(
			"device %llu:%llu: %s died on files of it again and again: for an hour it is given no more of them, and they %s",
			(unsigned long long)(of->dev >> 32),
			(unsigned long long)(of->dev & UINT32_MAX), parsers[parser], cost[parser]);
	else
		log_warning(
			"user %u: %s died on files of theirs again and again: for an hour it is given no more of them, and they %s",
			(unsigned)of->uid, parsers[parser], cost[parser]);
}

static void say(enum quarantine_parser parser, struct str name, const struct quarantine_key *of,
		enum lastword_end end, enum quarantine_verdict verdict)
{
	if (verdict == QUARANTINE_GIVEN_UP)
		say_file(parser, name, end);
	else if (verdict == QUARANTINE_OF_USER)
		say_user(parser, of);
}

void deaths_rows(void *ctx, struct str name, const struct quarantine_key *of, enum lastword_end end,
		 enum quarantine_verdict verdict)
{
	(void)ctx;
	say(QUARANTINE_ROWS, name, of, end, verdict);
}

void deaths_names(void *ctx, const struct lastword *last)
{
	struct prof *p = ctx;
	const struct host_file *f = NULL;
	const struct host_process *h = NULL;
	struct quarantine_key of;
	struct str name;
	char text[48];

	if (last->id > UINT32_MAX)
		return;
	if (last->kind == LASTWORD_FILE)
		f = host_file(p->host, (uint32_t)last->id);
	else if (last->kind == LASTWORD_PROCESS)
		h = host_process(p->host, (uint32_t)last->id);
	if (f) {
		of = deaths_key(f);
		name = (struct str){ .data = f->path, .len = f->path_len };
	} else if (h) {
		of = key_of_process(h);
		snprintf(text, sizeof(text), "generated code of process %u", (unsigned)h->pid);
		name = str_from(text);
	} else {
		return;
	}
	say(QUARANTINE_NAMES, name, &of, last->end,
	    quarantine_blame(p->quarantine, QUARANTINE_NAMES, &of, last->end, clock_mono_ns()));
}
