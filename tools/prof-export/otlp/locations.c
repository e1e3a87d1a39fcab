/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sources: opentelemetry/proto/profiles/v1development/profiles.proto; the attributes and frame
 * types of the semantic conventions ("profile.frame.type", "process.executable.build_id").
 */
#include "tools/prof-export/otlp/locations.h"

#include <errno.h>
#include "bpf/runtime.h"
#include "tools/prof-export/model/definitions/epoch.h"
#include "tools/prof-export/model/label.h"
#include "tools/prof-export/otlp/otlp.pb-c.h"

#define FRAME_TYPE "profile.frame.type"
#define BUILD_ID "process.executable.build_id."
#define LINES 256

void locations_init(struct locations *l, struct dictionary *d, enum reporting_receiver receiver)
{
	*l = (struct locations){ .dictionary = d, .receiver = receiver };
}

void locations_forget(struct locations *l)
{
	table_ids_done(&l->frames, l->dictionary->pool);
	table_ids_done(&l->stacks, l->dictionary->pool);
	memset(l->mappings, 0, sizeof(l->mappings));
}

void locations_done(struct locations *l)
{
	locations_forget(l);
	POOL_ARRAY_FREE(l->dictionary->pool, &l->list);
	buf_done(&l->name);
}

/* Adds l->name to the dictionary and empties it. r: the result of the call that filled l->name. */
static int take_name(struct locations *l, int r, int32_t *ret)
{
	uint32_t i = 0;

	if (!r)
		r = dictionary_string(
			l->dictionary,
			(struct str){ .data = (char *)l->name.data, .len = (uint32_t)l->name.len },
			&i);
	buf_reset(&l->name);
	*ret = (int32_t)i;
	return r;
}

static int add_escaped(struct locations *l, struct str s, int32_t *ret)
{
	return take_name(l, label_escape(&l->name, s), ret);
}

/* --- mappings --- */

/* Sets the address range: that of the frame's segment. If no segment is known: the whole file, with
 * the address at which its first byte would lie. If the file's size is unknown: both addresses are
 * 0. */
static void place(Otlp__Mapping *to, const struct model *m, const struct model_file *file,
		  const struct model_frame *f)
{
	const uint64_t pc = definitions_pc(model_definitions(m), f);
	const bool below = pc < f->offset;
	struct model_segment s;

	if (definitions_segment(model_definitions(m), f, &s)) {
		to->memory_start = s.address;
		to->memory_limit = s.address + s.size;
		to->file_offset = s.offset;
		return;
	}
	to->file_offset = below ? f->offset - pc : 0;
	to->memory_start = below ? 0 : pc - f->offset;
	if (file->size <= to->file_offset ||
	    __builtin_add_overflow(to->memory_start, file->size - to->file_offset,
				   &to->memory_limit))
		to->memory_start = to->memory_limit = to->file_offset = 0;
}

/* Adds the file's build ids, since a backend may know only one of them. Returns their count. */
static int add_build_ids(struct locations *l, const struct model *m, const struct model_file *f,
			 int32_t ret[static 3], size_t *ret_n)
{
	const struct {
		const char *key;
		uint32_t string;
	} ids[] = { { BUILD_ID "gnu", f->build_id },
		    { BUILD_ID "go", f->go_build_id },
		    { BUILD_ID "htlhash", f->htlhash } };
	size_t n = 0;
	int r = 0;

	if (l->receiver == REPORTING_DEVFILER && !f->htlhash) {
		*ret_n = 0;
		return 0;
	}
	for (size_t i = 0; !r && i < sizeof(ids) / sizeof(ids[0]); i++) {
		uint32_t at;

		if (!ids[i].string)
			continue;
		r = label_escape(&l->name, model_string(m, ids[i].string));
		if (!r)
			r = dictionary_text(l->dictionary, ids[i].key,
					    (struct str){ .data = (char *)l->name.data,
							  .len = (uint32_t)l->name.len },
					    &at);
		buf_reset(&l->name);
		if (!r)
			ret[n++] = (int32_t)at;
	}
	*ret_n = n;
	return r;
}

static int add_mapping(struct locations *l, Otlp__Mapping *mapping, int32_t *ret)
{
	uint32_t i = 0;
	const int r = dictionary_message(l->dictionary, DICTIONARY_MAPPINGS, &mapping->base, &i);

	*ret = (int32_t)i;
	return r;
}

