/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file is a sequence of Profile messages with one sample, location, function or string each. A
 * reader merges them into one message. So we keep only one sample in memory. String i of the model
 * has the number 1 + i; our own strings follow the model's.
 */
#include "tools/prof-export/output/pprof.h"

#include <errno.h>
#include <inttypes.h>
#include "common/base/bytes/numbers.h"
#include "common/status/account.h"
#include "tools/prof-export/model/label.h"
#include "tools/prof-export/output/pprof.pb-c.h"

typedef Perftools__Profiles__Profile Profile; /* the generated names are long */
typedef Perftools__Profiles__ValueType ValueType;
typedef Perftools__Profiles__Sample Sample;
typedef Perftools__Profiles__Label Label;
typedef Perftools__Profiles__Mapping Mapping;
typedef Perftools__Profiles__Location Location;
typedef Perftools__Profiles__Line Line;
typedef Perftools__Profiles__Function Function;

/* A future mapping: addresses of one file with the same difference between address and file
 * offset. */
struct region {
	uint32_t file;	   /* MODEL_NONE: the kernel */
	uint64_t shift;	   /* address - offset, modulo 2^64 */
	uint64_t from, to; /* lowest and highest address */
};

struct pprof_writer {
	const struct model *m;
	struct output *o;
	struct buf packed, name;
	struct pool pool;
	struct table_strings
		extra; /* strings that the model lacks, numbered from 1 + model_strings on */
	struct region *regions;
	size_t regions_len, regions_cap;
	struct table_index region_index;
	uint32_t *region_of; /* by frame: its region; MODEL_NONE: none */
	uint32_t *labels;    /* by extra string: the function with this label; 0: none */
	size_t labels_cap;
	uint32_t label_count;
	uint64_t *ids; /* location ids of one sample */
	size_t ids_cap;
	int error;
};

static void emit(struct pprof_writer *w, const Profile *p)
{
	const size_t n = perftools__profiles__profile__get_packed_size(p);

	buf_reset(&w->packed);
	if (w->error)
		return;
	w->error = buf_reserve(&w->packed, n ? n : 1);
	if (!w->error)
		output_put(w->o, w->packed.data,
			   perftools__profiles__profile__pack(p, w->packed.data));
}

static int64_t model_str(uint32_t i)
{
	return 1 + (int64_t)i;
}

/* Empties w->name and returns the number of its string. */
static int64_t take_name(struct pprof_writer *w)
{
	uint32_t i = 0;

	if (!w->error &&
	    table_strings_intern(
		    &w->extra, &w->pool,
		    (struct str){ .data = (char *)w->name.data, .len = (uint32_t)w->name.len }, &i))
		w->error = -ENOMEM;
	buf_reset(&w->name);
	return 1 + (int64_t)model_strings(w->m) + i;
}

static int64_t own_str(struct pprof_writer *w, const char *s)
{
	if (!w->error)
		w->error = buf_append_str(&w->name, s);
	return take_name(w);
}

static uint64_t address_of(const struct model_frame *f)
{
	return definitions_call(f, f->address ? f->address : f->offset);
}

/* --- mappings --- */

static int find_region(struct pprof_writer *w, const struct model_frame *f, uint32_t *ret)
{
	const uint64_t address = address_of(f);
	struct region want = { .file = f->kind == MODEL_KERNEL ? MODEL_NONE : f->file,
			       .from = address,
			       .to = address };
	size_t cursor = SIZE_MAX;
	uint32_t i;

	if (f->kind == MODEL_NATIVE && f->address)
		want.shift = f->address - f->offset;
	const uint64_t content[2] = { want.file, want.shift };
	const uint32_t hash = table_hash(content, sizeof(content));

	for (i = table_index_next(&w->region_index, hash, &cursor); i != TABLE_NONE;
	     i = table_index_next(&w->region_index, hash, &cursor)) {
		struct region *r = &w->regions[i];

		if (r->file != want.file || r->shift != want.shift)
			continue;
		r->from = numbers_smaller(address, r->from);
		r->to = numbers_larger(address, r->to);
		*ret = i;
		return 0;
	}
	void *more = pool_grow(&w->pool, w->regions, &w->regions_cap, w->regions_len + 1,
			       sizeof(*w->regions));

	if (!more)
		return -ENOMEM;
	w->regions = more;
	if (table_index_add(&w->region_index, &w->pool, hash, (uint32_t)w->regions_len))
		return -ENOMEM;
	*ret = (uint32_t)w->regions_len;
	w->regions[w->regions_len++] = want;
	return 0;
}

