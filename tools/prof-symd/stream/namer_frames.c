/* SPDX-License-Identifier: Apache-2.0 */
/* Names frames, and sends them with their functions before their first use in an epoch. */
#include <errno.h>
#include "common/base/bytes/numbers.h"
#include "common/base/system/clock.h"
#include "common/wire/peer/lastword.h"
#include "tools/prof-symd/stream/namer_internal.h"

/* Gets the id of a function, and sends the function if it is new. */
static int send_function(struct namer *n, const struct function *f, uint64_t *ret_id)
{
	bool fresh;
	int r = functions_intern(&n->functions, f, n->payer_bit, ret_id, &fresh);

	if (r == -ENOBUFS || r == -ENOMEM) {
		r = namer_restart(n);
		return r ? r : NAMER_RESTARTED;
	}
	if (r || !fresh)
		return r;
	return stream_put(n->out, &(struct msg){ .id = MSG_FUNCTION,
						 .function = { .id = *ret_id,
							       .name = f->name,
							       .system_name = f->system_name,
							       .source = f->source,
							       .start_line = f->start_line,
							       .payer = n->payer } });
}

/* Adds the functions and lines in n->names to a frame. n->list holds the ids. */
static int add_names(struct namer *n, struct msg_frame *m)
{
	uint32_t count = 0;

	for (unsigned i = 0; i < n->names.count; i++) {
		const struct names_call *c = &n->names.calls[i];
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
	m->functions = (struct msg_list){ .data = n->list, .len = count };
	m->lines = (struct msg_list){ .data = n->list + NAMES_MAX, .len = count };
	return 0;
}

/* Counts a frame that is sent without its name because memory is short. */
static int unnamed(struct namer *n)
{
	n->counts.unnamed++;
	n->without = MSG_FRAME_UNNAMED_MEMORY;
	return 0;
}

/* Leaves a frame without its name (n->give_up), or for later, because its owner's turn is over. */
static int skip_name(struct namer *n)
{
	if (!n->give_up)
		return NAMER_ASIDE;
	n->skipped = true;
	n->without = MSG_FRAME_UNNAMED_SLOW;
	n->counts.late++;
	if (naming_turns_lose(&n->turns, n->owner, n->files->now_ns) && n->say_slow)
		n->say_slow(n->owner);
	return 0;
}

/* Marks a frame that has no name because its file, or its debug file, did not come in time. */
static int late_file(struct namer *n)
{
	n->without = MSG_FRAME_UNNAMED_SLOW;
	return 0;
}

/* Begin and end a period whose cpu time is charged to n->owner: on a busy host, prof-symd may have
 * to wait for a cpu meanwhile. */
static uint64_t spend_begin(const struct namer *n)
{
	return n->turn_ns ? clock_ns(CLOCK_THREAD_CPUTIME_ID) : 0;
}

static void spend_end(struct namer *n, uint64_t begun_ns)
{
	if (!begun_ns)
		return;
	naming_turns_spend(&n->turns, n->owner, clock_ns(CLOCK_THREAD_CPUTIME_ID) - begun_ns,
			   clock_mono_ns());
}

/* Requests a file that the program wants before a lookup can continue. Returns false if the lookup
 * can continue now. */
static bool complete(struct namer *n, uint64_t file, uint64_t now_ns)
{
	struct definition_file *f = definitions_find_file(&n->defs, file);

	return f && filestore_complete(n->files, &f->store, now_ns) == FILESTORE_WAIT;
}

/* Returns the offset at which a frame of a file is looked up: a caller's offset is after its
 * call. */
static uint64_t native_offset(const struct definition_frame *f)
{
	return f->offset -
	       (f->flags & (MSG_FRAME_LEAF | MSG_FRAME_SIGNAL) || f->offset == 0 ? 0 : 1);
}

/* A lookup, and those that are announced with it. */
struct expected {
	uint64_t file, offsets[1 + PROGRAM_EXPECTED]; /* the first is the lookup's own */
	unsigned count;
	unsigned left; /* frames that may still be searched */
};

static bool expects_all(const struct expected *e)
{
	return e->count == 1 + PROGRAM_EXPECTED || !e->left;
}

static void expect_offset(struct expected *e, uint64_t offset)
{
	for (unsigned i = 0; i < e->count; i++)
		if (e->offsets[i] == offset)
			return;
	e->offsets[e->count++] = offset;
}

/* Adds the frames of a stack, from `from` on, that lie in the file and have to be looked up. */
static void expect_of_stack(struct namer *n, struct expected *e, const struct definition_stack *s,
			    uint32_t from)
{
	for (uint32_t i = from; i < s->count && !expects_all(e); i++) {
		const struct definition_frame *f =
			definitions_find_frame(&n->defs, n->defs.numbers[s->numbers + i]);

		e->left--;
		if (f && f->file == e->file && f->kind == MSG_FRAME_NATIVE && !f->count &&
		    !namer_was_sent(n, f->sent, f->payers))
			expect_offset(e, native_offset(f));
	}
}

/* Announces lookups for the next frames in the same file, so that one request can answer all of
 * them: those of this stack, and of the owner's samples that wait. */
static void expect_native(struct namer *n, struct program *program,
			  const struct definition_frame *now)
{
	struct expected e = { .file = now->file,
			      .offsets = { native_offset(now) },
			      .count = 1,
			      .left = NAMER_LOOK_AHEAD };

	if (n->stack)
		expect_of_stack(n, &e, n->stack, n->stack_at + 1);
	for (size_t i = 1; i < NAMER_LOOK_AHEAD && !expects_all(&e); i++) {
		const struct event *next = events_at(&n->queue, i);

		if (!next)
			break;
		if (next->kind != EVENT_SAMPLE || next->owner != n->owner)
			continue;
		const struct definition_stack *s = idtable_get(&n->defs.stacks, next->sample.stack);

		if (s && s != n->stack && !namer_was_sent(n, s->sent, s->payers))
			expect_of_stack(n, &e, s, 0);
	}
	program_expect(program, e.offsets + 1, e.count - 1);
}

/* Fills functions and lines of a frame that came without names, or the start of its function if
 * there are none. */
static int name_frame(struct namer *n, const struct definition_frame *f, struct msg_frame *m,
		      uint64_t now_ns)
{
	struct program *program;
	struct definition_file *file;
	uint64_t address, start;
	bool waits = false;
	int r;

	file = definitions_find_file(&n->defs, f->file);
	/* If the owner's turn is over, slow files must not delay the others. Who had none is
	 * trusted, and need not wait for the slow ones of others. */
	if (n->turn_ns && file && namer_owners(n) > 1 &&
	    naming_turns_over(&n->turns, n->owner, namer_owners(n), now_ns) &&
	    naming_turns_was_slow(&n->turns, n->owner, now_ns))
		filestore_try_patiently(&file->store);
	if (n->turn_ns && file && filestore_must_wait(&file->store)) {
		r = skip_name(n);
		return r ? r : namer_send_file_as_it_is(n, file);
	}
	r = namer_send_file(n, f->file, now_ns, &program);
	if (r == 0 && !program && file && (n->skipped || file->store.late))
		return late_file(n);
	if (r == 0 && !program && file && file->store.state == FILESTORE_FAILED && !n->files->bare)
		n->without = MSG_FRAME_UNNAMED_FILE;
	if (r || !program)
		return r;
	if (n->wanted != REPORTING_ALL) {
		if (fileid_address(program_fileid(program), native_offset(f), &address))
			m->address = address + (f->offset - native_offset(f));
		return 0;
	}
	if (n->lean || (file && file->postponed))
		return skip_name(n);

	const uint64_t begun_ns = spend_begin(n);

	const uint64_t slice_ns = NAMER_SLICE_NS / namer_owners(n);

	program_charge(program, n->owner);
	if (n->turn_ns)
		program_take_turns(numbers_larger(slice_ns, NAMER_SLICE_LEAST_NS));
	const uint64_t former = lastword_begin(LASTWORD_FILE, f->file);

	if (!program_has(program, native_offset(f)))
		expect_native(n, program, f);
	do {
		r = program_find(program, native_offset(f), &n->names, &address, &start);
		waits = r == VERDICT_AGAIN && complete(n, f->file, now_ns);
	} while (r == VERDICT_AGAIN && !waits);
	if (address != UINT64_MAX) {
		m->address = address + (f->offset - native_offset(f));
		m->start = start;
	}
	lastword_back(former);
	const uint64_t worked_ns = program_worked_ns(program);

	n->worked_ns += worked_ns;

	if (r != VERDICT_LATER && r != VERDICT_AGAIN && file && n->turn_ns)
		filestore_took(&file->store, worked_ns, NAMER_SLICE_NS);
	if (worked_ns && n->turn_ns)
		naming_turns_spend(&n->turns, n->owner, worked_ns, clock_mono_ns());
	else
		spend_end(n, begun_ns);
	if (file)
		filestore_charge(n->files, &file->store);
	if (waits)
		return NAMER_WAIT;
	if (r == VERDICT_LATER && program_is_slow(program))
		naming_turns_note_slow(&n->turns, n->owner, now_ns);
	if (r == VERDICT_LATER)
		return skip_name(n);
	if (r == -ENOMEM)
		return unnamed(n);
	if (file && file->store.late && (r > 0 || (r == 0 && !names_known(&n->names))))
		return late_file(n);
	if (r)
		return r < 0 ? r : 0;
	return add_names(n, m);
}

/* Returns the address at which a frame of generated code is looked up: a caller's address is after
 * its call. */
static uint64_t generated_address(const struct definition_frame *f)
{
	return f->offset - (f->flags & (MSG_FRAME_LEAF | MSG_FRAME_SIGNAL) ? 0 : 1);
}

/* Like name_frame, for generated code of f->process. NAMER_HOLD: it has no name yet. */
static int name_generated(struct namer *n, const struct definition_frame *f, struct msg_frame *m,
			  uint64_t now_ns)
{
	const struct definition_process *p = definitions_find_process(&n->defs, f->process);
	int r;

	if (!n->jit || !p)
		return 0;
	if (n->lean)
		return skip_name(n);

	const uint64_t begun_ns = spend_begin(n);
	const uint64_t former = lastword_begin(LASTWORD_PROCESS, f->process);

	r = jit_lookup(n->jit, f->process, (uint32_t)p->def.pid, generated_address(f), n->sample_ns,
		       now_ns, &n->names);
	lastword_back(former);
	spend_end(n, begun_ns);
	if (r == 0)
		return add_names(n, m);
	if (r == -ENOMEM)
		return unnamed(n);
	if (r < 0)
		return r;
	n->lacking = f->process;
	return n->give_up ? 0 : NAMER_HOLD;
}

/* Passes on the functions that a frame came with, with new ids. Drops functions without a name. */
static int pass_names(struct namer *n, const struct definition_frame *f, struct msg_frame *m)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < f->count && count < NAMES_MAX; i++) {
		const struct definition_function *raw =
			idtable_get(&n->defs.functions, n->defs.numbers[f->numbers + i]);
		int r;

		if (!raw)
			return NAMER_UNDEFINED;
		if (raw->f.name.len == 0)
			continue;
		r = send_function(n, &raw->f, &n->list[count]);
		if (r)
			return r;
		n->list[NAMES_MAX + count++] = n->defs.numbers[f->numbers + f->count + i];
	}
	m->functions = (struct msg_list){ .data = n->list, .len = count };
	m->lines = (struct msg_list){ .data = n->list + NAMES_MAX, .len = count };
	return 0;
}

