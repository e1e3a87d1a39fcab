/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include "common/stream.h"
#include "tools/prof-symd/functions.h"
#include "tools/prof-symd/held.h"
#include "tools/prof-symd/idmap.h"
#include "tools/prof-symd/named.h"

/* `sent` in each definition is the epoch of ours in which it was sent last. */
struct process {
	struct msg_process def; /* comm: below */
	char comm[16];
	uint64_t sent;
	uint32_t threads; /* the first of its threads, IDMAP_NONE at the end */
};

struct thread {
	struct msg_thread def;
	char comm[16];
	uint64_t sent;
	uint32_t next; /* of the same process */
};

struct file {
	struct msg_file def; /* path and build id: owned, by text */
	char *text;
	uint64_t sent;
	struct filestore_file store;
	struct runtime_build *build; /* owned; NULL: it holds no runtime, or is not known */
	bool described, untold;
};

struct frame {
	uint64_t offset, file, process;
	union {
		uint64_t address;
		uint64_t mark; /* FRAME_INTERPRETED */
	};
	uint64_t sent;
	uint32_t numbers; /* its functions, then as many lines, when it came with names */
	uint16_t count;
	uint8_t kind, flags;
	uint8_t runtime;
	bool hidden; /* in stacks that are sent it is left out */
};

struct stack {
	uint64_t reason, at_file, sent;
	uint32_t numbers, count;
};

struct raw_function {
	struct function f; /* strings: owned, by text */
	char *text;
};

enum event_kind {
	EVENT_SAMPLE,
	EVENT_LOST,
	EVENT_CLOCK,
	EVENT_FIGURE,
	EVENT_PROCESS_END,
	EVENT_END
};

struct event {
	enum event_kind kind;
	union {
		struct msg_sample sample;
		struct msg_lost lost;
		struct msg_clock clock;
		struct {
			uint64_t value;
			uint32_t len;
			char name[64];
		} figure;
		struct msg_process_end process_end;
		struct msg_end end;
	};
};

/* Things of one kind, by id; slots of removed ones are used again. */
struct table {
	struct idmap ids;
	void *data;
	size_t size; /* of one */
	uint32_t len, cap;
	uint32_t *free_slots;
	uint32_t free_count, free_cap;
};

#define STACK_FRAMES 4096 /* of one stack, as messages.def has it */

struct named {
	struct named_limits limits;
	struct filestore *files;
	struct jit *jit;	 /* NULL: generated code has no names */
	struct objects *objects; /* NULL: interpreted frames have no names */
	int (*tell)(void *ctx, uint64_t file, const struct runtime_build *b);
	void *tell_ctx;
	unsigned untold; /* files whose runtime is to be told yet */
	struct held held;
	uint64_t held_version, held_ns; /* when those held were last looked at: jit->version */
	uint64_t sample_ns;		/* of the sample being sent */
	uint64_t lacking;		/* HOLD: the process whose code has no name */
	bool give_up;			/* send without names that are not known */
	struct stream_out *out;
	struct table processes, threads, file_defs, frames, stacks, raw_functions;
	uint64_t *numbers;
	size_t numbers_len, numbers_cap;
	struct functions functions;
	struct event *queue; /* a ring */
	size_t queue_first, queue_len;
	uint64_t epoch;
	uint64_t lost[3]; /* not yet told: by why_lost */
	bool limit_hit, gap_seen, ended;
	struct named_counts counts;
	struct names names;
	uint64_t list[2 * NAMES_MAX];
	uint64_t shown[STACK_FRAMES]; /* of a stack: those not hidden */
};

#define HELD_LOOK_NS 1000000000ull /* between two looks at those held, when nothing is new */
#define HELD_EACH_NS 100000ull	   /* and in any case for each, which costs a twentieth of that */

static const uint64_t why_lost[3] = { LOST_LIMIT, LOST_SEQUENCE, LOST_MALFORMED };

/* Inside: an id that nothing defines. */
#define UNDEFINED 2
/* Inside: a frame of generated code has no name yet, in the process n->lacking. */
#define HOLD 4
/* Inside: an interpreted frame that is none of the program's. */
#define HIDDEN 5
/* Inside: the functions' ceiling was reached, and a new epoch begun. */
#define RESTARTED 3

/* --- tables --- */

static int table_init(struct table *t, size_t size, size_t max)
{
	*t = (struct table){ .size = size };
	return idmap_init(&t->ids, max);
}

static void table_clear(struct table *t)
{
	idmap_clear(&t->ids);
	free(t->data);
	free(t->free_slots);
	t->data = NULL;
	t->free_slots = NULL;
	t->len = t->cap = t->free_count = t->free_cap = 0;
}

static void *table_at(const struct table *t, uint32_t slot)
{
	return (char *)t->data + slot * t->size;
}

static void *table_get(const struct table *t, uint64_t id)
{
	uint32_t slot = idmap_get(&t->ids, id);

	return slot == IDMAP_NONE ? NULL : table_at(t, slot);
}

/* A zeroed place for id. 0, -EEXIST, -EINVAL for id 0, -ENOBUFS, -ENOMEM. Pointers into the table
 * are void afterwards. */
