/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-symd/stream/definitions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/bytes/numbers.h"

int definitions_init(struct definitions *d, const struct definitions_limits *limits,
		     struct filestore *store)
{
	int r;

	*d = (struct definitions){ .store = store,
				   .numbers_max = limits->numbers,
				   .bytes_max = limits->bytes ? limits->bytes : SIZE_MAX };
	r = idtable_init(&d->processes, sizeof(struct definition_process), limits->processes);
	if (r == 0)
		r = idtable_init(&d->threads, sizeof(struct definition_thread), limits->threads);
	if (r == 0)
		r = idtable_init(&d->files, sizeof(struct definition_file *), limits->files);
	if (r == 0)
		r = idtable_init(&d->frames, sizeof(struct definition_frame), limits->frames);
	if (r == 0)
		r = idtable_init(&d->stacks, sizeof(struct definition_stack), limits->stacks);
	if (r == 0)
		r = idtable_init(&d->functions, sizeof(struct definition_function),
				 limits->functions);
	if (r == 0)
		r = idtable_init(&d->relayed, sizeof(struct definition_relayed), limits->relayed);
	return r;
}

static void free_file(struct definitions *d, struct definition_file *f)
{
	filestore_drop(d->store, &f->store);
	free(f->build);
	free(f->text);
	free(f);
}

static void free_were_open(struct definitions *d)
{
	struct definition_file *next;

	for (struct definition_file *f = d->were_open; f; f = next) {
		next = f->next;
		free_file(d, f);
	}
	d->were_open = NULL;
}

/* Keeps an open file, with the numbers of its definition that identify it. */
static void keep_open(struct definitions *d, struct definition_file *f)
{
	f->def = (struct msg_file){ .id = f->def.id,
				    .dev = f->def.dev,
				    .inode = f->def.inode,
				    .ctime_ns = f->def.ctime_ns,
				    .size = f->def.size,
				    .uid = f->def.uid };
	free(f->text);
	f->text = NULL;
	f->text_len = 0;
	f->sent = f->told = 0;
	f->payers = 0;
	f->untold = f->awaited = f->ended = false;
	f->was_open = true;
	f->next = d->were_open;
	d->were_open = f;
}

/* Returns the same file of the previous epoch, if it is open, and removes it from that list. */
static struct definition_file *take_open(struct definitions *d, const struct msg_file *m)
{
	for (struct definition_file **at = &d->were_open; *at; at = &(*at)->next) {
		struct definition_file *f = *at;
		const struct msg_file *o = &f->def;

		if (o->id != m->id || o->dev != m->dev || o->inode != m->inode ||
		    o->ctime_ns != m->ctime_ns || o->size != m->size || o->uid != m->uid ||
		    f->store.of_root != ((m->flags & MSG_FILE_ROOT_ONLY) != 0))
			continue;
		*at = f->next;
		return f;
	}
	return NULL;
}

void definitions_clear(struct definitions *d)
{
	free_were_open(d);
	for (uint32_t i = 0; i < d->files.len; i++) {
		struct definition_file **f = idtable_at(&d->files, i);

		if (*f && filestore_is_open(&(*f)->store))
			keep_open(d, *f);
		else if (*f)
			free_file(d, *f);
	}
	for (uint32_t i = 0; i < d->functions.len; i++)
		free(((struct definition_function *)idtable_at(&d->functions, i))->text);
	for (uint32_t i = 0; i < d->relayed.len; i++)
		free(((struct definition_relayed *)idtable_at(&d->relayed, i))->bytes);
	for (uint32_t i = 0; i < d->threads.len; i++)
		free(((struct definition_thread *)idtable_at(&d->threads, i))->title);
	idtable_clear(&d->processes);
	idtable_clear(&d->threads);
	idtable_clear(&d->files);
	idtable_clear(&d->frames);
	idtable_clear(&d->stacks);
	idtable_clear(&d->functions);
	idtable_clear(&d->relayed);
	free(d->numbers);
	d->numbers = NULL;
	d->numbers_len = d->numbers_cap = d->text = 0;
	d->limit_hit = false;
}

void definitions_done(struct definitions *d)
{
	definitions_clear(d);
	free_were_open(d);
}

