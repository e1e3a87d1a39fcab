/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-dump/print.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/command/log.h"
#include "common/names/program/program.h"
#include "common/wire/msg.h"
#include "common/wire/reason.h"
#include "tools/prof-dump/names/generated.h"
#include "tools/prof-dump/names/runtimes.h"
#include "tools/prof-dump/process/message.h"

#define FLUSH 65536 /* most bytes of lines held back */

int printer_init(struct printer *p, const struct space *s, int socket, bool names, bool inlined)
{
	*p = (struct printer){ .space = s,
			       .socket = socket,
			       .names = names,
			       .inlined = inlined,
			       .files = s->file_count };
	p->programs = calloc(p->files + 1u, sizeof(struct program *));
	p->tried = calloc(p->files + 1u, sizeof(*p->tried));
	p->calls = calloc(1, sizeof(*p->calls));
	int r = p->programs && p->tried && p->calls ? runtimes_new(s, &p->runtimes) : -ENOMEM;

	if (r)
		printer_done(p);
	return r;
}

void printer_done(struct printer *p)
{
	for (uint32_t i = 0; p->programs && i < p->files; i++)
		program_free(p->programs[i]);
	free(p->programs);
	free(p->tried);
	free(p->calls);
	runtimes_free(p->runtimes);
	buf_done(&p->line);
	*p = (struct printer){ 0 };
}

/* Closes programs other than `keep` when all together use too much memory. */
static void trim(struct printer *p, uint32_t keep)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < p->files; i++)
		bytes += p->programs[i] ? program_bytes(p->programs[i]) : 0;
	for (uint32_t i = 0; bytes > PRINT_MEMORY && i < p->files; i++) {
		if (i == keep)
			continue;
		program_free(p->programs[i]);
		p->programs[i] = NULL;
		p->tried[i] = false;
	}
}

/* Asks the other half for a file. Returns a descriptor or -1. */
static int ask(const struct printer *p, enum program_want want, struct span id, const char *name,
	       const char *path)
{
	static struct message m;
	const size_t name_len = name ? strlen(name) : 0, path_len = strlen(path);
	int fd = -1;

	if (id.len > sizeof(m.debug.id) || name_len + 1 + path_len >= sizeof(m.text))
		return -1;
	m = (struct message){ .kind = MESSAGE_DEBUG,
			      .debug = { .want = want, .id_len = (uint32_t)id.len },
			      .text_len = (uint32_t)(name_len + 1 + path_len) };
	if (id.len)
		memcpy(m.debug.id, id.data, id.len);
	if (name_len)
		memcpy(m.text, name, name_len);
	memcpy(m.text + name_len + 1, path, path_len);
	return message_send(p->socket, &m, -1) || message_receive(p->socket, -1, &m, &fd) ? -1 : fd;
}

static void complete(struct printer *p, struct program *program, const char *path)
{
	struct span id;
	const char *name;

	for (;;) {
		const enum program_want want = program_wants(program, &id, &name);

		if (want == PROGRAM_WANTS_NOTHING || want == PROGRAM_WANTS_LATER)
			return;
		/* There is only one place. */
		program_offer(program,
			      program_refused(program) ? -1 : ask(p, want, id, name, path));
	}
}

/* Returns NULL if the file has no names. */
static struct program *program_of(struct printer *p, uint32_t file)
{
	const struct space_file *f = &p->space->files[file];

	if (p->tried[file])
		return p->programs[file];
	trim(p, file);
	p->tried[file] = true;
	int fd = f->fd < 0 ? -1 : fcntl(f->fd, F_DUPFD_CLOEXEC, 3);

	if (fd < 0 || program_open(fd, PROGRAM_OF_OTHERS, PRINT_DWARF, &p->programs[file]))
		return NULL;
	complete(p, p->programs[file], f->path);
	return p->programs[file];
}

static int put_source(struct buf *b, struct str source, uint64_t line)
{
	if (!source.len)
		return 0;
	int r = buf_append(b, " ", 1);
	size_t from = b->len, blanks = 0;

	if (!r)
		r = log_escape(b, source, NAMES_TEXT);
	for (size_t i = from; i < b->len; i++)
		blanks += b->data[i] == ' ';
	if (!r)
		r = buf_reserve(b, 3 * blanks);
	if (r)
		return r;
	b->len += 3 * blanks;
	/* Backwards, so that it works in place: each blank becomes \x20. */
	for (size_t to = b->len, i = to - 3 * blanks; blanks && i-- > from;) {
		if (b->data[i] == ' ') {
			to -= 4;
			memcpy(b->data + to, "\\x20", 4);
		} else {
			b->data[--to] = b->data[i];
		}
	}
	return line ? buf_printf(b, ":%" PRIu64, line) : 0;
}

/* Appends a frame that has no name. */
static int put_unnamed(struct buf *b, const char *path, uint64_t address)
{
	const char *slash = strrchr(path, '/');
	struct str name = str_from(slash && slash[1] ? slash + 1 : path);

	/* [vdso] has brackets already. */
	if (name.len > 2 && name.data[0] == '[' && name.data[name.len - 1] == ']')
		name = (struct str){ .data = name.data + 1, .len = name.len - 2 };
	int r = buf_append(b, "[", 1);

	if (!r)
		r = log_escape(b, name, NAMES_TEXT);
	return r ? r : buf_printf(b, "+0x%" PRIx64 "]", address);
}