static int table_add(struct table *t, uint64_t id, uint32_t *ret_slot)
{
	uint32_t slot;
	int r;

	if (idmap_get(&t->ids, id) != IDMAP_NONE)
		return -EEXIST;
	if (t->free_count > 0) {
		slot = t->free_slots[t->free_count - 1];
	} else {
		if (t->len == t->cap) {
			uint32_t cap = t->cap ? t->cap + t->cap / 2 : 16;
			void *data = reallocarray(t->data, cap, t->size);

			if (!data)
				return -ENOMEM;
			t->data = data;
			t->cap = cap;
		}
		slot = t->len;
	}
	r = idmap_put(&t->ids, id, slot);
	if (r)
		return r;
	if (t->free_count > 0)
		t->free_count--;
	else
		t->len++;
	memset(table_at(t, slot), 0, t->size);
	*ret_slot = slot;
	return 0;
}

static void table_remove(struct table *t, uint64_t id)
{
	uint32_t slot = idmap_get(&t->ids, id);

	if (slot == IDMAP_NONE)
		return;
	if (t->free_count == t->free_cap) {
		uint32_t cap = t->free_cap ? t->free_cap * 2 : 16;
		uint32_t *slots = reallocarray(t->free_slots, cap, sizeof(*slots));

		if (slots) {
			t->free_slots = slots;
			t->free_cap = cap;
		}
	}
	idmap_remove(&t->ids, id);
	if (t->free_count < t->free_cap)
		t->free_slots[t->free_count++] = slot; /* else this place is not used again */
}

static void clear_definitions(struct named *n)
{
	for (uint32_t i = 0; i < n->file_defs.len; i++) {
		struct file **f = table_at(&n->file_defs, i);

		if (!*f)
			continue;
		filestore_drop(n->files, &(*f)->store);
		free((*f)->build);
		free((*f)->text);
		free(*f);
	}
	for (uint32_t i = 0; i < n->raw_functions.len; i++)
		free(((struct raw_function *)table_at(&n->raw_functions, i))->text);
	table_clear(&n->processes);
	table_clear(&n->threads);
	table_clear(&n->file_defs);
	table_clear(&n->frames);
	table_clear(&n->stacks);
	table_clear(&n->raw_functions);
	free(n->numbers);
	n->numbers = NULL;
	n->numbers_len = n->numbers_cap = 0;
	n->limit_hit = n->gap_seen = false;
	n->untold = 0;
}

int named_new(const struct named_limits *limits, struct filestore *files, struct stream_out *out,
	      struct named **ret)
{
	struct named *n = calloc(1, sizeof(*n));
	int r;

	if (!n)
		return -ENOMEM;
	n->limits = *limits;
	n->files = files;
	n->out = out;
	n->epoch = out->epoch;
	n->counts.epochs = 1;
	n->queue = calloc(limits->queue, sizeof(*n->queue));
	r = n->queue ? 0 : -ENOMEM;
	if (r == 0)
		r = table_init(&n->processes, sizeof(struct process), limits->processes);
	if (r == 0)
		r = table_init(&n->threads, sizeof(struct thread), limits->threads);
	if (r == 0)
		r = table_init(&n->file_defs, sizeof(struct file *), limits->files);
	if (r == 0)
		r = table_init(&n->frames, sizeof(struct frame), limits->frames);
	if (r == 0)
		r = table_init(&n->stacks, sizeof(struct stack), limits->stacks);
	if (r == 0)
		r = table_init(&n->raw_functions, sizeof(struct raw_function),
			       limits->raw_functions);
	if (r == 0)
		r = functions_init(&n->functions, limits->functions, limits->text);
	if (r) {
		named_free(n);
		return r;
	}
	*ret = n;
	return 0;
}

void named_free(struct named *n)
{
	if (!n)
		return;
	clear_definitions(n);
	held_done(&n->held);
	functions_done(&n->functions);
	free(n->queue);
	free(n);
}

void named_use_jit(struct named *n, struct jit *j)
{
	n->jit = j;
}

/* --- runtimes --- */

/* The build that an interpreted frame is of: in the file that it names. */
static const struct runtime_build *build_of(const struct named *n, const struct frame *f)
{
	struct file **at = f->file ? table_get(&n->file_defs, f->file) : NULL;
	const struct runtime_build *b = at ? (*at)->build : NULL;

	return b && b->known && b->config.runtime == f->runtime ? b : NULL;
}

/* Asks ahead for what a frame will be called. */
static void want_object(struct named *n, const struct frame *f, uint64_t now_ns)
{
	const struct runtime_build *b = build_of(n, f);
	const struct process *p = table_get(&n->processes, f->process);

	if (b && p && f->sent != n->epoch)
		objects_want(n->objects, b, f->process, (uint32_t)p->def.pid, f->offset, f->mark,
			     now_ns);
}

static void tell_runtime(struct named *n, struct file *f)
{
	int r = n->tell(n->tell_ctx, f->def.id, f->build);
	bool untold = r == -EAGAIN;

	n->untold += (unsigned)untold - (unsigned)f->untold;
	f->untold = untold;
}