/* Converts an error of idtable_add: a definition that does not fit is dropped. -ENOMEM is passed
 * on, since another try may succeed. */
static int not_kept(struct definitions *d, int r)
{
	if (r == -ENOMEM)
		return r;
	d->limit_hit |= r == -ENOBUFS;
	return 0;
}

size_t definitions_bytes(const struct definitions *d)
{
	return idtable_bytes(&d->processes) + idtable_bytes(&d->threads) +
	       idtable_bytes(&d->files) + idtable_bytes(&d->frames) + idtable_bytes(&d->stacks) +
	       idtable_bytes(&d->functions) + idtable_bytes(&d->relayed) +
	       d->numbers_cap * sizeof(*d->numbers) + d->text;
}

int definitions_add(struct definitions *d, struct idtable *t, uint64_t id, size_t text,
		    uint32_t *ret_slot)
{
	if (definitions_bytes(d) - idtable_bytes(t) + idtable_bytes_then(t) + text > d->bytes_max)
		return -ENOBUFS;
	int r = idtable_add(t, id, ret_slot);

	if (r == 0)
		d->text += text;
	return r;
}

static int push_numbers(struct definitions *d, const uint64_t *data, uint32_t count)
{
	if (count > d->numbers_max - d->numbers_len)
		return -ENOBUFS;
	if (d->numbers_len + count > d->numbers_cap) {
		size_t cap = d->numbers_cap ? d->numbers_cap : 4096;
		uint64_t *numbers;

		while (cap < d->numbers_len + count)
			cap += cap / 2;
		if (definitions_bytes(d) + (cap - d->numbers_cap) * sizeof(*numbers) > d->bytes_max)
			return -ENOBUFS;
		numbers = reallocarray(d->numbers, cap, sizeof(*numbers));
		if (!numbers)
			return -ENOMEM;
		d->numbers = numbers;
		d->numbers_cap = cap;
	}
	if (count)
		memcpy(d->numbers + d->numbers_len, data, count * sizeof(*data));
	d->numbers_len += count;
	return 0;
}

static uint32_t keep_comm(char into[static 16], struct str s)
{
	uint32_t len = s.len < 16 ? s.len : 16;

	if (len)
		memcpy(into, s.data, len);
	return len;
}

int definitions_process(struct definitions *d, const struct msg_process *m)
{
	struct definition_process *p = idtable_get(&d->processes, m->id);

	if (!p) {
		uint32_t slot;
		int r = definitions_add(d, &d->processes, m->id, 0, &slot);

		if (r)
			return not_kept(d, r);
		p = idtable_at(&d->processes, slot);
		p->threads = p->relayed = IDMAP_NONE;
	}
	p->def = *m;
	p->def.comm = (struct str){ .len = keep_comm(p->comm, m->comm) };
	p->sent = 0;
	return 0;
}

int definitions_thread(struct definitions *d, const struct msg_thread *m)
{
	struct definition_process *p = idtable_get(&d->processes, m->process);
	struct definition_thread *t;
	uint32_t slot;
	int r;

	if (!p)
		return 0; /* its samples will be counted as lost */
	char *title = m->title.len ? malloc(m->title.len) : NULL;

	if (m->title.len && !title)
		return not_kept(d, -ENOMEM);
	r = definitions_add(d, &d->threads, m->id, m->title.len, &slot);
	if (r) {
		free(title);
		return not_kept(d, r);
	}
	t = idtable_at(&d->threads, slot);
	t->def = *m;
	t->title = title;
	if (title)
		memcpy(title, m->title.data, m->title.len);
	t->def.title.data = title;
	t->def.comm = (struct str){ .len = keep_comm(t->comm, m->comm) };
	t->next = p->threads;
	t->previous = IDMAP_NONE;
	if (t->next != IDMAP_NONE)
		((struct definition_thread *)idtable_at(&d->threads, t->next))->previous = slot;
	p->threads = slot;
	return 0;
}

static char *put(char *at, const void *data, size_t len)
{
	if (len)
		memcpy(at, data, len);
	return at + len;
}

/* Gives the file this definition, with copies of its texts and lists. Returns 0, or -ENOBUFS or
 * -ENOMEM, with the file unchanged. */
