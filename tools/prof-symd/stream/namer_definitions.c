/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends samples, and definitions with names before their first use in an epoch.
 *
 * Each function returns 0 if the definition was sent in this epoch; NAMER_WAIT, enum namer_sending
 * or an error. Pointers into tables stay valid here, since nothing is added.
 */
#include <errno.h>
#include "common/base/clock.h"
#include "common/base/numbers.h"
#include "common/wire/lastword.h"
#include "tools/prof-symd/stream/extras.h"
#include "tools/prof-symd/stream/namer_internal.h"

const struct runtime_build *namer_build_of(const struct namer *n, const struct def_frame *f)
{
	const struct def_file *file = definitions_find_file(&n->defs, f->file);
	const struct runtime_build *b = file ? file->build : NULL;

	return b && b->known && b->config.runtime == f->runtime ? b : NULL;
}

int namer_restart(struct namer *n)
{
	int r = stream_flush(n->out);

	if (r)
		return r;
	stream_out_epoch(n->out, ++n->epoch);
	functions_clear(&n->functions);
	n->counts.epochs++;
	return 0;
}

/* Whether a definition was sent in this epoch and charged to this owner. The receiver may have had
 * no room for it while it was charged to another one. */
static bool was_sent(const struct namer *n, uint64_t sent, uint32_t payers)
{
	return sent == n->epoch && payers & n->payer_bit;
}

static void mark_sent(const struct namer *n, uint64_t *sent, uint32_t *payers)
{
	*payers = *sent == n->epoch ? *payers | n->payer_bit : n->payer_bit;
	*sent = n->epoch;
}

/* Sends a file without the facts from its contents. */
static int send_file_as_it_is(struct namer *n, struct def_file *f)
{
	struct msg m = { .id = MSG_FILE, .file = f->def };

	m.file.payer = n->payer;
	const int r = f->sent == n->epoch ? 0 : stream_put(n->out, &m);

	if (r == 0)
		f->told = n->epoch;
	return r;
}

/* Says what backends need to know of the file. id: borrowed as long as m. */
static void identify(const struct fileid *id, struct msg_file *m)
{
	if (id->gnu_len)
		m->build_id = (struct span){ .data = id->gnu, .len = id->gnu_len };
	/* Else this is only what a process has mapped of it. */
	if (id->htlhash_len && id->size == m->size)
		m->htlhash = (struct span){ .data = id->htlhash, .len = id->htlhash_len };
	if (id->go_len)
		m->go_build_id = (struct str){ .data = id->go, .len = id->go_len };
	if (id->segment_count)
		m->segments = (struct u64s){ .data = id->segments, .len = 3 * id->segment_count };
}

static int send_file(struct namer *n, uint64_t id, uint64_t now_ns, struct program **ret_program)
{
	struct def_file *f = definitions_find_file(&n->defs, id);
	struct msg m = { .id = MSG_FILE };
	struct program *program = NULL;
	int r;

	if (ret_program)
		*ret_program = NULL;
	if (!f)
		return NAMER_UNDEFINED;
	if (was_sent(n, f->sent, f->payers) && !ret_program)
		return 0;
	if (n->lean && !filestore_settled(&f->store)) {
		if (!n->give_up) {
			filestore_want(n->files, &f->store, now_ns);
			return NAMER_ASIDE;
		}
		n->skipped = true;
		return send_file_as_it_is(n, f);
	}
	f->store.owner = n->owner;
	r = filestore_get(n->files, &f->store, now_ns, &program);
	if (r)
		return r == FILESTORE_WAIT ? NAMER_WAIT : r;
	if (ret_program)
		*ret_program = program;
	if (was_sent(n, f->sent, f->payers))
		return 0;
	m.file = f->def;
	m.file.payer = n->payer;
	if (program)
		identify(program_fileid(program), &m.file);
	r = stream_put(n->out, &m);
	if (r)
		return r;
	mark_sent(n, &f->sent, &f->payers);
	f->told = n->epoch;
	return 0;
}