/* The program with the largest share of the value; MODEL_NONE if none is known. */
static uint32_t main_file(struct pprof_writer *w)
{
	const struct model_file *files;
	const struct model_bucket *buckets;
	const struct model_thread *threads;
	const struct model_process *processes;
	const size_t n = model_files(w->m, &files), bucket_count = model_buckets(w->m, &buckets);
	uint64_t *values = calloc(n + 1, sizeof(*values));
	uint32_t best = MODEL_NONE;

	model_threads(w->m, &threads);
	model_processes(w->m, &processes);
	for (size_t i = 0; values && i < bucket_count; i++) {
		const uint32_t t = buckets[i].thread;
		const uint32_t f = t == MODEL_NONE ? t : processes[threads[t].process].exe;

		if (f == MODEL_NONE)
			continue;
		if (__builtin_add_overflow(values[f], buckets[i].value, &values[f]))
			values[f] = UINT64_MAX;
		if (best == MODEL_NONE || values[f] > values[best])
			best = f;
	}
	if (!values)
		w->error = -ENOMEM;
	free(values);
	return best;
}

/* Sorts the main program first: pprof takes the first mapping as the program. */
static int rank_of(const struct model_frame *f, uint32_t main)
{
	if (f->kind == MODEL_KERNEL)
		return 2;
	if (f->kind != MODEL_NATIVE || f->file == MODEL_NONE)
		return -1;
	return f->file == main ? 0 : 1;
}

static void find_regions(struct pprof_writer *w)
{
	const struct model_frame *frames;
	const size_t n = model_frames(w->m, &frames);
	const uint32_t main = main_file(w);

	w->region_of = reallocarray(NULL, n + 1, sizeof(*w->region_of));
	if (!w->region_of)
		w->error = -ENOMEM;
	for (size_t i = 0; !w->error && i < n; i++)
		w->region_of[i] = MODEL_NONE;
	for (int rank = 0; rank < 3; rank++) {
		for (size_t i = 0; !w->error && i < n; i++) {
			if (rank_of(&frames[i], main) == rank)
				w->error = find_region(w, &frames[i], &w->region_of[i]);
		}
	}
}

static void put_mappings(struct pprof_writer *w)
{
	const struct model_file *files;

	model_files(w->m, &files);
	for (size_t i = 0; !w->error && i < w->regions_len; i++) {
		const struct region *r = &w->regions[i];
		Mapping mapping = PERFTOOLS__PROFILES__MAPPING__INIT;
		Mapping *list[] = { &mapping };
		Profile p = PERFTOOLS__PROFILES__PROFILE__INIT;
		/* Round down to a page, but not below the file's start. */
		const uint64_t offset = r->from - r->shift, in_page = r->from & 0xfff,
			       down = numbers_smaller(in_page, offset);

		mapping.id = i + 1;
		mapping.memory_start = r->from - down;
		mapping.memory_limit = (r->to | 0xfff) == UINT64_MAX ? UINT64_MAX
								     : (r->to | 0xfff) + 1;
		mapping.file_offset = r->file == MODEL_NONE ? 0 : offset - down;
		if (r->file == MODEL_NONE) {
			mapping.filename = own_str(w, "[kernel.kallsyms]");
		} else {
			mapping.filename = model_str(files[r->file].path);
			mapping.build_id = model_str(files[r->file].build_id);
		}
		mapping.has_functions = mapping.has_filenames = mapping.has_line_numbers =
			mapping.has_inline_frames = true;
		p.n_mapping = 1;
		p.mapping = list;
		emit(w, &p);
	}
}