static int fill_file(struct definitions *d, struct definition_file *f, const struct msg_file *m)
{
	const struct str path = m->path, go = m->go_build_id;
	const size_t segments = m->segments.len * sizeof(*m->segments.data),
		     len = segments + path.len + go.len + m->build_id.len + m->htlhash.len;
	if (definitions_bytes(d) - f->text_len + len > d->bytes_max)
		return -ENOBUFS;
	char *text = malloc(len + 1), *at = text;

	if (!text)
		return -ENOMEM;
	d->text += len;
	d->text -= f->text_len;
	free(f->text);
	f->text = text;
	f->text_len = len;
	f->def = *m;
	/* The list comes first, since it must be aligned. */
	f->def.segments.data = (const uint64_t *)(const void *)at;
	at = put(at, m->segments.data, segments);
	f->def.path.data = at;
	at = put(at, path.data, path.len);
	f->def.go_build_id.data = at;
	at = put(at, go.data, go.len);
	f->def.build_id.data = (uint8_t *)at;
	at = put(at, m->build_id.data, m->build_id.len);
	f->def.htlhash.data = (uint8_t *)at;
	put(at, m->htlhash.data, m->htlhash.len);
	return 0;
}

/* Decides which worker reads the file. If that changes, another worker must open it. */
static void set_class(struct definitions *d, struct definition_file *f)
{
	const bool of_root = f->def.flags & MSG_FILE_ROOT_ONLY;

	if (f->store.of_root == of_root)
		return;
	filestore_drop(d->store, &f->store);
	f->store.of_root = of_root;
	f->store.slow = f->store.tried = false;
}

int definitions_file(struct definitions *d, const struct msg_file *m)
{
	struct definition_file *f = definitions_find_file(d, m->id), **at;
	uint32_t slot;
	int r;

	if (f) {
		r = fill_file(d, f, m);
		if (r)
			return not_kept(d, r);
		f->sent = 0;
		set_class(d, f);
		return 0;
	}
	f = take_open(d, m);
	if (!f)
		f = calloc(1, sizeof(*f));
	if (!f)
		return -ENOMEM;
	r = fill_file(d, f, m);
	if (r == 0)
		r = definitions_add(d, &d->files, m->id, sizeof(*f), &slot);
	if (r) {
		d->text -= f->text_len;
		free_file(d, f);
		return not_kept(d, r);
	}
	f->store.file = m->id;
	f->store.owner = m->uid;
	set_class(d, f);
	at = idtable_at(&d->files, slot);
	*at = f;
	return 0;
}

void definitions_end_file(struct definitions *d, uint64_t id)
{
	struct definition_file **at = idtable_get(&d->files, id);

	if (!at)
		return;
	d->text -= (*at)->text_len + sizeof(**at);
	free_file(d, *at);
	*at = NULL;
	idtable_remove(&d->files, id);
}

int definitions_function(struct definitions *d, const struct msg_function *m)
{
	struct definition_function *f;
	uint32_t slot;
	char *text = malloc((size_t)m->name.len + m->system_name.len + m->source.len + 1),
	     *at = text;
	int r;

	if (!text)
		return not_kept(d, -ENOMEM);
	r = definitions_add(d, &d->functions, m->id,
			    (size_t)(m->name.len + m->system_name.len + m->source.len), &slot);
	if (r) {
		free(text);
		return not_kept(d, r);
	}
	f = idtable_at(&d->functions, slot);
	f->text = text;
	f->f = (struct function){ .name = m->name,
				  .system_name = m->system_name,
				  .source = m->source,
				  .start_line = m->start_line };
	for (struct str *s = &f->f.name; s <= &f->f.source; s++) {
		if (s->len)
			memcpy(at, s->data, s->len);
		s->data = at;
		at += s->len;
	}
	return 0;
}

int definitions_frame(struct definitions *d, const struct msg_frame *m,
		      struct definition_frame **ret)
{
	uint32_t slot, numbers = (uint32_t)d->numbers_len;
	uint32_t count = m->functions.len;
	struct definition_frame *f;
	int r;