/* What frames that came before their file was looked at will be called. */
static void want_waiting(struct named *n, uint64_t file)
{
	for (uint32_t i = 0; i < n->frames.len; i++) {
		const struct frame *f = table_at(&n->frames, i);

		if (f->kind == FRAME_INTERPRETED && f->file == file)
			want_object(n, f, n->files->now_ns);
	}
}

/* A file of the stream was opened: the first time in an epoch it is looked at. */
static void file_opened(void *ctx, struct filestore_file *store, const struct program *p)
{
	struct file *f = (struct file *)((char *)store - offsetof(struct file, store));
	struct named *n = ctx;
	struct runtime_build *b;

	if (f->described)
		return;
	b = malloc(sizeof(*b));
	if (!b)
		return;
	f->described = true;
	if (runtime_describe(program_file(p), b) != 0 ||
	    runtime_find_mark(program_file(p), b) != 0) {
		free(b);
		return;
	}
	f->build = b;
	tell_runtime(n, f);
	want_waiting(n, f->def.id);
}

static void tell_untold(struct named *n)
{
	for (uint32_t i = 0; i < n->file_defs.len && n->untold; i++) {
		struct file **f = table_at(&n->file_defs, i);

		if (*f && (*f)->untold)
			tell_runtime(n, *f);
	}
}

void named_use_objects(struct named *n, struct objects *o,
		       int (*tell)(void *, uint64_t, const struct runtime_build *), void *ctx)
{
	n->objects = o;
	n->tell = tell;
	n->tell_ctx = ctx;
	n->files->opened_hook = file_opened;
	n->files->hook_ctx = n;
}

/* The same for the frames of a stack. */
static void want_objects(struct named *n, const struct stack *s, uint64_t now_ns)
{
	for (uint32_t i = 0; i < s->count; i++) {
		const struct frame *f = table_get(&n->frames, n->numbers[s->numbers + i]);

		if (f && f->kind == FRAME_INTERPRETED)
			want_object(n, f, now_ns);
	}
}

struct named_counts named_counts(const struct named *n)
{
	return n->counts;
}

bool named_ended(const struct named *n)
{
	return n->ended;
}

bool named_file(const struct named *n, uint64_t file, struct msg_file *ret)
{
	struct file **f = table_get(&n->file_defs, file);

	if (!f)
		return false;
	*ret = (*f)->def;
	return true;
}

bool named_process(const struct named *n, uint64_t process, struct msg_process *ret)
{
	const struct process *p = table_get(&n->processes, process);

	if (!p)
		return false;
	*ret = p->def;
	return true;
}

/* --- a new epoch --- */

static int restart(struct named *n)
{
	int r = stream_flush(n->out);

	if (r)
		return r;
	stream_out_epoch(n->out, ++n->epoch);
	functions_clear(&n->functions);
	n->counts.epochs++;
	return 0;
}

void named_missing(struct named *n, uint64_t count)
{
	if (!count)
		return;
	n->gap_seen = true;
	n->lost[1] += count;
	n->counts.lost += count;
}

static int tell_lost(struct named *n)
{
	for (int i = 0; i < 3; i++) {
		int r;

		if (!n->lost[i])
			continue;
		r = stream_put(n->out, &(struct msg){ .id = MSG_LOST,
						      .lost = { .reason = why_lost[i],
								.count = n->lost[i],
								.cpu = LOST_ANY_CPU } });
		if (r)
			return r;
		n->lost[i] = 0;
	}
	return 0;
}

/* A sample whose definitions are not there. */
static void lose_sample(struct named *n)
{
	n->lost[n->limit_hit ? 0 : n->gap_seen ? 1 : 2]++;
	n->counts.lost++;
}

/* --- taking: definitions --- */

/* What table_add says, as taking sees it: what does not fit is not kept, what is defined twice
 * stands as it was, id 0 names nothing. */
static int not_kept(struct named *n, int r)
{
	if (r == -ENOBUFS)
		n->limit_hit = true;
	return r == -ENOMEM ? r : 0;
}

static int push_numbers(struct named *n, const uint64_t *data, uint32_t count)
{
	if (count > n->limits.numbers - n->numbers_len)
		return -ENOBUFS;
	if (n->numbers_len + count > n->numbers_cap) {
		size_t cap = n->numbers_cap ? n->numbers_cap : 4096;
		uint64_t *numbers;

		while (cap < n->numbers_len + count)
			cap += cap / 2;
		numbers = reallocarray(n->numbers, cap, sizeof(*numbers));
		if (!numbers)
			return -ENOMEM;
		n->numbers = numbers;
		n->numbers_cap = cap;
	}
	if (count)
		memcpy(n->numbers + n->numbers_len, data, count * sizeof(*data));
	n->numbers_len += count;
	return 0;
}

static uint32_t keep_comm(char into[static 16], struct str s)
{
	uint32_t len = s.len < 16 ? s.len : 16;

	if (len)
		memcpy(into, s.data, len);
	return len;
}

static int take_process(struct named *n, const struct msg_process *m)
{
	struct process *p;
	uint32_t slot;
	int r = table_add(&n->processes, m->id, &slot);

	if (r)
		return not_kept(n, r);
	p = table_at(&n->processes, slot);
	p->def = *m;
	p->def.comm = (struct str){ .len = keep_comm(p->comm, m->comm) };
	p->threads = IDMAP_NONE;
	return 0;
}