static int put_head(struct buf *b, uint64_t *number, uint64_t pc)
{
	return buf_printf(b, "%" PRIu64 " 0x%016" PRIx64, (*number)++, pc);
}

/* Appends the lines of one frame. Inlined calls come first, each with the frame's address. */
static int put_frame(struct printer *p, const struct stack_frame *f, uint64_t *number)
{
	struct buf *b = &p->line;
	/* A return address may be the first byte of the next function. */
	uint64_t pc = f->exact ? f->pc : f->pc - 1;
	const struct space_mapping *m = space_at(p->space, pc);
	struct program *program = NULL;
	const char *path = "anon";
	uint64_t address = f->pc, at;
	int r;

	if (!p->names) {
		r = put_head(b, number, f->pc);
		return r ? r : buf_append(b, "\n", 1);
	}
	p->calls->count = 0;
	if (m && m->file != SPACE_NO_FILE) {
		path = p->space->files[m->file].path;
		address = f->pc - m->start + m->offset;
		program = program_of(p, m->file);
	}
	if (program && program_address(program, pc - m->start + m->offset, &at) == 0) {
		address = at + (f->pc - pc);
		int found = program_lookup(program, at, p->calls);

		while (found == VERDICT_AGAIN) {
			complete(p, program, path);
			found = program_lookup(program, at, p->calls);
		}
		if (found)
			p->calls->count = 0;
	}
	/* Code in a mapped file that is no program was generated into it. */
	r = !program && p->generated ? generated_lookup(p->generated, pc, p->calls) : 0;
	if (r > 0)
		r = 0;
	for (unsigned i = 0; !r && i < p->calls->count; i++) {
		const struct names_call *c = &p->calls->calls[i];

		if (!p->inlined && i + 1 < p->calls->count)
			continue;
		r = put_head(b, number, f->pc);
		if (!r)
			r = buf_append(b, " ", 1);
		if (!r)
			r = c->name.len ? log_escape(b, c->name, NAMES_TEXT)
					: put_unnamed(b, path, address);
		if (!r)
			r = put_source(b, c->source, c->line);
		if (!r)
			r = buf_append(b, "\n", 1);
	}
	if (!r && !p->calls->count) {
		r = put_head(b, number, f->pc);
		if (!r)
			r = buf_append(b, " ", 1);
		if (!r)
			r = put_unnamed(b, path, address);
		if (!r)
			r = buf_append(b, "\n", 1);
	}
	return r;
}

static int put_call(struct printer *p, struct str name, struct str source, uint64_t line,
		    uint64_t pc, uint64_t *number)
{
	struct buf *b = &p->line;
	int r = put_head(b, number, pc);

	if (!r)
		r = buf_append(b, " ", 1);
	if (!r)
		r = log_escape(b, name, NAMES_TEXT);
	if (!r)
		r = put_source(b, source, line);
	return r ? r : buf_append(b, "\n", 1);
}

static int put_interpreted(struct printer *p, const struct runtimes_name *n,
			   const struct stack_frame *f, uint64_t *number)
{
	int r = 0;

	for (unsigned i = 0; !r && p->inlined && i < n->inlined_count; i++) {
		const struct runtime_call *c = &n->inlined[i];

		r = put_call(p, c->name, c->source, c->line, f->pc, number);
	}
	return r ? r : put_call(p, n->name, n->source, n->line, f->pc, number);
}

static int flush(struct printer *p, FILE *to)
{
	size_t n = p->line.len;

	if (n && fwrite(p->line.data, 1, n, to) != n)
		return -EIO;
	buf_reset(&p->line);
	return 0;
}

/* Decides which frames to hide: objects of a runtime itself, and native frames of its loop that run
 * the interpreted frame behind them. Returns 0 or -ENOMEM. */
static int choose(struct printer *p, const struct stack *s, bool *hidden)
{
	struct runtimes_name name;
	bool interpreted = false; /* the next shown frame toward the root, no loop frame */

	for (uint32_t i = s->count; i-- > 0;) {
		const struct stack_frame *f = &s->frames[i];

		if (f->interpreted) {
			int r = runtimes_lookup(p->runtimes, f, &name);

			if (r < 0)
				return r;
			hidden[i] = name.hidden;
			interpreted |= !name.hidden;
		} else if (f->loop) {
			hidden[i] = interpreted && !p->interpreter;
		} else {
			interpreted = false;
		}
	}
	return 0;
}

int printer_stack(struct printer *p, const struct stack *s, FILE *to)
{
	uint64_t number = 0;
	bool *hidden = calloc(s->count + 1u, sizeof(*hidden));
	struct runtimes_name name;
	int r = hidden ? choose(p, s, hidden) : -ENOMEM;

	if (!r)
		r = buf_printf(&p->line, "thread %" PRIu32 "\n", s->tid);
	for (uint32_t i = 0; !r && i < s->count; i++) {
		const struct stack_frame *f = &s->frames[i];

		if (hidden[i])
			continue;
		if (f->interpreted) {
			r = runtimes_lookup(p->runtimes, f, &name);
			if (!r)
				r = put_interpreted(p, &name, f, &number);
		} else {
			r = put_frame(p, f, &number);
		}
		if (!r && p->line.len > FLUSH)
			r = flush(p, to);
	}
	free(hidden);
	if (!r && s->reason != WALK_COMPLETE)
		r = buf_printf(&p->line, "  … truncated: %s\n", reason_walk_word(s->reason));
	return r ? r : flush(p, to);
}