	*ret = NULL;
	r = definitions_add(d, &d->frames, m->id, 0, &slot);
	if (r)
		return not_kept(d, r);
	r = push_numbers(d, m->functions.data, count);
	for (uint32_t i = 0; r == 0 && i < count; i++)
		r = push_numbers(d, i < m->lines.len ? &m->lines.data[i] : &(uint64_t){ 0 }, 1);
	const bool second = r == 0 && m->object2 &&
			    push_numbers(d, (const uint64_t[]){ m->object2, m->mark2 }, 2) == 0;

	if (r) {
		d->numbers_len = numbers;
		count = 0;
		r = not_kept(d, r);
	}
	if (r) {
		idtable_remove(&d->frames, m->id);
		return r;
	}
	f = idtable_at(&d->frames, slot);
	*f = (struct definition_frame){
		.offset = m->offset,
		.file = m->file,
		.process = m->process,
		.address = m->kind == MSG_FRAME_INTERPRETED ? m->mark : m->address,
		.runtime = (uint8_t)(m->runtime < RUNTIME_MAX ? m->runtime : 0),
		.numbers = numbers,
		.count = (uint16_t)count,
		.has_second = second,
		.kind = msg_frame_kind(m->kind),
		.flags = (uint8_t)m->flags
	};
	*ret = f;
	return 0;
}

int definitions_stack(struct definitions *d, const struct msg_stack *m,
		      struct definition_stack **ret)
{
	uint32_t slot, numbers = (uint32_t)d->numbers_len;
	int r = definitions_add(d, &d->stacks, m->id, 0, &slot);

	*ret = NULL;
	if (r)
		return not_kept(d, r);
	r = push_numbers(d, m->frames.data, m->frames.len);
	if (r) {
		idtable_remove(&d->stacks, m->id);
		return not_kept(d, r);
	}
	*ret = idtable_at(&d->stacks, slot);
	**ret = (struct definition_stack){ .reason = numbers_u32(m->reason),
					   .at_file = m->at_file,
					   .numbers = numbers,
					   .count = m->frames.len };
	return 0;
}

struct definition_process *definitions_find_process(const struct definitions *d, uint64_t id)
{
	return idtable_get(&d->processes, id);
}

struct definition_file *definitions_find_file(const struct definitions *d, uint64_t id)
{
	struct definition_file **f = idtable_get(&d->files, id);

	return f ? *f : NULL;
}

struct definition_frame *definitions_find_frame(const struct definitions *d, uint64_t id)
{
	return idtable_get(&d->frames, id);
}

static void drop_title(struct definitions *d, struct definition_thread *t)
{
	d->text -= t->title ? t->def.title.len : 0;
	free(t->title);
	t->title = NULL;
}

void definitions_end_thread(struct definitions *d, uint64_t id)
{
	struct definition_thread *t = idtable_get(&d->threads, id);
	struct definition_process *p = t ? definitions_find_process(d, t->def.process) : NULL;

	if (!p)
		return;
	if (t->next != IDMAP_NONE)
		((struct definition_thread *)idtable_at(&d->threads, t->next))->previous =
			t->previous;
	if (t->previous != IDMAP_NONE)
		((struct definition_thread *)idtable_at(&d->threads, t->previous))->next = t->next;
	else
		p->threads = t->next;
	drop_title(d, t);
	idtable_remove(&d->threads, id);
}

/* Forgets the attributes and mappings of a process (relayed.h). */
static void drop_relayed(struct definitions *d, struct definition_process *p)
{
	for (uint32_t slot = p->relayed; slot != IDMAP_NONE;) {
		struct definition_relayed *x = idtable_at(&d->relayed, slot);

		slot = x->next;
		d->text -= x->len;
		free(x->bytes);
		x->bytes = NULL;
		x->len = 0;
		idtable_remove(&d->relayed, x->key);
	}
	p->relayed = IDMAP_NONE;
}

uint32_t definitions_end_process(struct definitions *d, uint64_t id)
{
	struct definition_process *p = definitions_find_process(d, id);
	uint32_t ended = 0;

	if (!p)
		return 0;
	for (uint32_t slot = p->threads; slot != IDMAP_NONE;) {
		struct definition_thread *t = idtable_at(&d->threads, slot);

		slot = t->next;
		ended += t->ended;
		drop_title(d, t);
		idtable_remove(&d->threads, t->def.id);
	}
	drop_relayed(d, p);
	idtable_remove(&d->processes, id);
	return ended;
}