static int take_thread(struct named *n, const struct msg_thread *m)
{
	struct process *p = table_get(&n->processes, m->process);
	struct thread *t;
	uint32_t slot;
	int r;

	if (!p)
		return 0; /* its samples are counted */
	r = table_add(&n->threads, m->id, &slot);
	if (r)
		return not_kept(n, r);
	t = table_at(&n->threads, slot);
	t->def = *m;
	t->def.comm = (struct str){ .len = keep_comm(t->comm, m->comm) };
	t->next = p->threads;
	p->threads = slot;
	return 0;
}

static int take_file(struct named *n, const struct msg_file *m)
{
	struct file *f = calloc(1, sizeof(*f)), **at;
	uint32_t slot;
	int r;

	if (!f)
		return -ENOMEM;
	f->text = malloc(m->path.len + m->build_id.len + 1);
	if (!f->text) {
		free(f);
		return -ENOMEM;
	}
	r = table_add(&n->file_defs, m->id, &slot);
	if (r) {
		free(f->text);
		free(f);
		return not_kept(n, r);
	}
	f->def = *m;
	if (m->path.len)
		memcpy(f->text, m->path.data, m->path.len);
	if (m->build_id.len)
		memcpy(f->text + m->path.len, m->build_id.data, m->build_id.len);
	f->def.path.data = f->text;
	f->def.build_id.data = (uint8_t *)f->text + m->path.len;
	f->store.file = m->id;
	at = table_at(&n->file_defs, slot);
	*at = f;
	return 0;
}

