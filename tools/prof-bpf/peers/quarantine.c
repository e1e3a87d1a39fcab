/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/peers/quarantine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/tables/hashtable.h"

#define CRASHES_ALLOWED 1
#define DOUBTS_ALLOWED 4
#define DOUBTS_FOR_DEATHS 2
#define SLOW_FOR_DEATHS 4
#define DOUBT_SHIFT_MAX 12
#define GROUP_SHIFT 16

struct quarantine_file_key {
	uint64_t parser, dev, inode, ctime_ns, size;
};

/* A file that a parser died on. */
struct suspect {
	struct quarantine_file_key key;
	unsigned crashes, doubts, times; /* times: how often it was given up temporarily */
	bool given_up, freed;		 /* freed: quarantine_freed has returned it */
	uint64_t until_ns;		 /* end of a temporary quarantine; 0: permanent */
	UT_hash_handle hh;
};

enum blamed_kind { BLAMED_USER, BLAMED_THEIR_USER, BLAMED_GROUP, BLAMED_DEVICE, BLAMED_CONTAINER };

struct blamed_key {
	uint64_t parser, kind, id, dev;
};

struct blamed {
	struct blamed_key key;
	unsigned deaths, doubts;
	uint64_t last_ns;
	bool said;
	UT_hash_handle hh;
};

struct quarantine {
	struct suspect *suspects; /* both lists are in the order of their first death */
	struct blamed *blamed;
	uint64_t free_ns; /* when the next suspect must be freed; 0: none */
	/* The file of the last unexplained death, and who was charged for it. */
	struct quarantine_file_key doubted;
	struct blamed_key doubted_blamed[2];
};

int quarantine_new(struct quarantine **ret)
{
	*ret = calloc(1, sizeof(**ret));
	return *ret ? 0 : -ENOMEM;
}

static void forget_suspect(struct quarantine *q, struct suspect *s)
{
	HASH_DEL(q->suspects, s);
	free(s);
}

static void forget_blamed(struct quarantine *q, struct blamed *o)
{
	HASH_DEL(q->blamed, o);
	free(o);
}

void quarantine_free(struct quarantine *q)
{
	if (!q)
		return;
	while (q->suspects)
		forget_suspect(q, q->suspects);
	while (q->blamed)
		forget_blamed(q, q->blamed);
	free(q);
}

bool quarantine_is_empty(const struct quarantine *q)
{
	return !q->blamed;
}

static struct quarantine_file_key key_of(enum quarantine_parser parser,
					 const struct quarantine_key *of)
{
	return (struct quarantine_file_key){ .parser = parser,
					     .dev = of->dev,
					     .inode = of->inode,
					     .ctime_ns = of->ctime_ns,
					     .size = of->size };
}

static struct suspect *find_suspect(const struct quarantine *q,
				    const struct quarantine_file_key *key)
{
	struct suspect *s;

	HASH_FIND(hh, q->suspects, key, sizeof(*key), s);
	return s;
}

/* --- who is charged --- */

/* A user or group that is charged, and the number of deaths that is too many. */
struct charged {
	struct blamed_key key;
	unsigned limit;
};

static unsigned charged_of(enum quarantine_parser parser, const struct quarantine_key *of,
			   struct charged ret[static 2])
{
	const uint64_t process = of->dev == QUARANTINE_PROCESS;
	unsigned n = 0;

	if (of->container) {
		ret[n++] = (struct charged){ { parser, BLAMED_CONTAINER, of->container, 0 },
					     QUARANTINE_USER_DEATHS };
		return n;
	}
	if (of->foreign_owner) {
		ret[n++] = (struct charged){ { parser, BLAMED_THEIR_USER, of->uid, of->dev },
					     QUARANTINE_USER_DEATHS };
		ret[n++] = (struct charged){ { parser, BLAMED_DEVICE, 1, of->dev },
					     QUARANTINE_GROUP_DEATHS };
		return n;
	}
	if (of->uid == 0) {
		ret[n++] = (struct charged){ { parser, BLAMED_DEVICE, 0, process ? 0 : of->dev },
					     QUARANTINE_GROUP_DEATHS };
		return n;
	}
	ret[n++] = (struct charged){ { parser, BLAMED_USER, of->uid, 0 }, QUARANTINE_USER_DEATHS };
	if (of->uid >> GROUP_SHIFT)
		ret[n++] = (struct charged){ { parser, BLAMED_GROUP, of->uid >> GROUP_SHIFT, 0 },
					     QUARANTINE_GROUP_DEATHS };
	return n;
}

static struct blamed *find_blamed(const struct quarantine *q, const struct blamed_key *key)
{
	struct blamed *o;

	HASH_FIND(hh, q->blamed, key, sizeof(*key), o);
	return o;
}

static bool is_refused(const struct quarantine *q, const struct charged *c, uint64_t now_ns)
{
	const struct blamed *o = find_blamed(q, &c->key);

	return o && o->deaths >= c->limit && now_ns - o->last_ns < QUARANTINE_USER_NS;
}

/* Returns the entry of a user or group, and makes it if it is new; NULL: no memory. */
static struct blamed *blamed_get(struct quarantine *q, const struct blamed_key *key)
{
	struct blamed *o = find_blamed(q, key);

	if (o)
		return o;
	if (HASH_COUNT(q->blamed) >= QUARANTINE_USERS_MAX)
		forget_blamed(q, q->blamed);
	o = calloc(1, sizeof(*o));
	if (!o)
		return NULL;
	o->key = *key;
	HASH_ADD(hh, q->blamed, key, sizeof(o->key), o);
	return o;
}

