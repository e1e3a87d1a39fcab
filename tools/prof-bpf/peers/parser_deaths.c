/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/peers/parser_deaths.h"

#include <stdio.h>
#include "common/base/bytes/buf.h"
#include "common/base/command/log.h"
#include "common/base/system/clock.h"
#include "tools/prof-bpf/host/host.h"
#include "tools/prof-bpf/owners/owners.h"

static const char *const parsers[] = {
	[QUARANTINE_ROWS] = "prof-deltas", [QUARANTINE_NAMES] = "prof-symd"
};
static const char *const lacks[] = {
	[QUARANTINE_ROWS] = "has no unwind rows", [QUARANTINE_NAMES] = "is not named"
};
static const char *const cost[] = {
	[QUARANTINE_ROWS] = "have incomplete stacks", [QUARANTINE_NAMES] = "are not named"
};

static uint32_t container_of(const struct owner *w)
{
	return w ? w->key.container : 0;
}

struct quarantine_key parser_deaths_key(const struct host_file *f)
{
	return (struct quarantine_key){ .dev = f->dev,
					.inode = f->inode,
					.ctime_ns = f->ctime_ns,
					.size = f->size,
					.uid = f->uid,
					.foreign_owner = f->foreign_owner,
					.container = container_of(host_file_owner(f)) };
}

static struct quarantine_key key_of_process(const struct host_process *h)
{
	return (struct quarantine_key){ .dev = QUARANTINE_PROCESS,
					.inode = h->id,
					.uid = h->uid,
					.container = container_of(h->owner) };
}

bool parser_deaths_refuse(struct parser_deaths *d, enum quarantine_parser parser,
			  const struct quarantine_key *of)
{
	const bool refused = quarantine_check(d->quarantine, parser, of, clock_mono_ns()) !=
			     QUARANTINE_FREE;

	d->refused += refused;
	return refused;
}

bool parser_deaths_refuse_process(struct parser_deaths *d, uint64_t id)
{
	const struct host_process *h = NULL;
	struct quarantine_key of;

	/* Do this only if necessary, since it searches through all processes. */
	if (!quarantine_is_empty(d->quarantine) && id <= UINT32_MAX)
		h = host_process(d->host, (uint32_t)id);
	if (!h)
		return false;
	of = key_of_process(h);
	return parser_deaths_refuse(d, QUARANTINE_NAMES, &of);
}

static void say_file(enum quarantine_parser parser, struct str name, enum lastword_end end)
{
	struct buf b = BUF_INIT(0);

	if (log_escape(&b, name, 256) == 0)
		log_warning("%.*s: %s: %s %s", (int)b.len, (const char *)b.data, lacks[parser],
			    parsers[parser],
			    end == LASTWORD_CRASH
				    ? "crashed on it twice; this is a bug: report it, with the file"
			    : end == LASTWORD_SLOW
				    ? "took too long for it"
				    : "was killed on it repeatedly; leave the tools more memory");
	buf_done(&b);
}

static void say_user(enum quarantine_parser parser, const struct quarantine_key *of)
{
	if (of->container)
		log_warning(
			"container %u: %s repeatedly crashed or took too long on its files; for an "
			"hour it gets none of them, so they %s",
			(unsigned)of->container, parsers[parser], cost[parser]);
	else if (of->foreign_owner || of->uid == 0)
		log_warning(
			"device %llu:%llu: %s repeatedly crashed or took too long on its files; "
			"for an hour it gets none of them, so they %s",
			(unsigned long long)(of->dev >> 32),
			(unsigned long long)(of->dev & UINT32_MAX), parsers[parser], cost[parser]);
	else
		log_warning("user %u: %s repeatedly crashed or took too long on this user's files; "
			    "for an hour it gets none of them, so they %s",
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

void parser_deaths_rows(void *ctx, struct str name, const struct quarantine_key *of,
			enum lastword_end end, enum quarantine_verdict verdict)
{
	say(QUARANTINE_ROWS, name, of, end, verdict);
}

void parser_deaths_aside(void *ctx, const struct owner *owner)
{
	char text[OWNER_TEXT];

	log_warning("%s: unwind rows of this owner's programs take long to make, so those of "
		    "others come first; until then these programs lose stacks",
		    owner_text(owner, text));
}

void parser_deaths_names(struct parser_deaths *d, const struct lastword *last)
{
	const struct host_file *f = NULL;
	const struct host_process *h = NULL;
	struct quarantine_key of;
	struct str name;
	char text[48];

	if (last->id > UINT32_MAX)
		return;
	if (last->kind == LASTWORD_FILE)
		f = host_file(d->host, (uint32_t)last->id);
	else if (last->kind == LASTWORD_PROCESS)
		h = host_process(d->host, (uint32_t)last->id);
	if (f) {
		of = parser_deaths_key(f);
		name = (struct str){ .data = f->path, .len = f->path_len };
	} else if (h) {
		of = key_of_process(h);
		snprintf(text, sizeof(text), "generated code of process %u", (unsigned)h->pid);
		name = str_from(text);
	} else {
		return;
	}
	say(QUARANTINE_NAMES, name, &of, last->end,
	    quarantine_blame(d->quarantine, QUARANTINE_NAMES, &of, last->end, clock_mono_ns()));
}