static bool same_mapping(const struct locations_mapping *a, const struct locations_mapping *b)
{
	return a->memory_start == b->memory_start && a->memory_limit == b->memory_limit &&
	       a->file_offset == b->file_offset && a->path == b->path &&
	       a->build_id == b->build_id && a->go_build_id == b->go_build_id &&
	       a->htlhash == b->htlhash;
}

static int map_file(struct locations *l, const struct model *m, const struct model_frame *f,
		    int32_t *ret)
{
	Otlp__Mapping mapping = OTLP__MAPPING__INIT;
	const struct model_file *files;
	int32_t ids[3];

	model_files(m, &files);
	const struct model_file *file = &files[f->file];

	place(&mapping, m, file, f);
	struct locations_mapping now = { .memory_start = mapping.memory_start,
					 .memory_limit = mapping.memory_limit,
					 .file_offset = mapping.file_offset,
					 .path = file->path,
					 .build_id = file->build_id,
					 .go_build_id = file->go_build_id,
					 .htlhash = file->htlhash };
	struct locations_mapping *known = &l->mappings[file->path % LOCATIONS_MAPPINGS];

	if (known->number && same_mapping(known, &now)) {
		*ret = (int32_t)known->number;
		return 0;
	}
	mapping.attribute_indices = ids;
	int r = add_build_ids(l, m, file, ids, &mapping.n_attribute_indices);

	if (!r)
		r = add_escaped(l, model_string(m, file->path), &mapping.filename_strindex);
	if (!r)
		r = add_mapping(l, &mapping, ret);
	if (!r) {
		now.number = (uint32_t)*ret;
		*known = now;
	}
	return r;
}

/* The module whose function this is, as kallsyms writes it, without the brackets. */
static struct str module_of(const struct model *m, const struct model_frame *f)
{
	const struct model_function *functions;
	struct str s = { 0 };

	model_functions(m, &functions);
	if (f->count)
		s = model_string(m, functions[model_functions_of(m, f)[0]].source);
	if (s.len > 2 && s.data[0] == '[' && s.data[s.len - 1] == ']')
		s = (struct str){ .data = s.data + 1, .len = s.len - 2 };
	return s.len && !str_eq(s, STR_LIT("kernel")) ? s : STR_LIT("vmlinux");
}

static int map_kernel(struct locations *l, const struct model *m, const struct model_frame *f,
		      int32_t *ret)
{
	const struct str module = module_of(m, f), id = model_header(m)->kernel_build_id;
	Otlp__Mapping mapping = OTLP__MAPPING__INIT;
	int32_t attribute;
	uint32_t at;
	int r = add_escaped(l, module, &mapping.filename_strindex);

	if (!r && id.len && l->receiver != REPORTING_DEVFILER &&
	    str_eq(module, STR_LIT("vmlinux"))) {
		r = dictionary_text(l->dictionary, BUILD_ID "gnu", id, &at);
		attribute = (int32_t)at;
		mapping.attribute_indices = &attribute;
		mapping.n_attribute_indices = 1;
	}
	return r ? r : add_mapping(l, &mapping, ret);
}

/* --- types --- */

/* The frame type of a runtime in bpf/runtimes.def. Old recordings name no runtime: they know only
 * Python. */
static const char *interpreted_type(const struct model_frame *f)
{
	switch (f->runtime) {
	case RUNTIME_NONE:
		return "cpython";
#define RUNTIME(number, NAME, name, title, type, mark) \
	case RUNTIME_##NAME: \
		return type;
#include "bpf/runtimes.def"
	default:
		return "native";
	}
}

/* The frame type of code that a runtime of remedies.def generated. */
static const char *generated_type(const struct locations *l, const struct model_sample *s)
{
	static const char *const types[STATUS_RUNTIMES] = {
		[0] = "jvm",  [1] = "dotnet", [3] = "beam", [4] = "v8js",
		[5] = "v8js", [6] = "ruby",   [7] = "php",  [8] = "luajit",
	};
	uint8_t runtime = s->process ? s->process->runtime : STATUS_RUNTIMES;

	if (runtime >= STATUS_RUNTIMES)
		runtime = s->stack->runtime;
	if (runtime >= STATUS_RUNTIMES || !types[runtime] ||
	    (l->receiver == REPORTING_DEVFILER && runtime == 8))
		return "native";
	return types[runtime];
}