/* --- functions and locations --- */

static void put_function(struct pprof_writer *w, Function *f)
{
	Function *list[] = { f };
	Profile p = PERFTOOLS__PROFILES__PROFILE__INIT;

	p.n_function = 1;
	p.function = list;
	emit(w, &p);
}

static void put_functions(struct pprof_writer *w)
{
	const struct model_function *functions;
	const size_t n = model_functions(w->m, &functions);

	for (size_t i = 0; !w->error && i < n; i++) {
		const struct model_function *from = &functions[i];
		Function f = PERFTOOLS__PROFILES__FUNCTION__INIT;

		f.id = i + 1;
		f.name = model_str(from->name);
		f.system_name = model_str(from->system_name);
		f.filename = model_str(from->source);
		f.start_line = from->start_line;
		put_function(w, &f);
	}
}

/* Returns the number, from 1 on, of the function for a label. All places in a function without a
 * name share one label. */
static uint64_t put_label(struct pprof_writer *w, int64_t name)
{
	const size_t i = (size_t)(name - 1) - model_strings(w->m);
	const size_t cap = w->labels_cap;
	Function function = PERFTOOLS__PROFILES__FUNCTION__INIT;
	const struct model_function *functions;

	if (w->error)
		return 0;
	void *more = pool_grow(&w->pool, w->labels, &w->labels_cap, i + 1, sizeof(*w->labels));

	if (!more) {
		w->error = -ENOMEM;
		return 0;
	}
	w->labels = more;
	for (size_t k = cap; k < w->labels_cap; k++)
		w->labels[k] = 0;
	if (!w->labels[i]) {
		w->labels[i] = ++w->label_count;
		function.id = model_functions(w->m, &functions) + w->labels[i];
		function.name = name;
		put_function(w, &function);
	}
	return w->labels[i];
}

static void put_location(struct pprof_writer *w, uint32_t i, const struct model_frame *f)
{
	const struct model_function *functions;
	const size_t known = model_functions(w->m, &functions);
	static Line lines[256];
	Line *list[256];
	Location location = PERFTOOLS__PROFILES__LOCATION__INIT, *locations[] = { &location };
	Profile p = PERFTOOLS__PROFILES__PROFILE__INIT;
	size_t n = 0;

	for (; n < f->count && n < 256; n++) {
		perftools__profiles__line__init(&lines[n]);
		lines[n].function_id = 1 + (uint64_t)model_functions_of(w->m, f)[n];
		lines[n].line = model_lines_of(w->m, f)[n];
		list[n] = &lines[n];
	}
	/* A frame without a name gets a function of ours, numbered after those of the model. It has
	 * no system name: if that equals the name, pprof cuts off parentheses. */
	if (!n || (n == 1 && !model_string(w->m, functions[lines[0].function_id - 1].name).len)) {
		if (!w->error)
			w->error = label_plain(&w->name, model_definitions(w->m), f, 0);
		perftools__profiles__line__init(&lines[0]);
		lines[0].function_id = known + put_label(w, take_name(w));
		list[0] = &lines[0];
		n = 1;
	}
	location.id = i + 1;
	location.address = f->kind == MODEL_TRUNCATED ? 0 : address_of(f);
	if (w->region_of[i] != MODEL_NONE)
		location.mapping_id = 1 + (uint64_t)w->region_of[i];
	location.n_line = n;
	location.line = list;
	p.n_location = 1;
	p.location = locations;
	emit(w, &p);
}