/* --- what is only passed on --- */

/* A list of labels needs its labels before it. */
static int send_labels(struct namer *n, const struct msg_labels *m);

static int send_extra(struct namer *n, struct def_extra *x)
{
	struct msg_scratch scratch = { 0 };
	struct msg m;
	int r;

	if (x->sent == n->epoch)
		return 0;
	r = extras_decode(x, &scratch, &m);
	if (r == 0 && m.id == MSG_LABELS)
		r = send_labels(n, &m.labels);
	if (r == 0)
		r = stream_put(n->out, &m);
	if (r == 0)
		x->sent = n->epoch;
	msg_scratch_done(&scratch);
	return r;
}

/* Sends the definition of this id. Clears the id if there is none. */
static int send_extra_of(struct namer *n, enum msg_id kind, uint64_t *id)
{
	struct def_extra *x = extras_find(&n->defs, kind, *id);

	if (!x)
		*id = 0;
	return x ? send_extra(n, x) : 0;
}

static int send_labels(struct namer *n, const struct msg_labels *m)
{
	int r = 0;

	for (uint32_t i = 0; i < m->list.len && r == 0; i++)
		r = send_extra_of(n, MSG_LABEL, &(uint64_t){ m->list.data[i] });
	return r;
}

/* Sends what the sample names beside its stack and thread. Clears what has no definition. */
static int send_extras(struct namer *n, struct msg_sample *sample)
{
	int r = 0;

	if (sample->source)
		r = send_extra_of(n, MSG_SOURCE, &sample->source);
	if (r == 0 && sample->labels)
		r = send_extra_of(n, MSG_LABELS, &sample->labels);
	if (r == 0 && sample->link)
		r = send_extra_of(n, MSG_LINK, &sample->link);
	return r;
}

/* Sends the file of a mapping first. False: the file is not known, or not yet. */
static int send_mapped_file(struct namer *n, const struct def_extra *x, uint64_t now_ns, bool wait,
			    bool *ret)
{
	struct msg_scratch scratch = { 0 };
	struct msg m;
	int r = extras_decode(x, &scratch, &m);
	const struct def_file *f = r ? NULL : definitions_find_file(&n->defs, m.mapping.file);

	*ret = f && (wait || f->sent == n->epoch);
	if (r == 0 && *ret)
		r = send_file(n, m.mapping.file, now_ns, NULL);
	msg_scratch_done(&scratch);
	return r;
}

/* Sends attributes and mappings of a process, as far as they were not. */
static int send_extras_of(struct namer *n, struct def_process *p, uint64_t now_ns, bool wait)
{
	bool all = true;

	if (p->extras_sent == n->epoch)
		return 0;
	for (uint32_t slot = p->extras; slot != IDMAP_NONE;) {
		struct def_extra *x = idtable_at(&n->defs.extras, slot);
		bool ready = true;
		int r = 0;

		if (x->id == MSG_MAPPING && x->sent != n->epoch)
			r = send_mapped_file(n, x, now_ns, wait, &ready);
		if (r == 0 && ready)
			r = send_extra(n, x);
		if (r)
			return r;
		all &= ready;
		slot = x->next;
	}
	if (all)
		p->extras_sent = n->epoch;
	return 0;
}

int namer_send_process(struct namer *n, uint64_t id, uint64_t now_ns, bool wait)
{
	struct def_process *p = definitions_find_process(&n->defs, id);
	struct msg m = { .id = MSG_PROCESS };
	int r;

	if (!p)
		return NAMER_UNDEFINED;
	if (p->sent == n->epoch)
		return send_extras_of(n, p, now_ns, wait);
	m.process = p->def;
	m.process.comm.data = p->comm;
	if (p->def.exe) {
		struct def_file *f = definitions_find_file(&n->defs, p->def.exe);

		if (f && (wait || f->sent == n->epoch)) {
			r = send_file(n, p->def.exe, now_ns, NULL);
			if (r)
				return r;
		} else {
			m.process.exe = 0;
		}
	}
	r = m.process.cgroup ? send_extra_of(n, MSG_CGROUP, &m.process.cgroup) : 0;
	if (r == 0)
		r = stream_put(n->out, &m);
	if (r == 0)
		p->sent = n->epoch;
	return r ? r : send_extras_of(n, p, now_ns, wait);
}