static int take_function(struct named *n, const struct msg_function *m)
{
	struct raw_function *f;
	uint32_t slot;
	char *text = malloc((size_t)m->name.len + m->system_name.len + m->source.len + 1),
	     *at = text;
	int r;

	if (!text)
		return -ENOMEM;
	r = table_add(&n->raw_functions, m->id, &slot);
	if (r) {
		free(text);
		return not_kept(n, r);
	}
	f = table_at(&n->raw_functions, slot);
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

static int take_frame(struct named *n, const struct msg_frame *m, uint64_t now_ns)
{
	struct file **file = table_get(&n->file_defs, m->file);
	uint32_t slot, numbers = (uint32_t)n->numbers_len;
	uint32_t count = m->functions.len;
	struct frame *f;
	int r;

	r = table_add(&n->frames, m->id, &slot);
	if (r)
		return not_kept(n, r);
	r = push_numbers(n, m->functions.data, count);
	for (uint32_t i = 0; r == 0 && i < count; i++)
		r = push_numbers(n, i < m->lines.len ? &m->lines.data[i] : &(uint64_t){ 0 }, 1);
	if (r) {
		n->numbers_len = numbers;
		count = 0;
		r = not_kept(n, r);
	}
	f = table_at(&n->frames, slot);
	*f = (struct frame){ .offset = m->offset,
			     .file = m->file,
			     .process = m->process,
			     .address = m->kind == FRAME_INTERPRETED ? m->mark : m->address,
			     .runtime = (uint8_t)(m->runtime < RUNTIME_COUNT ? m->runtime : 0),
			     .numbers = numbers,
			     .count = (uint16_t)count,
			     .kind = (uint8_t)m->kind,
			     .flags = (uint8_t)m->flags };
	if (r == 0 && file && count == 0 &&
	    (m->kind == FRAME_NATIVE || (m->kind == FRAME_INTERPRETED && n->objects)))
		filestore_want(n->files, &(*file)->store, now_ns);
	if (r == 0 && n->jit && !m->file && m->kind == FRAME_NATIVE && count == 0) {
		const struct process *p = table_get(&n->processes, m->process);

		if (p)
			jit_want(n->jit, m->process, (uint32_t)p->def.pid, now_ns);
	}
	return r;
}

static int take_stack(struct named *n, const struct msg_stack *m, uint64_t now_ns)
{
	struct stack *s;
	uint32_t slot, numbers = (uint32_t)n->numbers_len;
	int r = table_add(&n->stacks, m->id, &slot);

	if (r)
		return not_kept(n, r);
	r = push_numbers(n, m->frames.data, m->frames.len);
	if (r) {
		table_remove(&n->stacks, m->id);
		return not_kept(n, r);
	}
	s = table_at(&n->stacks, slot);
	*s = (struct stack){ .reason = m->reason,
			     .at_file = m->at_file,
			     .numbers = numbers,
			     .count = m->frames.len };
	if (n->objects)
		want_objects(n, s, now_ns);
	return 0;
}

/* --- sending definitions ---
 *
 * Each returns 0 when the thing is sent in this epoch, NAMED_WAIT, UNDEFINED, RESTARTED, HOLD or an
 * error. Pointers into tables stay good: nothing is added meanwhile.
 */

static int send_file(struct named *n, uint64_t id, uint64_t now_ns, struct program **ret_program)
{
	struct file **at = table_get(&n->file_defs, id), *f;
	struct msg m = { .id = MSG_FILE };
	struct program *program = NULL;
	int r;

	if (ret_program)
		*ret_program = NULL;
	if (!at)
		return UNDEFINED;
	f = *at;
	if (f->sent == n->epoch && !ret_program)
		return 0;
	r = filestore_get(n->files, &f->store, now_ns, &program);
	if (r)
		return r == FILESTORE_WAIT ? NAMED_WAIT : r;
	if (ret_program)
		*ret_program = program;
	if (f->sent == n->epoch)
		return 0;
	m.file = f->def;
	if (program && program_build_id(program).len > 0)
		m.file.build_id = program_build_id(program);
	r = stream_put(n->out, &m);
	if (r == 0)
		f->sent = n->epoch;
	return r;
}

static int send_process(struct named *n, uint64_t id, uint64_t now_ns, bool wait)
{
	struct process *p = table_get(&n->processes, id);
	struct msg m = { .id = MSG_PROCESS };
	int r;

	if (!p)
		return UNDEFINED;
	if (p->sent == n->epoch)
		return 0;
	m.process = p->def;
	m.process.comm.data = p->comm;
	if (p->def.exe) {
		struct file **f = table_get(&n->file_defs, p->def.exe);

		if (f && (wait || (*f)->sent == n->epoch)) {
			r = send_file(n, p->def.exe, now_ns, NULL);
			if (r)
				return r;
		} else {
			m.process.exe = 0;
		}
	}
	r = stream_put(n->out, &m);
	if (r == 0)
		p->sent = n->epoch;
	return r;
}

static int send_thread(struct named *n, uint64_t id, uint64_t now_ns)
{
	struct thread *t = table_get(&n->threads, id);
	struct msg m = { .id = MSG_THREAD };
	int r;

	if (!t)
		return UNDEFINED;
	if (t->sent == n->epoch)
		return 0;
	r = send_process(n, t->def.process, now_ns, true);
	if (r)
		return r;
	m.thread = t->def;
	m.thread.comm.data = t->comm;
	r = stream_put(n->out, &m);
	if (r == 0)
		t->sent = n->epoch;
	return r;
}

/* The id of a function, sent if it is new. */
static int send_function(struct named *n, const struct function *f, uint64_t *ret_id)
{
	bool fresh;
	int r = functions_intern(&n->functions, f, ret_id, &fresh);

	if (r == -ENOBUFS) {
		r = restart(n);
		return r ? r : RESTARTED;
	}
	if (r || !fresh)
		return r;
	return stream_put(n->out, &(struct msg){ .id = MSG_FUNCTION,
						 .function = { .id = *ret_id,
							       .name = f->name,
							       .system_name = f->system_name,
							       .source = f->source,
							       .start_line = f->start_line } });
}

/* Adds what n->names has to a frame: n->list. */
static int add_names(struct named *n, struct msg_frame *m)
{
	uint32_t count = 0;

	for (unsigned i = 0; i < n->names.count; i++) {
		const struct call *c = &n->names.calls[i];
		struct function fn = { .name = c->name,
				       .system_name = c->system_name,
				       .source = c->source,
				       .start_line = c->start_line };
		int r;

		if (c->name.len == 0)
			continue;
		r = send_function(n, &fn, &n->list[count]);
		if (r)
			return r;
		n->list[NAMES_MAX + count++] = c->line;
	}
	m->functions = (struct u64s){ .data = n->list, .len = count };
	m->lines = (struct u64s){ .data = n->list + NAMES_MAX, .len = count };
	return 0;
}

/* Fills functions and lines of a frame that came without. */
static int name_frame(struct named *n, const struct frame *f, struct msg_frame *m, uint64_t now_ns)
{
	bool exact = f->flags & (FRAME_LEAF | FRAME_SIGNAL);
	struct program *program;
	struct file **file;
	uint64_t address, back = exact || f->offset == 0 ? 0 : 1;
	int r;

	r = send_file(n, f->file, now_ns, &program);
	if (r || !program)
		return r;
	if (program_address(program, f->offset - back, &address) != 0)
		return 0;
	m->address = address + back;
	r = program_lookup(program, address, &n->names);
	file = table_get(&n->file_defs, f->file);
	if (file)
		filestore_charge(n->files, &(*file)->store);
	if (r)
		return r < 0 ? r : 0;
	return add_names(n, m);
}

/* The same for code in no file, of f->process. HOLD: nothing names it yet. */
static int name_generated(struct named *n, const struct frame *f, struct msg_frame *m,
			  uint64_t now_ns)
{
	bool exact = f->flags & (FRAME_LEAF | FRAME_SIGNAL);
	const struct process *p = table_get(&n->processes, f->process);
	int r;

	if (!n->jit || !p)
		return 0;
	r = jit_lookup(n->jit, f->process, (uint32_t)p->def.pid, f->offset - (exact ? 0 : 1),
		       n->sample_ns, now_ns, &n->names);
	if (r == 0)
		return add_names(n, m);
	if (r < 0)
		return r;
	n->lacking = f->process;
	return n->give_up ? 0 : HOLD;
}

/* The functions that a frame came with, by our ids. */
static int pass_names(struct named *n, const struct frame *f, struct msg_frame *m)
{
	uint32_t count = f->count < NAMES_MAX ? f->count : NAMES_MAX;

	for (uint32_t i = 0; i < count; i++) {
		const struct raw_function *raw = table_get(&n->raw_functions,
							   n->numbers[f->numbers + i]);
		int r;

		if (!raw)
			return UNDEFINED;
		r = send_function(n, &raw->f, &n->list[i]);
		if (r)
			return r;
		n->list[NAMES_MAX + i] = n->numbers[f->numbers + f->count + i];
	}
	m->functions = (struct u64s){ .data = n->list, .len = count };
	m->lines = (struct u64s){ .data = n->list + NAMES_MAX, .len = count };
	return 0;
}

/* The same for an interpreted frame. NAMED_WAIT, HIDDEN. */
static int name_interpreted(struct named *n, const struct frame *f, struct msg_frame *m,
			    uint64_t now_ns)
{
	const struct process *p = table_get(&n->processes, f->process);
	int r = f->file ? send_file(n, f->file, now_ns, NULL) : 0;

	if (r)
		return r;
	const struct runtime_build *b = build_of(n, f);
	if (!b || !p || !n->objects)
		return 0;
	r = objects_lookup(n->objects, b, f->process, (uint32_t)p->def.pid, f->offset, f->mark,
			   n->give_up, now_ns, &n->names);
	if (r == OBJECTS_LATER)
		return NAMED_WAIT;
	if (r == OBJECTS_HIDDEN)
		return HIDDEN;
	return r == 0 ? add_names(n, m) : r;
}

/* strange: the frame's address lies in nothing that is mapped. */
static int send_frame(struct named *n, uint64_t id, bool strange, uint64_t now_ns)
{
	struct frame *f = table_get(&n->frames, id);
	struct msg m = { .id = MSG_FRAME };
	int r = 0;

	if (!f)
		return UNDEFINED;
	if (f->sent == n->epoch)
		return 0;
	m.frame = (struct msg_frame){ .id = id,
				      .kind = f->kind,
				      .file = f->file,
				      .offset = f->offset,
				      .process = f->process,
				      .flags = f->flags };
	if (f->kind == FRAME_INTERPRETED) {
		m.frame.runtime = f->runtime;
		m.frame.mark = f->mark;
	} else {
		m.frame.address = f->address;
	}
	if (f->process)
		r = send_process(n, f->process, now_ns, true);
	if (r == 0 && f->count > 0)
		r = pass_names(n, f, &m.frame);
	else if (r == 0 && f->kind == FRAME_INTERPRETED)
		r = name_interpreted(n, f, &m.frame, now_ns);
	else if (r == 0 && f->file)
		r = name_frame(n, f, &m.frame, now_ns);
	else if (r == 0 && f->process && f->kind == FRAME_NATIVE && !strange)
		r = name_generated(n, f, &m.frame, now_ns);
	if (r == HIDDEN) {
		f->hidden = true;
		f->sent = n->epoch;
		return 0;
	}
	if (r == 0 && f->count > 0 && f->file)
		r = send_file(n, f->file, now_ns, NULL);
	if (r)
		return r;
	r = stream_put(n->out, &m);
	if (r == 0) {
		f->sent = n->epoch;
		n->counts.frames++;
		n->counts.named_frames += m.frame.functions.len > 0;
	}
	return r;
}

static int send_stack(struct named *n, uint64_t id, uint64_t now_ns)
{
	struct stack *s = table_get(&n->stacks, id);
	struct msg m = { .id = MSG_STACK };
	uint32_t shown = 0;
	int r;

	if (!s)
		return UNDEFINED;
	if (s->sent == n->epoch)
		return 0;
	for (uint32_t i = 0; i < s->count; i++) {
		bool strange = s->reason == WALK_NO_MAPPING && i + 1 == s->count;
		uint64_t frame = n->numbers[s->numbers + i];

		r = send_frame(n, frame, strange, now_ns);
		if (r)
			return r;
		const struct frame *f = table_get(&n->frames, frame);

		if (f && !f->hidden && shown < STACK_FRAMES)
			n->shown[shown++] = frame;
	}
	m.stack = (struct msg_stack){ .id = id,
				      .frames = { .data = n->shown, .len = shown },
				      .reason = s->reason };
	if (s->at_file) {
		r = send_file(n, s->at_file, now_ns, NULL);
		if (r != 0 && r != UNDEFINED)
			return r;
		m.stack.at_file = r == 0 ? s->at_file : 0;
	}
	r = stream_put(n->out, &m);
	if (r == 0)
		s->sent = n->epoch;
	return r;
}

/* --- the queue --- */

/* HOLD: nothing of it was sent but definitions. */
static int send_sample(struct named *n, const struct msg_sample *sample, uint64_t now_ns)
{
	int r = 0;

	n->sample_ns = sample->time_ns;
	/* A new epoch begins at most once for one sample: what one stack needs fits into an empty
	 * table, or the sample is given up. */
	for (int attempt = 0; attempt < 2; attempt++) {
		r = sample->stack ? send_stack(n, sample->stack, now_ns) : 0;
		if (r == 0 && sample->thread)
			r = send_thread(n, sample->thread, now_ns);
		if (r != RESTARTED)
			break;
	}
	if (r == UNDEFINED || r == RESTARTED) {
		n->limit_hit |= r == RESTARTED;
		lose_sample(n);
		return 0;
	}
	if (r)
		return r;
	r = stream_put(n->out, &(struct msg){ .id = MSG_SAMPLE, .sample = *sample });
	n->counts.samples += r == 0;
	return r;
}

/* --- samples that are held back --- */

static int send_or_hold(struct named *n, const struct msg_sample *sample, uint64_t now_ns)
{
	int r = send_sample(n, sample, now_ns);

	if (r != HOLD)
		return r;
	r = held_add(&n->held, &(struct held_sample){ .sample = *sample,
						      .process = n->lacking,
						      .version = jit_version(n->jit, n->lacking),
						      .since_ns = now_ns });
	if (r != -ENOBUFS)
		return r;
	n->give_up = true;
	r = send_sample(n, sample, now_ns);
	n->give_up = false;
	return r;
}

/* Sends those held whose names may be known now, and those held too long. process: these, named or
 * not; 0: none; ALL: all. 0, NAMED_WAIT when some of those must wait for a file, errors. */
#define ALL UINT64_MAX
static int run_held(struct named *n, uint64_t process, uint64_t now_ns)
{
	int r = 0, ret = 0;

	for (size_t i = 0; i < n->held.len && r >= 0; i++) {
		struct held_sample *h = &n->held.at[i];
		bool must = process == ALL || process == h->process ||
			    now_ns - h->since_ns >= HELD_NS;

		if (!must && (process || jit_version(n->jit, h->process) == h->version))
			continue;
		n->give_up = must;
		r = send_sample(n, &h->sample, now_ns);
		n->give_up = false;
		if (r == 0)
			h->process = 0;
		else if (r == HOLD)
			h->version = jit_version(n->jit, n->lacking);
		else if (r == NAMED_WAIT && must && process)
			ret = NAMED_WAIT;
	}
	held_sweep(&n->held);
	return r < 0 ? r : ret;
}

/* The last chance for names of a process, or of all, before its samples go. */
static int settle_held(struct named *n, uint64_t process, uint64_t now_ns)
{
	bool waits = false;

	for (size_t i = 0; i < n->held.len; i++) {
		uint64_t of = n->held.at[i].process;
		int r;

		if (process != ALL && of != process)
			continue;
		r = jit_settle(n->jit, of, now_ns);
		if (r < 0)
			return r;
		waits |= r == JIT_LATER;
		if (process != ALL)
			break;
	}
	return waits ? NAMED_WAIT : run_held(n, process, now_ns);
}

static int end_process(struct named *n, const struct msg_process_end *m, uint64_t now_ns)
{
	struct process *p = table_get(&n->processes, m->id);
	uint32_t slot;
	int r;

	if (!p)
		return 0;
	if (n->jit && jit_knows(n->jit, m->id)) {
		r = settle_held(n, m->id, now_ns);
		if (r)
			return r;
		jit_drop(n->jit, m->id);
	}
	/* One that no sample was of is passed on all the same, with its file only if that is known
	 * to the receiver: nothing is opened for it. */
	r = send_process(n, m->id, now_ns, false);
	if (r)
		return r;
	r = stream_put(n->out, &(struct msg){ .id = MSG_PROCESS_END, .process_end = *m });
	if (r)
		return r;
	for (slot = p->threads; slot != IDMAP_NONE;) {
		struct thread *t = table_at(&n->threads, slot);

		slot = t->next;
		table_remove(&n->threads, t->def.id);
	}
	table_remove(&n->processes, m->id);
	if (n->objects)
		objects_drop(n->objects, m->id);
	return 0;
}

/* Those that live and that no sample was of. */
static int send_idle_processes(struct named *n, uint64_t now_ns)
{
	for (uint32_t i = 0; i < n->processes.len; i++) {
		struct process *p = table_at(&n->processes, i);

		if (idmap_get(&n->processes.ids, p->def.id) == i) {
			int r = send_process(n, p->def.id, now_ns, false);

			if (r)
				return r;
		}
	}
	return 0;
}

/* What naming interpreted frames took. */
static int send_figures(struct named *n)
{
	struct objects_counts c = objects_counts(n->objects);
	const struct {
		const char *name;
		uint64_t value;
	} figures[] = {
		{ "objects_named", c.named },	    { "objects_gone", c.gone },
		{ "objects_refused", c.refused },   { "objects_evicted", c.evicted },
		{ "objects_requests", c.requests }, { "objects_pieces", c.pieces },
		{ "objects_bytes", c.bytes },	    { "objects_rounds", c.rounds },
		{ "objects_answers", c.answers },   { "objects_waited_ns", c.waited_ns },
		{ "objects_least_ns", c.least_ns },
	};
	int r = 0;

	for (size_t i = 0; r == 0 && c.requests && i < sizeof(figures) / sizeof(figures[0]); i++)
		r = stream_put(n->out, &(struct msg){ .id = MSG_FIGURE,
						      .figure = { .name = str_from(figures[i].name),
								  .value = figures[i].value } });
	return r;
}

static int run_event(struct named *n, const struct event *e, uint64_t now_ns)
{
	int r;

	switch (e->kind) {
	case EVENT_SAMPLE:
		return send_or_hold(n, &e->sample, now_ns);
	case EVENT_LOST:
		return stream_put(n->out, &(struct msg){ .id = MSG_LOST, .lost = e->lost });
	case EVENT_CLOCK:
		return stream_put(n->out, &(struct msg){ .id = MSG_CLOCK, .clock = e->clock });
	case EVENT_FIGURE:
		return stream_put(n->out,
				  &(struct msg){ .id = MSG_FIGURE,
						 .figure = { .name = { .data = e->figure.name,
								       .len = e->figure.len },
							     .value = e->figure.value } });
	case EVENT_PROCESS_END:
		return end_process(n, &e->process_end, now_ns);
	case EVENT_END:
		r = settle_held(n, ALL, now_ns);
		if (r == 0)
			r = send_idle_processes(n, now_ns);
		if (r == 0)
			r = tell_lost(n);
		if (r == 0 && n->objects)
			r = send_figures(n);
		if (r == 0)
			r = stream_put(
				n->out, &(struct msg) {
					.id = MSG_END
					, .end = e->end
				});
		n->ended = r == 0;
		return r;
	}
	return 0;
}

bool named_full(const struct named *n)
{
	return n->queue_len == n->limits.queue;
}

static int push_event(struct named *n, const struct event *e)
{
	if (named_full(n)) {
		lose_sample(n); /* whoever feeds us runs us first */
		return 0;
	}
	n->queue[(n->queue_first + n->queue_len++) % n->limits.queue] = *e;
	return 0;
}

int named_take(struct named *n, const struct msg *m, uint64_t now_ns)
{
	struct event e;
	struct msg hello;

	switch (m->id) {
	case MSG_HELLO:
		hello = *m;
		hello.hello.kind = STREAM_NAMED;
		return stream_put(n->out, &hello);
	case MSG_PROCESS:
		return take_process(n, &m->process);
	case MSG_THREAD:
		return take_thread(n, &m->thread);
	case MSG_FILE:
		return take_file(n, &m->file);
	case MSG_FUNCTION:
		return take_function(n, &m->function);
	case MSG_FRAME:
		return take_frame(n, &m->frame, now_ns);
	case MSG_STACK:
		return take_stack(n, &m->stack, now_ns);
	case MSG_OBJECT:
		return n->objects ? objects_take(n->objects, &m->object) : 0;
	case MSG_SAMPLE:
		e = (struct event){ .kind = EVENT_SAMPLE, .sample = m->sample };
		return push_event(n, &e);
	case MSG_LOST:
		e = (struct event){ .kind = EVENT_LOST, .lost = m->lost };
		return push_event(n, &e);
	case MSG_CLOCK:
		e = (struct event){ .kind = EVENT_CLOCK, .clock = m->clock };
		return push_event(n, &e);
	case MSG_FIGURE:
		e = (struct event){ .kind = EVENT_FIGURE };
		e.figure.value = m->figure.value;
		e.figure.len = m->figure.name.len < sizeof(e.figure.name)
				       ? m->figure.name.len
				       : (uint32_t)sizeof(e.figure.name);
		if (e.figure.len)
			memcpy(e.figure.name, m->figure.name.data, e.figure.len);
		return push_event(n, &e);
	case MSG_PROCESS_END:
		e = (struct event){ .kind = EVENT_PROCESS_END, .process_end = m->process_end };
		return push_event(n, &e);
	case MSG_END:
		e = (struct event){ .kind = EVENT_END, .end = m->end };
		return push_event(n, &e);
	default:
		n->lost[2]++; /* no message of a stream */
		return 0;
	}
}

int named_forget(struct named *n, uint64_t now_ns)
{
	int r = settle_held(n, ALL, now_ns);

	if (r)
		return r;
	if (n->objects)
		objects_drop_all(n->objects);
	clear_definitions(n);
	if (n->jit)
		jit_drop_all(n->jit);
	return restart(n);
}

int named_run(struct named *n, uint64_t now_ns)
{
	uint64_t pause_ns = n->held.len * HELD_EACH_NS;

	if (n->untold)
		tell_untold(n);
	if (n->held.len && n->jit->version == n->held_version)
		pause_ns += HELD_LOOK_NS;
	if (n->held.len && now_ns - n->held_ns >= pause_ns) {
		int r = run_held(n, 0, now_ns);

		if (r)
			return r;
		n->held_version = n->jit->version;
		n->held_ns = now_ns;
	}
	while (n->queue_len > 0) {
		int r = run_event(n, &n->queue[n->queue_first], now_ns);

		if (r)
			return r;
		/* From the front again, whose pages are there. */
		n->queue_first = --n->queue_len ? (n->queue_first + 1) % n->limits.queue : 0;
	}
	return n->ended ? 0 : tell_lost(n);
}

int named_end(struct named *n, enum end_reason reason, uint64_t now_ns)
{
	struct event e = { .kind = EVENT_END, .end = { .reason = reason, .time_ns = now_ns } };

	return n->ended ? 0 : run_event(n, &e, now_ns);
}