/* Returns the flag of a frame that has no name for this reason; 0: the reason does not count. */
static uint64_t flag_of(enum unnamed_reason why)
{
	static const uint64_t flags[UNNAMED_REASONS] = {
		[UNNAMED_SLOW] = MSG_FRAME_UNNAMED_SLOW,
		[UNNAMED_MEMORY_LIMIT] = MSG_FRAME_UNNAMED_MEMORY,
		[UNNAMED_NO_FILE] = MSG_FRAME_UNNAMED_FILE,
		[UNNAMED_GONE] = MSG_FRAME_UNNAMED_GONE,
	};

	return flags[why];
}

/* Like name_frame, for an interpreted frame. Also returns NAMER_WAIT or NAMER_HIDDEN. */
static int name_interpreted(struct namer *n, struct definition_frame *f, struct msg_frame *m,
			    uint64_t now_ns)
{
	const struct definition_process *p = definitions_find_process(&n->defs, f->process);
	int r = f->file ? namer_send_file(n, f->file, now_ns, NULL) : 0;

	if (r)
		return r;
	const struct runtime_build *b = namer_build_of(n, f);
	f->lacks = false;
	if (!b || !p || !n->objects || n->wanted == REPORTING_NO_NAMES)
		return 0;
	r = objects_lookup(n->objects, b, f->process, (uint32_t)p->def.pid, f->offset, f->mark,
			   n->give_up, now_ns, &n->names);
	f->lacks = r == OBJECTS_UNNAMED;
	if (f->lacks)
		n->without = flag_of(objects_why(n->objects));
	if (r == 0 && f->has_second) {
		const uint64_t *second = namer_second_of(n, f);

		r = objects_lookup_second(n->objects, b, f->process, (uint32_t)p->def.pid,
					  second[0], second[1], n->give_up, now_ns, &n->names);
	}
	if (r == OBJECTS_LATER)
		return n->lean ? NAMER_ASIDE : NAMER_WAIT;
	if (r == OBJECTS_HIDDEN)
		return NAMER_HIDDEN;
	if (r == -ENOMEM)
		return unnamed(n);
	return r == 0 || r == OBJECTS_UNNAMED ? add_names(n, m) : r;
}