static int send_thread(struct namer *n, uint64_t id, uint64_t now_ns)
{
	struct def_thread *t = idtable_get(&n->defs.threads, id);
	struct msg m = { .id = MSG_THREAD };
	int r;

	if (!t)
		return NAMER_UNDEFINED;
	/* The process may have changed since. */
	r = namer_send_process(n, t->def.process, now_ns, true);
	if (r || t->sent == n->epoch)
		return r;
	m.thread = t->def;
	m.thread.comm.data = t->comm;
	r = stream_put(n->out, &m);
	if (r == 0)
		t->sent = n->epoch;
	return r;
}

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

/* Adds the functions and lines in n->names to a frame, by way of n->list. */
static int add_names(struct namer *n, struct msg_frame *m)
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

/* Counts a frame that is sent without its name for lack of memory. */
static int unnamed(struct namer *n)
{
	n->counts.unnamed++;
	return 0;
}

/* Leaves a frame without its name, or for later, because its owner's turn is over. */
static int skip_name(struct namer *n)
{
	if (!n->give_up)
		return NAMER_ASIDE;
	n->skipped = true;
	n->counts.late++;
	if (turns_lose(&n->turns, n->owner, n->files->now_ns) && n->say_slow)
		n->say_slow(n->owner);
	return 0;
}

/* The time of what follows is charged to n->owner. */
static uint64_t spend_begin(const struct namer *n)
{
	return n->turn_ns ? clock_mono_ns() : 0;
}

static void spend_end(struct namer *n, uint64_t begun_ns)
{
	if (!begun_ns)
		return;
	const uint64_t now_ns = clock_mono_ns();

	turns_spend(&n->turns, n->owner, now_ns - begun_ns, now_ns);
}

/* Requests a file that the program wants before a lookup can go on. False: go on now. */
static bool complete(struct namer *n, uint64_t file, uint64_t now_ns)
{
	struct def_file *f = definitions_find_file(&n->defs, file);

	return f && filestore_complete(n->files, &f->store, now_ns) == FILESTORE_WAIT;
}

/* Where a frame of a file is looked up: a caller's offset is behind its call. */
static uint64_t native_offset(const struct def_frame *f)
{
	return f->offset - (f->flags & (FRAME_LEAF | FRAME_SIGNAL) || f->offset == 0 ? 0 : 1);
}

/* Announces the lookups in the same file of the next frames of the stack, so that all of them can
 * be one request. */
static void expect_native(struct namer *n, struct program *program, const struct def_frame *now)
{
	const struct def_stack *s = n->stack;
	uint64_t offsets[PROGRAM_EXPECTED];
	unsigned count = 0;

	for (uint32_t i = n->stack_at + 1;
	     s && i < s->count && count < PROGRAM_EXPECTED && i - n->stack_at <= NAMER_LOOK_AHEAD;
	     i++) {
		const struct def_frame *f = definitions_find_frame(&n->defs,
								   n->defs.numbers[s->numbers + i]);

		if (!f || f->file != now->file || f->kind != FRAME_NATIVE || f->count ||
		    was_sent(n, f->sent, f->payers))
			continue;
		const uint64_t offset = native_offset(f);

		if (offset != native_offset(now) && (!count || offset != offsets[count - 1]))
			offsets[count++] = offset;
	}
	program_expect(program, offsets, count);
}

/* Fills functions and lines of a frame that came without names; if unknown, its function's start.
 */
