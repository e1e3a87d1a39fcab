/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON strings are labels (label.h), with `"`, `\` and `<` escaped, so no name can end its string
 * or the element around it. The tree is written directly from the sorted paths, one pass for each
 * column.
 */
#include "tools/prof-export/page/html.h"

#include <errno.h>
#include <inttypes.h>
#include "common/status/account.h"
#include "tools/prof-export/model/label.h"
#include "tools/prof-export/model/paths/namesakes.h"
#include "tools/prof-export/model/paths/paths.h"

extern const char html_head[], html_head_end[], html_tail[], html_tail_end[];

enum page_kind {
	PAGE_NATIVE,
	PAGE_KERNEL,
	PAGE_TRUNCATED,
	PAGE_INLINED,
	PAGE_UNNAMED,
	PAGE_PROCESS,
	PAGE_INTERPRETED
};

struct page {
	const struct model *m;
	struct output *o;
	struct buf name;
	struct pool pool;
	struct table_strings strings;
	size_t frames, comms; /* comms: process names, numbered after the frames */
	uint32_t *comm_name;  /* strings */
	uint32_t *process_label;
	uint32_t *frame_name, *frame_binary, *frame_source, *frame_where; /* strings */
	struct paths paths;
	int error;
};

/* --- JSON --- */

static void json_text(struct output *o, struct str s)
{
	size_t from = 0;

	for (size_t i = 0; i < s.len; i++) {
		const unsigned char c = (unsigned char)s.data[i];

		if (c != '"' && c != '\\' && c != '<' && c != '>' && c != '&' && c >= 0x20)
			continue;
		output_put(o, s.data + from, i - from);
		output_printf(o, "\\u%04x", c);
		from = i + 1;
	}
	output_put(o, s.data + from, s.len - from);
}

static void json_escaped(struct page *p, const char *key, struct str s)
{
	buf_reset(&p->name);
	if (!p->error)
		p->error = label_escape(&p->name, s);
	output_printf(p->o, "\"%s\":\"", key);
	json_text(p->o, (struct str){ .data = (char *)p->name.data, .len = (uint32_t)p->name.len });
	output_str(p->o, "\",\n");
}

static void json_number(struct page *p, const char *key, uint64_t n)
{
	output_printf(p->o, "\"%s\":%" PRIu64 ",\n", key, n);
}

/* Each line is [word, text, count]; a remedy is [word, text, count, what]. */
static void put_lines(struct page *p, const struct account_line *lines, size_t n,
		      enum account_kind kind)
{
	const char *comma = "";

	output_printf(p->o, "\"%s\":[", account_word(kind));
	for (size_t i = 0; i < n; i++) {
		const struct account_line *l = &lines[i];

		if (l->kind != kind)
			continue;
		output_printf(p->o, "%s[\"%s\",\"%s\",%" PRIu64, comma, l->word, l->text, l->count);
		if (l->what)
			output_printf(p->o, ",\"%s\"", l->what);
		output_str(p->o, "]");
		comma = ",";
	}
	output_str(p->o, "]");
}

static void put_notes(struct page *p, const struct status *st)
{
	char notes[ACCOUNT_NOTES][ACCOUNT_NOTE];
	const size_t n = account_notes(st, notes);

	output_str(p->o, "\"notes\":[");
	for (size_t i = 0; i < n; i++)
		output_printf(p->o, "%s\"%s\"", i ? "," : "", notes[i]);
	output_str(p->o, "],\n");
}

static void put_header(struct page *p)
{
	const struct model_header *h = model_header(p->m);
	const struct model_totals *t = model_totals(p->m);

	output_str(p->o, "\"header\":{\n");
	json_escaped(p, "producer", h->producer);
	json_escaped(p, "host", h->hostname);
	json_escaped(p, "kernel", h->kernel);
	json_escaped(p, "arch", h->arch);
	json_escaped(p, "event", h->event);
	json_number(p, "cpus", h->cpus);
	json_number(p, "hz", h->hz);
	json_number(p, "startMs", model_start_wall_ns(p->m) / 1000000u);
	json_number(p, "durationMs", model_duration_ns(p->m) / 1000000u);
	json_number(p, "samples", t->samples);
	json_number(p, "userStacks", t->user_stacks);
	json_number(p, "processes", t->processes);
	json_number(p, "threads", t->threads);
	json_number(p, "ended", model_ended_well(p->m));
	struct account_line lines[ACCOUNT_LINES];
	char share[ACCOUNT_SHARE];
	struct status st;

	model_status(p->m, &st, false);
	const size_t n = account_lines(&st, lines);

	account_share(share, st.complete, st.samples);
	json_number(p, "completeStacks", st.complete);
	output_printf(p->o, "\"complete\":\"%s\",\n\"loss\":\"%s\",\n", share, account_loss(&st));
	put_notes(p, &st);
	for (int kind = 0; kind < ACCOUNT_KINDS; kind++) {
		output_str(p->o, kind ? ",\n" : "");
		put_lines(p, lines, n, (enum account_kind)kind);
	}
	output_str(p->o, "},\n");
}

/* --- columns --- */

/* Writes `,` before each element but the first. */
static void separate(struct output *o, bool *begun)
{
	if (*begun)
		output_put(o, ",", 1);
	*begun = true;
}

static void put_u32(struct output *o, uint32_t n)
{
	char digits[10];
	size_t at = sizeof(digits);

	do {
		digits[--at] = (char)('0' + n % 10);
		n /= 10;
	} while (n);
	output_put(o, digits + at, sizeof(digits) - at);
}

static void put_column(struct page *p, const char *key, const uint32_t *first, size_t n,
		       const uint32_t *then, size_t more, const char *end)
{
	bool begun = false;

	output_printf(p->o, "\"%s\":[", key);
	for (size_t i = 0; i < n + more; i++) {
		separate(p->o, &begun);
		put_u32(p->o, i < n ? first[i] : then ? then[i - n] : 0);
	}
	output_printf(p->o, "]%s", end);
}

static uint32_t take_name(struct page *p, int r)
{
	uint32_t i = 0;

	if (!p->error)
		p->error = r;
	if (!p->error &&
	    table_strings_intern(
		    &p->strings, &p->pool,
		    (struct str){ .data = (char *)p->name.data, .len = (uint32_t)p->name.len }, &i))
		p->error = -ENOMEM;
	buf_reset(&p->name);
	return i;
}

/* Numbers the names of frames and processes for the page. */
static void make_names(struct page *p)
{
	const struct model_frame *frames;
	const struct model_function *functions;
	const struct model_process *processes;
	const size_t np = model_processes(p->m, &processes);
	uint32_t *comm_of = NULL; /* by string: number of the process name */
	struct namesakes namesakes;

	p->frames = model_frames(p->m, &frames);
	model_functions(p->m, &functions);
	p->frame_name = reallocarray(NULL, p->frames + 1, sizeof(uint32_t));
	p->frame_binary = reallocarray(NULL, p->frames + 1, sizeof(uint32_t));
	p->frame_source = reallocarray(NULL, p->frames + 1, sizeof(uint32_t));
	p->frame_where = reallocarray(NULL, p->frames + 1, sizeof(uint32_t));
	p->process_label = reallocarray(NULL, np + 1, sizeof(uint32_t));
	p->comm_name = reallocarray(NULL, np + 1, sizeof(uint32_t));
	if (!p->frame_name || !p->frame_binary || !p->frame_source || !p->frame_where ||
	    !p->process_label || !p->comm_name)
		p->error = -ENOMEM;
	const int r = namesakes_find(&namesakes, p->m);

	if (!p->error)
		p->error = r;
	take_name(p, 0); /* string 0 is the empty one */
	/* Add process names first, while the table contains nothing else. */
	for (size_t i = 0; !p->error && i <= np; i++) {
		buf_reset(&p->name);
		p->process_label[i] = take_name(p,
						label_process(&p->name, model_definitions(p->m),
							      i < np ? (uint32_t)i : MODEL_NONE));
	}
	comm_of = reallocarray(NULL, p->strings.len + 1, sizeof(uint32_t));
	if (!comm_of && !p->error)
		p->error = -ENOMEM;
	for (size_t i = 0; !p->error && i < p->strings.len; i++)
		comm_of[i] = MODEL_NONE;
	for (size_t i = 0; !p->error && i <= np; i++) {
		const uint32_t name = p->process_label[i];

		if (comm_of[name] == MODEL_NONE) {
			comm_of[name] = (uint32_t)p->comms;
			p->comm_name[p->comms++] = name;
		}
		p->process_label[i] = (uint32_t)p->frames + comm_of[name];
	}
	free(comm_of);
	for (size_t i = 0; !p->error && i < p->frames; i++) {
		const struct model_frame *f = &frames[i];

		p->frame_name[i] = take_name(p, namesakes_label(&namesakes, &p->name, p->m, f));
		p->frame_binary[i] =
			f->kind == MODEL_TRUNCATED && f->file == MODEL_NONE
				? 0
				: take_name(p, label_binary(&p->name, model_definitions(p->m), f));
		p->frame_where[i] = take_name(p, label_where(&p->name, f));
		p->frame_source[i] = 0;
		if (f->count && f->kind != MODEL_KERNEL)
			p->frame_source[i] = take_name(
				p, label_escape(&p->name,
						model_string(p->m,
							     functions[*model_functions_of(p->m, f)]
								     .source)));
	}
	namesakes_done(&namesakes);
}

static void put_names(struct page *p)
{
	const struct model_frame *frames;
	const struct model_function *functions;
	bool begun = false;

	model_frames(p->m, &frames);
	model_functions(p->m, &functions);
	output_str(p->o, "\"frames\":{\n");
	put_column(p, "name", p->frame_name, p->frames, p->comm_name, p->comms, ",\n");
	put_column(p, "binary", p->frame_binary, p->frames, NULL, p->comms, ",\n");
	put_column(p, "where", p->frame_where, p->frames, NULL, p->comms, ",\n");
	put_column(p, "source", p->frame_source, p->frames, NULL, p->comms, ",\n\"line\":[");
	for (size_t i = 0; i < p->frames + p->comms; i++) {
		separate(p->o, &begun);
		put_u32(p->o, i < p->frames && frames[i].count
				      ? functions[*model_functions_of(p->m, &frames[i])].start_line
				      : 0);
	}
	/* Writes the line numbers that ran in interpreted frames, if the model keeps them. */
	output_str(p->o, "],\n\"at\":[");
	begun = false;
	for (size_t i = 0; i < p->frames + p->comms; i++) {
		separate(p->o, &begun);
		put_u32(p->o,
			i < p->frames && frames[i].count && frames[i].kind == MODEL_INTERPRETED
				? *model_lines_of(p->m, &frames[i])
				: 0);
	}
	output_str(p->o, "],\n\"kind\":[");
	begun = false;
	for (size_t i = 0; i < p->frames + p->comms; i++) {
		enum page_kind kind = PAGE_PROCESS;

		if (i < p->frames) {
			const struct model_frame *f = &frames[i];

			kind = f->kind == MODEL_TRUNCATED     ? PAGE_TRUNCATED
			       : f->kind == MODEL_KERNEL      ? PAGE_KERNEL
			       : !f->count		      ? PAGE_UNNAMED
			       : f->kind == MODEL_INTERPRETED ? PAGE_INTERPRETED
			       : f->flags & MODEL_INLINED     ? PAGE_INLINED
							      : PAGE_NATIVE;
		}
		separate(p->o, &begun);
		put_u32(p->o, kind);
	}
	output_str(p->o, "]},\n");
}

/* --- the tree --- */

enum tree_pass { TREE_UP, TREE_FRAME, TREE_ROW_NODE, TREE_ROW_THREAD, TREE_ROW_SAMPLES };

static void put_tree(struct page *p, enum tree_pass pass)
{
	const struct paths *paths = &p->paths;
	bool begun = false;
	uint32_t nodes = 0;
	size_t before = 0; /* length of the previous path */

	for (size_t i = 0; i < paths->n && !p->o->error; i++) {
		const uint32_t at = paths->sorted[i];
		const struct model_bucket *b = &paths->buckets[at];
		const size_t n = paths_length(paths, at),
			     common = i ? paths_common(paths, paths->sorted[i - 1], at) : 0;

		for (size_t k = common; k < n; k++, nodes++) {
			if (pass > TREE_FRAME)
				continue;
			separate(p->o, &begun);
			put_u32(p->o, pass == TREE_FRAME ? paths_label(paths, at, k)
				      : k == common	 ? (uint32_t)(before - common)
							 : 0);
		}
		before = n;
		if (pass <= TREE_FRAME)
			continue;
		separate(p->o, &begun);
		if (pass == TREE_ROW_NODE)
			put_u32(p->o, nodes - 1);
		else if (pass == TREE_ROW_SAMPLES)
			output_printf(p->o, "%" PRIu64, b->samples);
		else if (b->thread == MODEL_NONE)
			output_str(p->o, "-1");
		else
			put_u32(p->o, b->thread);
	}
}

static void put_nodes(struct page *p)
{
	output_str(p->o, "\"nodes\":{\"up\":[");
	put_tree(p, TREE_UP);
	output_str(p->o, "],\n\"frame\":[");
	put_tree(p, TREE_FRAME);
	output_str(p->o, "]},\n\"rows\":{\"node\":[");
	put_tree(p, TREE_ROW_NODE);
	output_str(p->o, "],\n\"thread\":[");
	put_tree(p, TREE_ROW_THREAD);
	output_str(p->o, "],\n\"samples\":[");
	put_tree(p, TREE_ROW_SAMPLES);
	output_str(p->o, "]},\n");
}

static void put_processes(struct page *p)
{
	const struct model_process *processes;
	const struct model_thread *threads;
	const size_t np = model_processes(p->m, &processes), nt = model_threads(p->m, &threads);
	bool begun = false;

	output_str(p->o, "\"processes\":{\"pid\":[");
	for (size_t i = 0; i < np; i++) {
		separate(p->o, &begun);
		output_printf(p->o, "%" PRIu64, processes[i].pid);
	}
	output_str(p->o, "],\n\"name\":[");
	begun = false;
	for (size_t i = 0; i < np && !p->error; i++) {
		separate(p->o, &begun);
		put_u32(p->o, p->comm_name[p->process_label[i] - p->frames]);
	}
	output_str(p->o, "]},\n\"threads\":{\"process\":[");
	begun = false;
	for (size_t i = 0; i < nt; i++) {
		separate(p->o, &begun);
		put_u32(p->o, threads[i].process);
	}
	output_str(p->o, "],\n\"tid\":[");
	begun = false;
	for (size_t i = 0; i < nt; i++) {
		separate(p->o, &begun);
		output_printf(p->o, "%" PRIu64, threads[i].tid);
	}
	output_str(p->o, "],\n\"name\":[");
	begun = false;
	for (size_t i = 0; i < nt && !p->error; i++) {
		separate(p->o, &begun);
		buf_reset(&p->name);
		put_u32(p->o,
			take_name(p, label_thread(&p->name, model_definitions(p->m), (uint32_t)i)));
	}
	output_str(p->o, "]},\n");
}

static void put_strings(struct page *p)
{
	output_str(p->o, "\"strings\":[");
	for (size_t i = 0; i < p->strings.len; i++) {
		output_str(p->o, i ? ",\n\"" : "\"");
		json_text(p->o, table_strings_get(&p->strings, (uint32_t)i));
		output_put(p->o, "\"", 1);
	}
	output_str(p->o, "]\n");
}

int html_write(const struct model *m, struct output *o)
{
	struct page p = { .m = m, .o = o, .pool = { .max = SIZE_MAX } };

	paths_init(&p.paths, m);
	make_names(&p);
	p.paths.process_label = p.process_label;
	if (!p.error)
		p.error = paths_sort(&p.paths);
	if (!p.error) {
		output_put(o, html_head, (size_t)(html_head_end - html_head));
		output_str(o, "{\n");
		put_header(&p);
		put_names(&p);
		put_processes(&p);
		put_nodes(&p);
		put_strings(&p);
		output_str(o, "}\n");
		output_put(o, html_tail, (size_t)(html_tail_end - html_tail));
	}
	paths_done(&p.paths);
	buf_done(&p.name);
	table_strings_done(&p.strings, &p.pool);
	free(p.comm_name);
	free(p.process_label);
	free(p.frame_name);
	free(p.frame_binary);
	free(p.frame_source);
	free(p.frame_where);
	return p.error;
}
