/* SPDX-License-Identifier: Apache-2.0 */
#include "common/names/jit/codecache.h"

#include <stdlib.h>
#include <string.h>
#include "bpf/mix.h"

struct codecache_answer {
	struct codecache_key of; /* process 0: this place is empty */
	struct codefile_answer answer;
	uint64_t line;
	char *text; /* owned: the name, then the system name, then the source */
	uint16_t name_len, system_len, source_len;
};

void codecache_done(struct codecache *c)
{
	for (unsigned i = 0; c->at && i < CODECACHE_ANSWERS; i++)
		free(c->at[i].text);
	free(c->at);
	c->at = NULL;
}

static struct codecache_answer *place_of(const struct codecache *c, const struct codecache_key *of)
{
	const uint64_t h = (of->address ^ of->process << 40) * MIX_GOLDEN;

	return &c->at[h >> 32 & (CODECACHE_ANSWERS - 1)];
}

const struct codecache_answer *codecache_find(const struct codecache *c,
					      const struct codecache_key *of, uint64_t time_ns)
{
	const struct codecache_answer *k = c->at ? place_of(c, of) : NULL;

	return k && k->of.process == of->process && k->of.address == of->address &&
			       k->of.generation == of->generation &&
			       k->answer.since_ns <= time_ns && time_ns < k->answer.until_ns
		       ? k
		       : NULL;
}

void codecache_put(struct codecache *c, const struct codecache_key *of,
		   const struct codefile_answer *answer, const struct names_call *call)
{
	static const struct names_call none;

	if (!c->at)
		c->at = calloc(CODECACHE_ANSWERS, sizeof(*c->at));
	if (!c->at)
		return;
	call = call ? call : &none;
	struct codecache_answer *k = place_of(c, of);
	const struct str texts[] = { call->name, call->system_name, call->source };
	const size_t len = (size_t)texts[0].len + texts[1].len + texts[2].len;

	free(k->text);
	*k = (struct codecache_answer){ .text = len ? malloc(len) : NULL };
	if (len && !k->text)
		return;
	k->of = *of;
	k->answer = *answer;
	k->line = call->line;
	k->name_len = (uint16_t)texts[0].len;
	k->system_len = (uint16_t)texts[1].len;
	k->source_len = (uint16_t)texts[2].len;
	char *at = k->text;

	for (unsigned i = 0; i < 3; i++) {
		if (texts[i].len)
			memcpy(at, texts[i].data, texts[i].len);
		at += texts[i].len;
	}
}

bool codecache_tell(const struct codecache_answer *k, struct names *ret)
{
	const char *system_name = k->text + k->name_len;

	if (!k->answer.found)
		return false;
	const struct names_call c = { .name = { .data = k->text, .len = k->name_len },
				      .system_name = { .data = system_name, .len = k->system_len },
				      .source = { .data = system_name + k->system_len,
						  .len = k->source_len },
				      .line = k->line };

	names_only(ret, &c);
	return true;
}