static int name_frame(struct namer *n, const struct def_frame *f, struct msg_frame *m,
		      uint64_t now_ns)
{
	struct program *program;
	struct def_file *file;
	uint64_t address, start;
	bool waits = false;
	int r;

	file = definitions_find_file(&n->defs, f->file);
	/* An owner whose turn is over must not delay others by a slow file. */
	if (n->turn_ns && file && namer_owners(n) > 1 &&
	    turns_over(&n->turns, n->owner, namer_owners(n), now_ns))
		filestore_try_patiently(&file->store);
	if (n->turn_ns && file && filestore_must_wait(&file->store)) {
		r = skip_name(n);
		return r ? r : send_file_as_it_is(n, file);
	}
	r = send_file(n, f->file, now_ns, &program);
	if (r || !program)
		return r;
	if (n->wanted != REPORTING_ALL) {
		if (fileid_address(program_fileid(program), native_offset(f), &address))
			m->address = address + (f->offset - native_offset(f));
		return 0;
	}
	if (n->lean)
		return skip_name(n);

	const uint64_t begun_ns = spend_begin(n);

	const uint64_t slice_ns = NAMER_SLICE_NS / namer_owners(n);

	program_charge(program, n->owner);
	if (n->turn_ns)
		program_take_turns(numbers_larger(slice_ns, NAMER_SLICE_LEAST_NS));
	const uint64_t former = lastword_begin(LASTWORD_FILE, f->file);

	if (!program_has(program, native_offset(f)))
		expect_native(n, program, f);
	do
		r = program_find(program, native_offset(f), &n->names, &address, &start);
	while (r == PROGRAM_AGAIN && !(waits = complete(n, f->file, now_ns)));
	if (address != UINT64_MAX) {
		m->address = address + (f->offset - native_offset(f));
		m->start = start;
	}
	lastword_back(former);
	const uint64_t worked_ns = program_worked_ns(program);

	if (r != PROGRAM_LATER && r != PROGRAM_AGAIN && file && n->turn_ns)
		filestore_took(&file->store, worked_ns, NAMER_SLICE_NS);
	if (worked_ns && n->turn_ns)
		turns_spend(&n->turns, n->owner, worked_ns, clock_mono_ns());
	else
		spend_end(n, begun_ns);
	if (file)
		filestore_charge(n->files, &file->store);
	if (waits)
		return NAMER_WAIT;
	if (r == PROGRAM_LATER)
		return skip_name(n);
	if (r == -ENOMEM)
		return unnamed(n);
	if (r)
		return r < 0 ? r : 0;
	return add_names(n, m);
}

/* Where a frame of generated code is looked up: a caller's address is behind its call. */
static uint64_t generated_address(const struct def_frame *f)
{
	return f->offset - (f->flags & (FRAME_LEAF | FRAME_SIGNAL) ? 0 : 1);
}

/* The same for generated code of f->process. NAMER_HOLD: it has no name yet. */
static int name_generated(struct namer *n, const struct def_frame *f, struct msg_frame *m,
			  uint64_t now_ns)
{
	const struct def_process *p = definitions_find_process(&n->defs, f->process);
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

/* Passes on the functions that a frame came with, by our ids. Drops functions without a name. */
static int pass_names(struct namer *n, const struct def_frame *f, struct msg_frame *m)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < f->count && count < NAMES_MAX; i++) {
		const struct def_function *raw = idtable_get(&n->defs.functions,
							     n->defs.numbers[f->numbers + i]);
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
	m->functions = (struct u64s){ .data = n->list, .len = count };
	m->lines = (struct u64s){ .data = n->list + NAMES_MAX, .len = count };
	return 0;
}

