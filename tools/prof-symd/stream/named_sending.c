/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends definitions with names, before their first use in an epoch.
 *
 * Each function returns 0 if the definition was sent in this epoch; NAMED_WAIT, enum named_sending
 * or an error. Pointers into tables stay valid here, since nothing is added.
 */
#include <errno.h>
#include "common/wire/lastword.h"
#include "tools/prof-symd/stream/named_internal.h"

const struct runtime_build *named_build_of(const struct named *n, const struct def_frame *f)
{
	const struct def_file *file = definitions_find_file(&n->defs, f->file);
	const struct runtime_build *b = file ? file->build : NULL;

	return b && b->known && b->config.runtime == f->runtime ? b : NULL;
}

int named_restart(struct named *n)
{
	int r = stream_flush(n->out);

	if (r)
		return r;
	stream_out_epoch(n->out, ++n->epoch);
	functions_clear(&n->functions);
	n->counts.epochs++;
	return 0;
}

static int send_file(struct named *n, uint64_t id, uint64_t now_ns, struct program **ret_program)
{
	struct def_file *f = definitions_find_file(&n->defs, id);
	struct msg m = { .id = MSG_FILE };
	struct program *program = NULL;
	int r;

	if (ret_program)
		*ret_program = NULL;
	if (!f)
		return NAMED_UNDEFINED;
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

int named_send_process(struct named *n, uint64_t id, uint64_t now_ns, bool wait)
{
	struct def_process *p = definitions_find_process(&n->defs, id);
	struct msg m = { .id = MSG_PROCESS };
	int r;

	if (!p)
		return NAMED_UNDEFINED;
	if (p->sent == n->epoch)
		return 0;
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
	r = stream_put(n->out, &m);
	if (r == 0)
		p->sent = n->epoch;
	return r;
}

int named_send_thread(struct named *n, uint64_t id, uint64_t now_ns)
{
	struct def_thread *t = idtable_get(&n->defs.threads, id);
	struct msg m = { .id = MSG_THREAD };
	int r;

	if (!t)
		return NAMED_UNDEFINED;
	/* The process may have changed since. */
	r = named_send_process(n, t->def.process, now_ns, true);
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
static int send_function(struct named *n, const struct function *f, uint64_t *ret_id)
{
	bool fresh;
	int r = functions_intern(&n->functions, f, ret_id, &fresh);

	if (r == -ENOBUFS || r == -ENOMEM) {
		r = named_restart(n);
		return r ? r : NAMED_RESTARTED;
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

/* Adds the functions and lines in n->names to a frame, by way of n->list. */
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

/* Counts a frame that is sent without its name for want of memory. */
static int unnamed(struct named *n)
{
	n->counts.unnamed++;
	return 0;
}

static bool has_name(const struct names *n)
{
	for (unsigned i = 0; i < n->count; i++)
		if (n->calls[i].name.len)
			return true;
	return false;
}

/* Requests a file that the program wants before a lookup can go on. False: go on now. */
static bool complete(struct named *n, uint64_t file, uint64_t now_ns)
{
	struct def_file *f = definitions_find_file(&n->defs, file);

	return f && filestore_complete(n->files, &f->store, now_ns) == FILESTORE_WAIT;
}

/* Fills functions and lines of a frame that came without names; if unknown, its function's start.
 */
static int name_frame(struct named *n, const struct def_frame *f, struct msg_frame *m,
		      uint64_t now_ns)
{
	bool exact = f->flags & (FRAME_LEAF | FRAME_SIGNAL);
	struct program *program;
	struct def_file *file;
	uint64_t address, back = exact || f->offset == 0 ? 0 : 1;
	bool waits = false;
	int r;

	r = send_file(n, f->file, now_ns, &program);
	if (r || !program)
		return r;

	const uint64_t former = lastword_begin(LASTWORD_FILE, f->file);
	const bool mapped = program_address(program, f->offset - back, &address) == 0;

	if (mapped) {
		m->address = address + back;
		do
			r = program_lookup(program, address, &n->names);
		while (r == PROGRAM_AGAIN && !(waits = complete(n, f->file, now_ns)));
		if (r == SYMFILE_NONE || (r == 0 && !has_name(&n->names))) {
			const int lookup = r;

			r = program_start(program, address, &m->start);
			r = r == -ENOMEM ? r : lookup;
		}
	}
	lastword_back(former);
	if (!mapped)
		return 0;
	file = definitions_find_file(&n->defs, f->file);
	if (file)
		filestore_charge(n->files, &file->store);
	if (waits)
		return NAMED_WAIT;
	if (r == -ENOMEM)
		return unnamed(n);
	if (r)
		return r < 0 ? r : 0;
	return add_names(n, m);
}

/* The same for generated code of f->process. NAMED_HOLD: it has no name yet. */
static int name_generated(struct named *n, const struct def_frame *f, struct msg_frame *m,
			  uint64_t now_ns)
{
	bool exact = f->flags & (FRAME_LEAF | FRAME_SIGNAL);
	const struct def_process *p = definitions_find_process(&n->defs, f->process);
	int r;

	if (!n->jit || !p)
		return 0;

	const uint64_t former = lastword_begin(LASTWORD_PROCESS, f->process);

	r = jit_lookup(n->jit, f->process, (uint32_t)p->def.pid, f->offset - (exact ? 0 : 1),
		       n->sample_ns, now_ns, &n->names);
	lastword_back(former);
	if (r == 0)
		return add_names(n, m);
	if (r == -ENOMEM)
		return unnamed(n);
	if (r < 0)
		return r;
	n->lacking = f->process;
	return n->give_up ? 0 : NAMED_HOLD;
}

/* Passes on the functions that a frame came with, by our ids. Drops functions without a name. */
static int pass_names(struct named *n, const struct def_frame *f, struct msg_frame *m)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < f->count && count < NAMES_MAX; i++) {
		const struct def_function *raw = idtable_get(&n->defs.functions,
							     n->defs.numbers[f->numbers + i]);
		int r;

		if (!raw)
			return NAMED_UNDEFINED;
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

/* The same for an interpreted frame. NAMED_WAIT, NAMED_HIDDEN. */
static int name_interpreted(struct named *n, struct def_frame *f, struct msg_frame *m,
			    uint64_t now_ns)
{
	const struct def_process *p = definitions_find_process(&n->defs, f->process);
	int r = f->file ? send_file(n, f->file, now_ns, NULL) : 0;

	if (r)
		return r;
	const struct runtime_build *b = named_build_of(n, f);
	f->lacks = false;
	if (!b || !p || !n->objects)
		return 0;
	r = objects_lookup(n->objects, b, f->process, (uint32_t)p->def.pid, f->offset, f->mark,
			   n->give_up, now_ns, &n->names);
	f->lacks = r == OBJECTS_UNNAMED;
	if (r == OBJECTS_LATER)
		return NAMED_WAIT;
	if (r == OBJECTS_HIDDEN)
		return NAMED_HIDDEN;
	if (r == -ENOMEM)
		return unnamed(n);
	return r == 0 || r == OBJECTS_UNNAMED ? add_names(n, m) : r;
}

/* strange: the frame's address is not mapped. */
static int send_frame(struct named *n, uint64_t id, bool strange, uint64_t now_ns)
{
	struct def_frame *f = definitions_find_frame(&n->defs, id);
	struct msg m = { .id = MSG_FRAME };
	int r = 0;

	if (!f)
		return NAMED_UNDEFINED;
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
		r = named_send_process(n, f->process, now_ns, true);
	if (r == 0 && f->count > 0)
		r = pass_names(n, f, &m.frame);
	else if (r == 0 && f->kind == FRAME_INTERPRETED)
		r = name_interpreted(n, f, &m.frame, now_ns);
	else if (r == 0 && f->kind == FRAME_NATIVE && f->file)
		r = name_frame(n, f, &m.frame, now_ns);
	else if (r == 0 && f->process && f->kind == FRAME_NATIVE && !strange)
		r = name_generated(n, f, &m.frame, now_ns);
	if (r == NAMED_HIDDEN) {
		f->hidden = true;
		f->sent = n->epoch;
		return 0;
	}
	if (r == 0 && f->file && (f->count > 0 || f->kind > FRAME_INTERPRETED))
		r = send_file(n, f->file, now_ns, NULL);
	if (r)
		return r;
	r = stream_put(n->out, &m);
	if (r == 0) {
		f->sent = n->epoch;
		n->counts.named_frames += m.frame.functions.len > 0;
	}
	return r;
}

/* Whether a frame of the stack has its name now, but lacked it when the stack was sent. Then both
 * are sent again. Waits for nothing. */
static bool names_came(struct named *n, const struct def_stack *s, uint64_t now_ns)
{
	uint32_t lacking = 0;

	for (uint32_t i = 0; i < s->count; i++) {
		struct def_frame *f = definitions_find_frame(&n->defs,
							     n->defs.numbers[s->numbers + i]);

		if (!f || !f->lacks)
			continue;
		const struct runtime_build *b = named_build_of(n, f);
		const struct def_process *p = definitions_find_process(&n->defs, f->process);

		if (b && p &&
		    objects_lookup(n->objects, b, f->process, (uint32_t)p->def.pid, f->offset,
				   f->mark, true, now_ns, &n->names) == OBJECTS_UNNAMED)
			lacking++;
		else
			f->sent = 0;
	}
	return lacking < s->lacking;
}

int named_send_stack(struct named *n, uint64_t id, uint64_t now_ns)
{
	struct def_stack *s = idtable_get(&n->defs.stacks, id);
	struct msg m = { .id = MSG_STACK };
	uint32_t shown = 0, lacking = 0;
	int r;

	if (!s)
		return NAMED_UNDEFINED;
	if (s->sent == n->epoch && !(s->lacking && names_came(n, s, now_ns)))
		return 0;
	for (uint32_t i = 0; i < s->count; i++) {
		bool strange = s->reason == WALK_NO_MAPPING && i + 1 == s->count;
		uint64_t frame = n->defs.numbers[s->numbers + i];

		r = send_frame(n, frame, strange, now_ns);
		if (r)
			return r;
		const struct def_frame *f = definitions_find_frame(&n->defs, frame);

		if (f && !f->hidden && shown < NAMED_STACK_FRAMES)
			n->shown[shown++] = frame;
		lacking += f && f->lacks;
	}
	m.stack = (struct msg_stack){ .id = id,
				      .frames = { .data = n->shown, .len = shown },
				      .reason = s->reason };
	if (s->at_file) {
		r = send_file(n, s->at_file, now_ns, NULL);
		if (r != 0 && r != NAMED_UNDEFINED)
			return r;
		m.stack.at_file = r == 0 ? s->at_file : 0;
	}
	r = stream_put(n->out, &m);
	if (r)
		return r;
	s->sent = n->epoch;
	s->lacking = lacking;
	return 0;
}