/* Whether an interpreted frame that lacked its name has it now. Does not wait. */
bool namer_name_came(struct namer *n, const struct definition_frame *f, uint64_t now_ns)
{
	const struct runtime_build *b = namer_build_of(n, f);
	const struct definition_process *p = definitions_find_process(&n->defs, f->process);

	return !b || !p ||
	       objects_lookup(n->objects, b, f->process, (uint32_t)p->def.pid, f->offset, f->mark,
			      true, now_ns, &n->names) != OBJECTS_UNNAMED;
}

/* strange: the frame's address is not mapped. */
int namer_send_frame(struct namer *n, uint64_t id, bool strange, uint64_t now_ns)
{
	struct definition_frame *f = definitions_find_frame(&n->defs, id);
	struct msg m = { .id = MSG_FRAME };
	const bool skipped_before = n->skipped;
	int r = 0;

	if (!f)
		return NAMER_UNDEFINED;
	/* A frame may have been sent earlier without its name, which has come since: send it again
	 * for a new stack. */
	if (namer_was_sent(n, f->sent, f->payers) && !(f->lacks && namer_name_came(n, f, now_ns)))
		return 0;
	n->skipped = false;
	n->without = 0;
	m.frame = (struct msg_frame){ .id = id,
				      .kind = f->kind,
				      .file = f->file,
				      .offset = f->offset,
				      .process = f->process,
				      .flags = f->flags,
				      .payer = n->payer };
	if (f->kind == MSG_FRAME_INTERPRETED) {
		m.frame.runtime = f->runtime;
		m.frame.mark = f->mark;
		m.frame.code = runtime_code((UW_U32)f->runtime, f->mark);
		if (f->has_second) {
			m.frame.object2 = namer_second_of(n, f)[0];
			m.frame.mark2 = namer_second_of(n, f)[1];
		}
	} else {
		m.frame.address = f->address;
	}
	if (f->process)
		r = namer_send_process(n, f->process, now_ns, true);
	if (r == 0 && f->count > 0)
		r = pass_names(n, f, &m.frame);
	else if (r == 0 && f->kind == MSG_FRAME_INTERPRETED)
		r = name_interpreted(n, f, &m.frame, now_ns);
	else if (r == 0 && f->kind == MSG_FRAME_NATIVE && f->file)
		r = name_frame(n, f, &m.frame, now_ns);
	else if (r == 0 && f->process && f->kind == MSG_FRAME_NATIVE && !strange)
		r = name_generated(n, f, &m.frame, now_ns);
	if (r == NAMER_HIDDEN) {
		n->skipped = skipped_before;
		f->hidden = true;
		namer_mark_sent(n, &f->sent, &f->payers);
		return 0;
	}
	if (r == 0 && f->file &&
	    (f->count > 0 || (f->kind != MSG_FRAME_NATIVE && f->kind != MSG_FRAME_INTERPRETED)))
		r = namer_send_file(n, f->file, now_ns, NULL);
	if (r)
		return r;

	const bool skipped = n->skipped;

	n->skipped |= skipped_before;
	m.frame.flags |= n->without;
	r = stream_put(n->out, &m);
	if (r == 0) {
		/* A frame that was skipped is sent again, with its name, when another owner needs
		 * it. */
		namer_mark_sent(n, &f->sent, &f->payers);
		f->sent = skipped ? 0 : n->epoch;
		n->counts.named_frames += m.frame.functions.len > 0;
	}
	return r;
}

/* Announces lookups for the next frames of a stack in generated code, so that one request can
 * answer all of them. */
void namer_expect_generated(struct namer *n, const struct definition_stack *s, uint32_t from)
{
	uint64_t addresses[JIT_EXPECTED], process = 0;
	unsigned count = 0;

	for (uint32_t i = from; i < s->count && i - from < JIT_EXPECTED; i++) {
		const struct definition_frame *f =
			definitions_find_frame(&n->defs, n->defs.numbers[s->numbers + i]);

		if (!f || f->file || !f->process || f->kind != MSG_FRAME_NATIVE || f->count ||
		    f->sent == n->epoch || (process && f->process != process))
			continue;
		process = f->process;
		addresses[count++] = generated_address(f);
	}
	jit_expect(n->jit, process, addresses, count);
}