/* The same for an interpreted frame. NAMER_WAIT, NAMER_HIDDEN. */
static int name_interpreted(struct namer *n, struct def_frame *f, struct msg_frame *m,
			    uint64_t now_ns)
{
	const struct def_process *p = definitions_find_process(&n->defs, f->process);
	int r = f->file ? send_file(n, f->file, now_ns, NULL) : 0;

	if (r)
		return r;
	const struct runtime_build *b = namer_build_of(n, f);
	f->lacks = false;
	if (!b || !p || !n->objects || n->wanted == REPORTING_NO_NAMES)
		return 0;
	r = objects_lookup(n->objects, b, f->process, (uint32_t)p->def.pid, f->offset, f->mark,
			   n->give_up, now_ns, &n->names);
	f->lacks = r == OBJECTS_UNNAMED;
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

/* Whether an interpreted frame that lacked its name has it now. Waits for nothing. */
static bool name_came(struct namer *n, const struct def_frame *f, uint64_t now_ns)
{
	const struct runtime_build *b = namer_build_of(n, f);
	const struct def_process *p = definitions_find_process(&n->defs, f->process);

	return !b || !p ||
	       objects_lookup(n->objects, b, f->process, (uint32_t)p->def.pid, f->offset, f->mark,
			      true, now_ns, &n->names) != OBJECTS_UNNAMED;
}

/* strange: the frame's address is not mapped. */
static int send_frame(struct namer *n, uint64_t id, bool strange, uint64_t now_ns)
{
	struct def_frame *f = definitions_find_frame(&n->defs, id);
	struct msg m = { .id = MSG_FRAME };
	const bool skipped_before = n->skipped;
	int r = 0;

	if (!f)
		return NAMER_UNDEFINED;
	/* A new stack may have a frame whose name came only after an earlier one was sent. */
	if (was_sent(n, f->sent, f->payers) && !(f->lacks && name_came(n, f, now_ns)))
		return 0;
	n->skipped = false;
	m.frame = (struct msg_frame){ .id = id,
				      .kind = f->kind,
				      .file = f->file,
				      .offset = f->offset,
				      .process = f->process,
				      .flags = f->flags,
				      .payer = n->payer };
	if (f->kind == FRAME_INTERPRETED) {
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
	else if (r == 0 && f->kind == FRAME_INTERPRETED)
		r = name_interpreted(n, f, &m.frame, now_ns);
	else if (r == 0 && f->kind == FRAME_NATIVE && f->file)
		r = name_frame(n, f, &m.frame, now_ns);
	else if (r == 0 && f->process && f->kind == FRAME_NATIVE && !strange)
		r = name_generated(n, f, &m.frame, now_ns);
	if (r == NAMER_HIDDEN) {
		n->skipped = skipped_before;
		f->hidden = true;
		mark_sent(n, &f->sent, &f->payers);
		return 0;
	}
	if (r == 0 && f->file &&
	    (f->count > 0 || (f->kind != FRAME_NATIVE && f->kind != FRAME_INTERPRETED)))
		r = send_file(n, f->file, now_ns, NULL);
	if (r)
		return r;

	const bool skipped = n->skipped;

	n->skipped |= skipped_before;
	r = stream_put(n->out, &m);
	if (r == 0) {
		/* A frame that was skipped is sent again, with its name, when somebody needs it. */
		mark_sent(n, &f->sent, &f->payers);
		f->sent = skipped ? 0 : n->epoch;
		n->counts.named_frames += m.frame.functions.len > 0;
	}
	return r;
}

/* Whether a frame of the stack has its name now, but lacked it when the stack was sent. Then both
 * are sent again. Waits for nothing. */
static bool names_came(struct namer *n, const struct def_stack *s, uint64_t now_ns)
{
	uint32_t lacking = 0;

	for (uint32_t i = 0; i < s->count; i++) {
		struct def_frame *f = definitions_find_frame(&n->defs,
							     n->defs.numbers[s->numbers + i]);

		if (!f || !f->lacks)
			continue;
		if (name_came(n, f, now_ns))
			f->sent = 0;
		else
			lacking++;
	}
	return lacking < s->lacking;
}

/* Announces the lookups in generated code of the next frames of a stack, so that all of them can be
 * one request. */
static void expect_generated(struct namer *n, const struct def_stack *s, uint32_t from)
{
	uint64_t addresses[JIT_EXPECTED], process = 0;
	unsigned count = 0;

	for (uint32_t i = from; i < s->count && i - from < JIT_EXPECTED; i++) {
		const struct def_frame *f = definitions_find_frame(&n->defs,
								   n->defs.numbers[s->numbers + i]);

		if (!f || f->file || !f->process || f->kind != FRAME_NATIVE || f->count ||
		    f->sent == n->epoch || (process && f->process != process))
			continue;
		process = f->process;
		addresses[count++] = generated_address(f);
	}
	jit_expect(n->jit, process, addresses, count);
}

static int send_stack(struct namer *n, uint64_t id, uint64_t now_ns)
{
	struct def_stack *s = idtable_get(&n->defs.stacks, id);
	struct msg m = { .id = MSG_STACK };
	uint32_t shown = 0, lacking = 0;
	int r;

	n->skipped = false;
	if (!s)
		return NAMER_UNDEFINED;
	if (was_sent(n, s->sent, s->payers) && !(s->lacking && names_came(n, s, now_ns)))
		return 0;
	for (uint32_t i = 0; i < s->count; i++) {
		bool strange = s->reason == WALK_NO_MAPPING && i + 1 == s->count;
		uint64_t frame = n->defs.numbers[s->numbers + i];

		if (n->jit && !n->lean && i % JIT_EXPECTED == 0)
			expect_generated(n, s, i);
		n->stack = s;
		n->stack_at = i;
		r = send_frame(n, frame, strange, now_ns);
		n->stack = NULL;
		if (r)
			return r;
		const struct def_frame *f = definitions_find_frame(&n->defs, frame);

		if (f && !f->hidden && shown < NAMER_STACK_FRAMES)
			n->shown[shown++] = frame;
		lacking += f && f->lacks;
	}
	m.stack = (struct msg_stack){ .id = id,
				      .frames = { .data = n->shown, .len = shown },
				      .reason = s->reason,
				      .payer = n->payer };
	if (s->at_file) {
		r = send_file(n, s->at_file, now_ns, NULL);
		if (r != 0 && r != NAMER_UNDEFINED)
			return r;
		m.stack.at_file = r == 0 ? s->at_file : 0;
	}
	r = stream_put(n->out, &m);
	if (r)
		return r;
	mark_sent(n, &s->sent, &s->payers);
	s->sent = n->skipped ? 0 : n->epoch;
	s->lacking = lacking;
	return 0;
}

/* --- samples --- */

void namer_lose_sample(struct namer *n)
{
	n->lost[n->defs.limit_hit ? 0 : n->gap_seen ? 1 : 2]++;
	n->counts.lost++;
}

int namer_send_sample(struct namer *n, const struct msg_sample *sample, uint64_t now_ns)
{
	int r = 0;

	if (n->limits.epoch && n->out->bytes > n->limits.epoch)
		r = namer_restart(n);
	if (r)
		return r;
	namer_charge(n, sample->thread);
	n->sample_ns = sample->time_ns;
	/* A sample begins at most one new epoch. If its stack does not fit into an empty table, the
	 * sample is lost. */
	for (int attempt = 0; attempt < 2; attempt++) {
		r = sample->stack ? send_stack(n, sample->stack, now_ns) : 0;
		if (r == 0 && sample->thread)
			r = send_thread(n, sample->thread, now_ns);
		if (r != NAMER_RESTARTED)
			break;
	}
	if (r == NAMER_UNDEFINED || r == NAMER_RESTARTED) {
		n->defs.limit_hit |= r == NAMER_RESTARTED;
		namer_lose_sample(n);
		return 0;
	}
	struct msg m = { .id = MSG_SAMPLE, .sample = *sample };

	if (r == 0)
		r = send_extras(n, &m.sample);
	if (r)
		return r;
	r = stream_put(n->out, &m);
	n->counts.samples += r == 0;
	return r;
}
