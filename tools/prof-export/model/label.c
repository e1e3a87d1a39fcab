/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-export/model/label.h"

#include <inttypes.h>
#include "common/base/command/log.h"
#include "common/wire/marks.h"
#include "common/wire/reason.h"

static uint32_t run_length(struct str s, bool plain)
{
	uint32_t n = 0;

	while (n < s.len && (s.data[n] >= ' ' && s.data[n] <= '~') == plain)
		n++;
	return n;
}

/* Escapes blanks at both ends, which readers of folded stacks may trim. */
static int append_blanks(struct buf *b, uint32_t n)
{
	int r = 0;

	for (; !r && n; n--)
		r = buf_append_str(b, "\\x20");
	return r;
}

int label_escape(struct buf *b, struct str s)
{
	bool plain = true;
	uint32_t before = 0, behind = 0;

	if (!s.len)
		return 0;
	while (before < s.len && s.data[before] == ' ')
		before++;
	while (behind < s.len - before && s.data[s.len - 1 - behind] == ' ')
		behind++;
	int r = append_blanks(b, before);

	s.data += before;
	s.len -= before + behind;

	/* log_escape doubles backslashes, which names in PHP and systemd contain. So pass it only
	 * what is not printable ASCII. This never splits a UTF-8 sequence. */
	for (; !r && s.len; plain = !plain) {
		const uint32_t n = run_length(s, plain);

		r = plain ? buf_append(b, s.data, n)
			  : log_escape(b, (struct str){ .data = s.data, .len = n }, SIZE_MAX);
		s.data += n;
		s.len -= n;
	}
	return r ? r : append_blanks(b, behind);
}

/* --- marks --- */

/* Puts a backslash at this place of b. */
static int insert_backslash(struct buf *b, size_t at)
{
	const int r = buf_append(b, "\\", 1);

	if (r)
		return r;
	memmove(b->data + at + 1, b->data + at, b->len - 1 - at);
	b->data[at] = '\\';
	return 0;
}

/* Whether s begins like a mark in brackets: `[truncated: …` or `[file+0x…`. In folded stacks, `:`
 * replaces `;`. */
static bool has_head(struct str s)
{
	return str_starts(s, "[truncated:") || str_starts(s, "[truncated;") ||
	       (str_starts(s, "[") && memmem(s.data, s.len, "+0x", 3));
}

/* Whether s is a word by which other profilers and their readers mean "no name". */
static bool is_word(struct str s)
{
	static const char *const words[] = { "[unknown]",  "[lost]", "[vdso]",
					     "[vsyscall]", "[anon]", "[kernel.kallsyms]" };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (str_eq(s, str_from(words[i])))
			return true;
	return false;
}

static int guard_name(struct buf *b, size_t from, bool interpreted)
{
	const struct str s = { .data = (const char *)b->data + from,
			       .len = (uint32_t)(b->len - from) };
	/* prof-symd has guarded the names of interpreted frames against marks of kinds of code. */
	const size_t kernel = marks_bracket(s, MARKS_KERNEL),
		     tail = kernel || interpreted ? kernel : marks_code_bracket(s);
	uint32_t head = 0;

	/* A name that already has backslashes there gets another one, so that different names never
	 * look alike. */
	while (head < s.len && s.data[head] == '\\')
		head++;
	const struct str rest = { .data = s.data + head, .len = s.len - head };
	const bool guard_head = has_head(rest) || is_word(rest) ||
				(!interpreted && marks_is_placeholder(rest));
	int r = tail ? insert_backslash(b, from + tail) : 0;

	if (!r && guard_head)
		r = insert_backslash(b, from);
	return r;
}

int label_name(struct buf *b, struct str s)
{
	const size_t from = b->len;
	const int r = label_escape(b, s);

	return r ? r : guard_name(b, from, true);
}

/* Escapes a file name in brackets that looks like one of the words for "no file". */
static int guard_file(struct buf *b, size_t from)
{
	static const char *const whole[] = { "anon", "kernel", "interpreted" };
	struct str s = { .data = (const char *)b->data + from, .len = (uint32_t)(b->len - from) };
	bool ours;

	while (s.len && *s.data == '\\') {
		s.data++;
		s.len--;
	}
	ours = str_starts(s, "truncated:") || str_starts(s, "truncated;");
	if (str_starts(s, "kind-")) {
		uint32_t n = 5;

		while (n < s.len && s.data[n] >= '0' && s.data[n] <= '9')
			n++;
		ours = n == s.len;
	}
	for (size_t i = 0; i < sizeof(whole) / sizeof(whole[0]); i++)
		ours |= str_eq(s, str_from(whole[i]));
	return ours ? insert_backslash(b, from) : 0;
}

/* --- labels --- */