static void put_locations(struct pprof_writer *w)
{
	const struct model_frame *frames;
	const size_t n = model_frames(w->m, &frames);

	for (size_t i = 0; !w->error && !w->o->error && i < n; i++)
		put_location(w, (uint32_t)i, &frames[i]);
}

/* --- samples --- */

struct keys {
	int64_t process, pid, tid, thread;
};

static void put_sample(struct pprof_writer *w, const struct model_bucket *b,
		       const struct keys *keys)
{
	const struct model_stack *stacks;
	const struct model_thread *threads;
	const struct model_process *processes;
	Label labels[4] = { PERFTOOLS__PROFILES__LABEL__INIT, PERFTOOLS__PROFILES__LABEL__INIT,
			    PERFTOOLS__PROFILES__LABEL__INIT, PERFTOOLS__PROFILES__LABEL__INIT };
	Label *label_list[] = { &labels[0], &labels[1], &labels[2], &labels[3] };
	Sample sample = PERFTOOLS__PROFILES__SAMPLE__INIT, *samples[] = { &sample };
	Profile p = PERFTOOLS__PROFILES__PROFILE__INIT;
	int64_t values[2] = { numbers_signed(b->samples), numbers_signed(b->value) };

	model_stacks(w->m, &stacks);
	model_threads(w->m, &threads);
	model_processes(w->m, &processes);
	const struct model_stack *s = &stacks[b->stack];
	const uint32_t *frames = model_frames_of(w->m, s);
	void *ids = pool_grow(&w->pool, w->ids, &w->ids_cap, s->count + 1, sizeof(*w->ids));

	if (!ids) {
		w->error = -ENOMEM;
		return;
	}
	w->ids = ids;
	for (uint32_t i = 0; i < s->count; i++)
		w->ids[i] = 1 + (uint64_t)frames[i];
	sample.n_location_id = s->count;
	sample.location_id = w->ids;
	sample.n_value = 2;
	sample.value = values;
	if (b->thread != MODEL_NONE) {
		const struct model_thread *t = &threads[b->thread];
		const struct model_process *of = &processes[t->process];

		labels[0].key = keys->process;
		labels[0].str = model_str(of->comm);
		labels[1].key = keys->pid;
		labels[1].num = numbers_signed(of->pid);
		labels[2].key = keys->tid;
		labels[2].num = numbers_signed(t->tid);
		labels[3].key = keys->thread;
		labels[3].str = model_str(t->comm);
		sample.n_label = 4;
		sample.label = label_list;
	}
	p.n_sample = 1;
	p.sample = samples;
	emit(w, &p);
}

static void put_samples(struct pprof_writer *w)
{
	const struct model_bucket *buckets;
	const size_t n = model_buckets(w->m, &buckets);
	const struct keys keys = { own_str(w, "process"), own_str(w, "pid"), own_str(w, "tid"),
				   own_str(w, "thread") };

	for (size_t i = 0; !w->error && !w->o->error && i < n; i++)
		put_sample(w, &buckets[i], &keys);
}

/* --- head and strings --- */

static void put_comment(struct pprof_writer *w)
{
	Profile p = PERFTOOLS__PROFILES__PROFILE__INIT;
	int64_t comment = take_name(w);

	p.n_comment = 1;
	p.comment = &comment;
	emit(w, &p);
}