static const char *type_of(const struct locations *l, const struct model *m,
			   const struct model_sample *s, const struct model_frame *f)
{
	const struct model_file *files;

	model_files(m, &files);
	switch (f->kind) {
	case MODEL_KERNEL:
		return "kernel";
	case MODEL_INTERPRETED:
		return interpreted_type(f);
	case MODEL_TRUNCATED:
		return "abort-marker";
	default:
		if (f->file == MODEL_NONE)
			return generated_type(l, s);
		return files[f->file].go_build_id ? "go" : "native";
	}
}

/* --- locations --- */

static int add_function(struct locations *l, Otlp__Function *f, Otlp__Line *line)
{
	uint32_t i = 0;
	const int r = dictionary_message(l->dictionary, DICTIONARY_FUNCTIONS, &f->base, &i);

	line->function_index = (int32_t)i;
	return r;
}

static int name_call(struct locations *l, const struct model *m, const struct model_frame *f,
		     unsigned i, Otlp__Line *line)
{
	Otlp__Function function = OTLP__FUNCTION__INIT;
	const struct model_function *functions;

	model_functions(m, &functions);
	const struct model_function *from = &functions[model_functions_of(m, f)[i]];
	int r = take_name(l, label_plain(&l->name, model_definitions(m), f, i),
			  &function.name_strindex);

	/* system_name stays empty, since the name is derived from it. On a host that compiles C++
	 * it would take a sixth of each request. The kernel's source is its module, which the
	 * mapping names. */
	if (!r && f->kind != MODEL_KERNEL)
		r = add_escaped(l, model_string(m, from->source), &function.filename_strindex);
	function.start_line = from->start_line;
	line->line = model_lines_of(m, f)[i];
	return r ? r : add_function(l, &function, line);
}

/* Whether the frame has a name. prof-symd can also report that it found none. */
static bool has_name(const struct model *m, const struct model_frame *f)
{
	const struct model_function *functions;

	model_functions(m, &functions);
	return f->count > 1 ||
	       (f->count && model_string(m, functions[model_functions_of(m, f)[0]].name).len);
}

/* Uses the label as the name of a frame that no backend can name. */
static int name_by_label(struct locations *l, const struct model *m, const struct model_frame *f,
			 Otlp__Line *line)
{
	Otlp__Function function = OTLP__FUNCTION__INIT;
	const struct model_file *files;
	int r = take_name(l, label_plain(&l->name, model_definitions(m), f, 0),
			  &function.name_strindex);

	model_files(m, &files);
	if (!r && f->kind == MODEL_TRUNCATED && f->file != MODEL_NONE)
		r = add_escaped(l, model_string(m, files[f->file].path),
				&function.filename_strindex);
	return r ? r : add_function(l, &function, line);
}

static int add_lines(struct locations *l, const struct model *m, const struct model_frame *f,
		     Otlp__Location *location, Otlp__Line lines[static LINES])
{
	const bool in_file = f->kind == MODEL_NATIVE && f->file != MODEL_NONE;
	size_t n = 0;
	int r = 0;

	if (!has_name(m, f)) {
		otlp__line__init(&lines[0]);
		n = !in_file;
		r = in_file ? 0 : name_by_label(l, m, f, &lines[0]);
	} else {
		for (; !r && n < f->count && n < LINES; n++) {
			otlp__line__init(&lines[n]);
			r = name_call(l, m, f, (unsigned)n, &lines[n]);
		}
	}
	for (size_t i = 0; i < n; i++)
		location->lines[i] = &lines[i];
	location->n_lines = n;
	return r;
}

/* Gives the attribute of a frame type. type: a constant, which is recognized by its address. */
static int get_type(struct locations *l, const char *type, uint32_t *ret)
{
	unsigned i = 0;

	while (i < LOCATIONS_TYPES && l->types[i].name && l->types[i].name != type)
		i++;
	if (i < LOCATIONS_TYPES && l->types[i].name) {
		*ret = l->types[i].attribute;
		return 0;
	}
	const int r = dictionary_text(l->dictionary, FRAME_TYPE, str_from(type), ret);

	if (!r && i < LOCATIONS_TYPES)
		l->types[i] = (struct locations_type){ .name = type, .attribute = *ret };
	return r;
}