/* Labels a frame by the start of its function, or else by its address. */
static int unnamed(struct buf *b, const struct definitions *d, const struct model_frame *f)
{
	const uint64_t address = f->start ? f->start : f->address ? f->address : f->offset;
	struct str name = STR_LIT("anon");
	bool foreign = false;

	if (f->kind == MODEL_KERNEL)
		name = STR_LIT("kernel");
	else if (f->kind == MODEL_INTERPRETED)
		name = STR_LIT("interpreted");
	else if (f->kind != MODEL_NATIVE)
		return buf_printf(b, "[kind-%u+0x%" PRIx64 "]", f->kind, address);
	else if (f->file != MODEL_NONE)
		name = str_base_name(table_strings_get(&d->strings, d->files.data[f->file].path));
	foreign = f->kind == MODEL_NATIVE && f->file != MODEL_NONE;
	if (!name.len)
		name = STR_LIT("file");
	/* [vdso] has brackets already. */
	if (name.len > 2 && name.data[0] == '[' && name.data[name.len - 1] == ']')
		name = (struct str){ .data = name.data + 1, .len = name.len - 2 };
	int r = buf_append(b, "[", 1);
	const size_t from = b->len;

	if (!r)
		r = label_escape(b, name);
	if (!r && foreign)
		r = guard_file(b, from);
	return r ? r : buf_printf(b, "+0x%" PRIx64 "]", address);
}

int label_plain(struct buf *b, const struct definitions *d, const struct model_frame *f, unsigned i)
{
	if (f->kind == MODEL_TRUNCATED)
		return buf_printf(b, "[truncated: %s]", reason_walk_word(f->offset));
	if (f->count) {
		const size_t before = b->len;

		int r = label_escape(
			b,
			table_strings_get(&d->strings,
					  d->functions.data[d->numbers.data[f->calls + i]].name));

		if (!r)
			r = guard_name(b, before, f->kind == MODEL_INTERPRETED);

		if (r || b->len > before)
			return r;
	}
	return unnamed(b, d, f);
}

int label_call(struct buf *b, const struct definitions *d, const struct model_frame *f, unsigned i)
{
	int r = label_plain(b, d, f, i);

	return r || f->kind != MODEL_KERNEL ? r : buf_append_str(b, MARKS_KERNEL);
}

int label_where(struct buf *b, const struct model_frame *f)
{
	if (!f->start)
		return 0;
	if (f->offset == f->address)
		return buf_printf(b, "at 0x%" PRIx64, f->address);
	return buf_printf(b, "from 0x%" PRIx64 " to 0x%" PRIx64, f->offset, f->address);
}

/* Whether s is this word followed by a number, like the label of a process without a name. */
static bool is_numbered(struct str s, const char *word)
{
	uint32_t n = (uint32_t)strlen(word);

	if (s.len <= n || !str_starts(s, word))
		return false;
	while (n < s.len && s.data[n] >= '0' && s.data[n] <= '9')
		n++;
	return n == s.len;
}

int label_comm(struct buf *b, struct str s)
{
	const size_t from = b->len;
	const int r = label_name(b, s);
	struct str rest = { .data = (const char *)b->data + from,
			    .len = (uint32_t)(b->len - from) };

	if (r)
		return r;
	while (rest.len && *rest.data == '\\') {
		rest.data++;
		rest.len--;
	}
	return is_numbered(rest, "pid-") || is_numbered(rest, "tid-") ? insert_backslash(b, from)
								      : 0;
}

int label_process(struct buf *b, const struct definitions *d, uint32_t process)
{
	if (process == MODEL_NONE)
		return buf_append_str(b, "[unknown]");
	const struct str comm = table_strings_get(&d->strings, d->processes.data[process].comm);

	return comm.len ? label_comm(b, comm)
			: buf_printf(b, "pid-%" PRIu64, d->processes.data[process].pid);
}

int label_thread(struct buf *b, const struct definitions *d, uint32_t thread)
{
	if (thread == MODEL_NONE)
		return buf_append_str(b, "[unknown]");
	const struct str comm = table_strings_get(&d->strings, d->threads.data[thread].comm);

	return comm.len ? label_comm(b, comm)
			: buf_printf(b, "tid-%" PRIu64, d->threads.data[thread].tid);
}

int label_binary(struct buf *b, const struct definitions *d, const struct model_frame *f)
{
	if (f->kind == MODEL_KERNEL) {
		struct str module = { 0 };

		if (f->count)
			module = table_strings_get(
				&d->strings, d->functions.data[d->numbers.data[f->calls]].source);
		if (!module.len || str_eq(module, STR_LIT("kernel")) ||
		    str_eq(module, STR_LIT("vmlinux")))
			return buf_append_str(b, "[kernel.kallsyms]");
		/* Module names of kallsyms have brackets; those of other sources have none. */
		const bool bare = module.data[0] != '[';
		int r = bare ? buf_append(b, "[", 1) : 0;

		if (!r)
			r = label_escape(b, module);
		return !r && bare ? buf_append(b, "]", 1) : r;
	}
	if (f->kind == MODEL_INTERPRETED)
		return buf_append_str(b, "[interpreted]");
	if (f->file == MODEL_NONE)
		return buf_append_str(b, f->kind == MODEL_TRUNCATED ? "[truncated]" : "[anon]");
	const struct str path = table_strings_get(&d->strings, d->files.data[f->file].path);

	return path.len ? label_escape(b, path) : buf_append_str(b, "[file]");
}