static void put_comments(struct pprof_writer *w)
{
	const struct model_header *h = model_header(w->m);
	const struct model_totals *t = model_totals(w->m);

	label_escape(&w->name, h->producer.len ? h->producer : STR_LIT("profpipe"));
	put_comment(w);
	buf_append_str(&w->name, "host ");
	label_escape(&w->name, h->hostname);
	buf_append_str(&w->name, ", kernel ");
	label_escape(&w->name, h->kernel);
	put_comment(w);
	struct account_line lines[ACCOUNT_LINES];
	struct status st;

	model_status(w->m, &st, false);
	const size_t n = account_lines(&st, lines);

	account_count(&w->name, st.samples, "sample");
	buf_append(&w->name, " ", 1);
	account_scope(&w->name, &st);
	put_comment(w);
	buf_append_str(&w->name, account_loss(&st));
	put_comment(w);
	char notes[ACCOUNT_NOTES][ACCOUNT_NOTE];
	const size_t noted = account_notes(&st, notes);

	for (size_t i = 0; i < noted; i++) {
		buf_append_str(&w->name, notes[i]);
		put_comment(w);
	}
	for (size_t i = 0; i < n; i++) {
		const struct account_line *l = &lines[i];

		buf_printf(&w->name, "%s %s: %" PRIu64, account_word(l->kind), l->word, l->count);
		if (l->what)
			buf_printf(&w->name, " %s: %s", l->what, l->text);
		put_comment(w);
	}
	if (!t->ended) {
		buf_append_str(&w->name, "the stream was cut short");
		put_comment(w);
	}
}

static void put_head(struct pprof_writer *w)
{
	const struct model_header *h = model_header(w->m);
	Profile p = PERFTOOLS__PROFILES__PROFILE__INIT;
	ValueType count = PERFTOOLS__PROFILES__VALUE_TYPE__INIT,
		  value = PERFTOOLS__PROFILES__VALUE_TYPE__INIT;
	ValueType *types[] = { &count, &value };

	count.type = own_str(w, "samples");
	count.unit = own_str(w, "count");
	if (!h->event.len || str_eq(h->unit, STR_LIT("nanoseconds"))) {
		value.type = own_str(w, "cpu");
		value.unit = own_str(w, "nanoseconds");
	} else {
		w->error = w->error ? w->error : label_escape(&w->name, h->event);
		value.type = take_name(w);
		w->error = w->error ? w->error : label_escape(&w->name, h->unit);
		value.unit = take_name(w);
	}
	p.n_sample_type = 2;
	p.sample_type = types;
	p.period_type = &value;
	p.period = numbers_signed(model_period(w->m));
	p.time_nanos = numbers_signed(model_start_wall_ns(w->m));
	p.duration_nanos = numbers_signed(model_duration_ns(w->m));
	p.default_sample_type = value.type;
	emit(w, &p);
}

static void put_string(struct pprof_writer *w, char *s)
{
	Profile p = PERFTOOLS__PROFILES__PROFILE__INIT;

	p.n_string_table = 1;
	p.string_table = &s;
	emit(w, &p);
}

static void put_strings(struct pprof_writer *w)
{
	const size_t known = model_strings(w->m), n = known + w->extra.len;

	put_string(w, (char[]){ "" });
	for (size_t i = 0; !w->error && !w->o->error && i < n; i++) {
		/* Our own strings are already escaped. */
		const struct str s = i < known
					     ? model_string(w->m, (uint32_t)i)
					     : table_strings_get(&w->extra, (uint32_t)(i - known));

		buf_reset(&w->name);
		w->error = i < known ? label_name(&w->name, s)
				     : buf_append(&w->name, s.data, s.len);
		if (!w->error)
			w->error = buf_append(&w->name, "", 1);
		if (!w->error)
			put_string(w, (char *)w->name.data);
	}
}

int pprof_write(const struct model *m, struct output *o)
{
	struct pprof_writer w = { .m = m, .o = o, .pool = { .max = SIZE_MAX } };

	put_head(&w);
	put_comments(&w);
	find_regions(&w);
	put_mappings(&w);
	put_functions(&w);
	put_locations(&w);
	put_samples(&w);
	put_strings(&w);
	buf_done(&w.packed);
	buf_done(&w.name);
	table_strings_done(&w.extra, &w.pool);
	table_index_done(&w.region_index, &w.pool);
	free(w.regions);
	free(w.region_of);
	free(w.ids);
	free(w.labels);
	return w.error;
}
