/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-symd/stream/relayed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/bytes/hash.h"

#define KIND_SHIFT 56 /* of a key: the kind is above the id */
#define OF_PROCESS 0xffull

bool relayed_has(enum msg_id id)
{
	return id >= MSG_SOURCE && id <= MSG_MAPPING;
}

/* Returns the key; 0: the message belongs to a process, or its id is invalid. */
static uint64_t key_of(enum msg_id kind, uint64_t id)
{
	return id && id >> KIND_SHIFT == 0 ? (uint64_t)kind << KIND_SHIFT | id : 0;
}

static uint64_t id_of(const struct msg *m)
{
	switch (m->id) {
	case MSG_SOURCE:
		return m->source.id;
	case MSG_LABEL:
		return m->label.id;
	case MSG_LABELS:
		return m->labels.id;
	case MSG_LINK:
		return m->link.id;
	case MSG_CGROUP:
		return m->cgroup.id;
	default:
		return 0;
	}
}

/* Returns a hash of the part that distinguishes the messages of one process: the key of an
 * attribute, the start of a mapping. */
static uint64_t name_of(const struct msg *m)
{
	return m->id == MSG_MAPPING
		       ? m->mapping.start
		       : hash_bytes(HASH_START, m->attribute.key.data, m->attribute.key.len);
}

/* Returns the definition of the process that this message replaces; NULL: none, and the process has
 * *ret_count of them. */
static struct definition_relayed *find_former(const struct definitions *d,
					      const struct definition_process *p,
					      const struct msg *m, uint32_t *ret_count)
{
	*ret_count = 0;
	for (uint32_t slot = p->relayed; slot != IDMAP_NONE; ++*ret_count) {
		struct definition_relayed *x = idtable_at(&d->relayed, slot);

		if (x->id == m->id && x->name == name_of(m))
			return x;
		slot = x->next;
	}
	return NULL;
}

/* Replaces the bytes of a definition. */
static void replace(struct definitions *d, struct definition_relayed *x, struct buf *bytes)
{
	d->text -= x->len;
	free(x->bytes);
	x->bytes = bytes->data;
	x->len = (uint32_t)bytes->len;
	x->sent = 0;
	d->text += x->len;
	*bytes = (struct buf){ 0 };
}

/* Adds an empty definition with space for n bytes. */
static int add(struct definitions *d, uint64_t key, const struct msg *m, size_t len,
	       struct definition_relayed **ret)
{
	uint32_t slot;
	int r = definitions_add(d, &d->relayed, key, len, &slot);

	if (r)
		return r;
	d->text -= len; /* replace() adds it */
	*ret = idtable_at(&d->relayed, slot);
	**ret = (struct definition_relayed){ .key = key, .id = m->id, .next = IDMAP_NONE };
	return 0;
}

static int take_of_process(struct definitions *d, const struct msg *m, struct buf *bytes)
{
	const uint64_t process = m->id == MSG_MAPPING ? m->mapping.process : m->attribute.process;
	struct definition_process *p = definitions_find_process(d, process);
	struct definition_relayed *x;
	uint32_t count;

	if (!p)
		return 0;
	x = find_former(d, p, m, &count);
	if (!x && count >= RELAYED_OF_PROCESS)
		return -ENOBUFS;
	if (!x) {
		const int r = add(d, OF_PROCESS << KIND_SHIFT | ++d->relayed_made, m, bytes->len,
				  &x);

		if (r)
			return r;
		x->name = name_of(m);
		x->next = p->relayed;
		p->relayed = idmap_get(&d->relayed.ids, x->key);
	}
	replace(d, x, bytes);
	p->relayed_sent = 0;
	return 0;
}

static int take(struct definitions *d, const struct msg *m, struct buf *bytes)
{
	const uint64_t key = key_of(m->id, id_of(m));
	struct definition_relayed *x;

	if (m->id == MSG_MAPPING || m->id == MSG_ATTRIBUTE)
		return take_of_process(d, m, bytes);
	if (!key)
		return 0;
	x = idtable_get(&d->relayed, key);
	if (!x) {
		const int r = add(d, key, m, bytes->len, &x);

		if (r)
			return r;
	}
	replace(d, x, bytes);
	return 0;
}

int relayed_take(struct definitions *d, const struct msg *m)
{
	struct buf bytes = BUF_INIT(MSG_MAX_SIZE);
	int r = msg_encode(&bytes, m);

	if (!r) {
		uint8_t *exact = realloc(bytes.data, bytes.len);

		bytes.data = exact ? exact : bytes.data;
		r = take(d, m, &bytes);
	}
	buf_done(&bytes);
	d->limit_hit |= r == -ENOBUFS;
	return r == -ENOMEM ? r : 0;
}

struct definition_relayed *relayed_find(const struct definitions *d, enum msg_id kind, uint64_t id)
{
	const uint64_t key = key_of(kind, id);

	return key ? idtable_get(&d->relayed, key) : NULL;
}

int relayed_decode(const struct definition_relayed *x, struct msg_scratch *scratch, struct msg *ret)
{
	struct span in = { .data = x->bytes, .len = x->len };

	return msg_decode(&in, scratch, ret);
}