/* Charges a death. Returns true if it reaches the limit, and this was not logged yet. former: who
 * was charged for the last unexplained death. */
static bool charge(struct quarantine *q, const struct charged *c, struct blamed_key *former,
		   enum lastword_end end, uint64_t now_ns)
{
	struct blamed *o = blamed_get(q, &c->key);

	if (!o)
		return false;
	/* After the quarantine, one more death is enough. */
	if (now_ns - o->last_ns >= QUARANTINE_USER_NS) {
		o->deaths = o->deaths >= c->limit ? c->limit - 1 : 0;
		o->doubts = 0;
		o->said = false;
	}
	o->last_ns = now_ns;
	if (end == LASTWORD_NONE) {
		if (memcmp(former, &c->key, sizeof(*former)) != 0)
			o->doubts = 0;
		*former = c->key;
		if (++o->doubts >= DOUBTS_FOR_DEATHS * c->limit)
			o->deaths = c->limit;
	} else {
		/* A slow file counts more, since it also delays all others. */
		o->deaths += end == LASTWORD_SLOW ? SLOW_FOR_DEATHS : 1;
		if (o->deaths > c->limit)
			o->deaths = c->limit;
	}
	if (o->deaths < c->limit || o->said)
		return false;
	o->said = true;
	return true;
}

/* --- files --- */

enum quarantine_verdict quarantine_check(const struct quarantine *q, enum quarantine_parser parser,
					 const struct quarantine_key *of, uint64_t now_ns)
{
	const struct quarantine_file_key key = key_of(parser, of);
	const struct suspect *s = find_suspect(q, &key);
	struct charged charged[2];

	if (s && s->given_up && (!s->until_ns || now_ns < s->until_ns))
		return QUARANTINE_GIVEN_UP;
	for (unsigned n = charged_of(parser, of, charged), i = 0; i < n; i++)
		if (is_refused(q, &charged[i], now_ns))
			return QUARANTINE_OF_USER;
	return QUARANTINE_FREE;
}

unsigned quarantine_deaths(const struct quarantine *q, enum quarantine_parser parser,
			   const struct quarantine_key *of)
{
	const struct quarantine_file_key key = key_of(parser, of);
	const struct suspect *s = find_suspect(q, &key);

	return s ? s->crashes + s->doubts : 0;
}

/* Returns true if the file is given up now and was not before. */
static bool give_up(struct quarantine *q, struct suspect *s, enum lastword_end end, uint64_t now_ns)
{
	const bool before = s->given_up;

	if (end == LASTWORD_NONE) {
		if (memcmp(&q->doubted, &s->key, sizeof(s->key)) != 0)
			s->doubts = 0;
		q->doubted = s->key;
		if (++s->doubts <= DOUBTS_ALLOWED)
			return false;
		s->doubts = DOUBTS_ALLOWED; /* after that, one more is enough */
		s->given_up = true;
		s->freed = false;
		s->until_ns = now_ns + (QUARANTINE_DOUBT_NS << s->times);
		if (!q->free_ns || s->until_ns < q->free_ns)
			q->free_ns = s->until_ns;
		if (s->times < DOUBT_SHIFT_MAX)
			s->times++;
		return !before;
	}
	q->doubted = (struct quarantine_file_key){ 0 };
	if (end == LASTWORD_CRASH && ++s->crashes <= CRASHES_ALLOWED)
		return false;
	s->given_up = true;
	s->until_ns = 0;
	return !before;
}

bool quarantine_freed(struct quarantine *q, uint64_t now_ns, enum quarantine_parser *ret_parser,
		      struct quarantine_key *ret_of)
{
	if (!q->free_ns || now_ns < q->free_ns)
		return false;
	q->free_ns = 0;
	for (struct suspect *s = q->suspects; s; s = s->hh.next) {
		if (!s->given_up || !s->until_ns || s->freed)
			continue;
		if (now_ns >= s->until_ns) {
			const struct quarantine_file_key *k = &s->key;

			s->freed = true;
			q->free_ns = now_ns; /* there may be more, so look again at once */
			*ret_parser = (enum quarantine_parser)k->parser;
			*ret_of = (struct quarantine_key){ .dev = k->dev,
							   .inode = k->inode,
							   .ctime_ns = k->ctime_ns,
							   .size = k->size };
			return true;
		}
		if (!q->free_ns || s->until_ns < q->free_ns)
			q->free_ns = s->until_ns;
	}
	return false;
}

enum quarantine_verdict quarantine_blame(struct quarantine *q, enum quarantine_parser parser,
					 const struct quarantine_key *of, enum lastword_end end,
					 uint64_t now_ns)
{
	const struct quarantine_file_key key = key_of(parser, of);
	struct suspect *s = find_suspect(q, &key);
	struct charged charged[2];
	bool user = false;

	if (!s) {
		if (HASH_COUNT(q->suspects) >= QUARANTINE_FILES_MAX)
			forget_suspect(q, q->suspects);
		s = calloc(1, sizeof(*s));
		if (s) {
			s->key = key;
			HASH_ADD(hh, q->suspects, key, sizeof(s->key), s);
		}
	}
	for (unsigned n = charged_of(parser, of, charged), i = 0; i < n; i++)
		user |= charge(q, &charged[i], &q->doubted_blamed[i], end, now_ns);

	const bool file = s && give_up(q, s, end, now_ns);

	return user ? QUARANTINE_OF_USER : file ? QUARANTINE_GIVEN_UP : QUARANTINE_FREE;
}