static int add_location(struct locations *l, const char *type, Otlp__Location *location,
			uint32_t *ret)
{
	uint32_t attribute;
	int r = get_type(l, type, &attribute);
	int32_t index = (int32_t)attribute;

	location->n_attribute_indices = 1;
	location->attribute_indices = &index;
	if (!r)
		r = dictionary_message(l->dictionary, DICTIONARY_LOCATIONS, &location->base, ret);
	location->n_attribute_indices = 0;
	return r;
}

static int make_location(struct locations *l, const struct model *m, const struct model_sample *s,
			 const struct model_frame *f, uint32_t *ret)
{
	Otlp__Location location = OTLP__LOCATION__INIT;
	Otlp__Line lines[LINES], *list[LINES];
	int r = 0;

	location.lines = list;
	if (f->kind != MODEL_INTERPRETED && f->kind != MODEL_TRUNCATED)
		location.address = definitions_call(f, definitions_pc(model_definitions(m), f));
	if (f->kind == MODEL_KERNEL)
		r = map_kernel(l, m, f, &location.mapping_index);
	else if (f->kind != MODEL_TRUNCATED && f->file != MODEL_NONE)
		r = map_file(l, m, f, &location.mapping_index);
	if (!r)
		r = add_lines(l, m, f, &location, lines);
	return r ? r : add_location(l, type_of(l, m, s, f), &location, ret);
}

static int put_location(struct locations *l, uint32_t location)
{
	if (!POOL_ARRAY_ROOM(l->dictionary->pool, &l->list, 1))
		return -ENOBUFS;
	l->list.data[l->list.len++] = (int32_t)location;
	return 0;
}

static int put_frame(struct locations *l, const struct model *m, const struct model_sample *s,
		     uint32_t frame)
{
	const struct model_frame *frames;
	uint32_t i = table_ids_get(&l->frames, frame + 1ull);
	int r = 0;

	if (i == TABLE_NONE) {
		model_frames(m, &frames);
		r = make_location(l, m, s, &frames[frame], &i);
		if (!r)
			r = table_ids_add(&l->frames, l->dictionary->pool, frame + 1ull, i);
	}
	return r ? r : put_location(l, i);
}

static int add_stack(struct locations *l, uint32_t *ret)
{
	Otlp__Stack stack = OTLP__STACK__INIT;

	stack.n_location_indices = l->list.len;
	stack.location_indices = l->list.data;
	return dictionary_message(l->dictionary, DICTIONARY_STACKS, &stack.base, ret);
}

static int put_mark(struct locations *l, struct str mark)
{
	Otlp__Location location = OTLP__LOCATION__INIT;
	Otlp__Function function = OTLP__FUNCTION__INIT;
	Otlp__Line line = OTLP__LINE__INIT, *lines[] = { &line };
	uint32_t i;
	int r = add_escaped(l, mark, &function.name_strindex);

	if (!r)
		r = add_function(l, &function, &line);
	location.n_lines = 1;
	location.lines = lines;
	if (!r)
		r = add_location(l, "abort-marker", &location, &i);
	return r ? r : put_location(l, i);
}

int locations_stack(struct locations *l, const struct model *m, const struct model_sample *s,
		    uint32_t most, uint32_t *ret)
{
	const uint32_t *frames = model_frames_of(m, s->stack);
	const struct model_stack *stacks;
	int r = 0;

	model_stacks(m, &stacks);
	const uint64_t key = (uint64_t)(s->stack - stacks) + 1;
	const uint32_t known = table_ids_get(&l->stacks, key);

	if (known != TABLE_NONE) {
		*ret = known;
		return 0;
	}
	l->list.len = 0;
	for (uint32_t i = 0; !r && i < s->stack->count && i < most; i++)
		r = put_frame(l, m, s, frames[i]);
	if (!r && most < s->stack->count) {
		const struct str mark = STR_LIT("[truncated: definitions]");

		r = put_mark(l, mark);
	}
	if (!r)
		r = add_stack(l, ret);
	return r ? r : table_ids_add(&l->stacks, l->dictionary->pool, key, *ret);
}

int locations_mark(struct locations *l, struct str mark, uint32_t *ret)
{
	l->list.len = 0;
	const int r = put_mark(l, mark);

	return r ? r : add_stack(l, ret);
}
