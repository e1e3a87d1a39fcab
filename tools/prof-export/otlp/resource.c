/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-export/otlp/resource.h"

#include <stdio.h>
#include <time.h>
#include "common/base/bytes/numbers.h"
#include "common/base/text/hex.h"
#include "common/cell/targets/container.h"
#include "tools/prof-export/model/label.h"
#include "tools/prof-export/otlp/key_values.h"
#include "tools/prof-export/otlp/otlp.pb-c.h"

#define OF_LIST 64 /* attributes taken from OTEL_RESOURCE_ATTRIBUTES */
#define OTHERS 64  /* attributes of profpipe itself and of the stream */
#define ATTRIBUTES (OTHERS + OF_LIST)
#define ARGUMENTS 512
#define SHORT_ID 12 /* digits of a container's id that its engine's tools show */
/* A value of this many bytes or more may have been truncated (environment.h of prof-bpf). */
#define MAYBE_CUT 1021u

#define VARIABLE "process.environment_variable."
#define SERVICE_VARIABLE VARIABLE "OTEL_SERVICE_NAME"
#define LIST_VARIABLE VARIABLE "OTEL_RESOURCE_ATTRIBUTES"
#define ARGUMENTS_KEY "process.command_args"

/* A part of list.text, as offsets: the buffer moves when it grows. */
struct resource_place {
	size_t at, len;
};

enum kind { TEXT, NUMBER, TEXTS };

/* A resource that is being made. */
struct resource_list {
	struct attribute {
		struct resource_place key, text;
		enum kind kind;
		int64_t number;
	} attributes[ATTRIBUTES];
	size_t n;
	struct resource_place arguments[ARGUMENTS]; /* elements of the attribute of type TEXTS */
	size_t argument_count;
	uint32_t dropped; /* number of attributes that were left out */
	struct buf text;
	int error;
};

static struct resource_place put(struct resource_list *l, struct str s)
{
	const size_t at = l->text.len;

	if (!l->error)
		l->error = label_escape(&l->text, s);
	return (struct resource_place){ .at = at, .len = l->text.len - at };
}

static bool same_key(const struct resource_list *l, struct resource_place a,
		     struct resource_place b)
{
	return a.len == b.len && !memcmp(l->text.data + a.at, l->text.data + b.at, a.len);
}

/* Returns the attribute with this key, or a new one. NULL: there is no room. */
static struct attribute *attribute_of(struct resource_list *l, struct str key, bool *ret_new)
{
	const struct resource_place at = put(l, key);
	size_t i = 0;

	if (l->error)
		return NULL;
	while (i < l->n && !same_key(l, l->attributes[i].key, at))
		i++;
	*ret_new = i == l->n;
	if (i == ATTRIBUTES)
		return NULL;
	if (*ret_new)
		l->attributes[l->n++] = (struct attribute){ .key = at };
	return &l->attributes[i];
}

/* Adds an attribute, unless the text is empty or the key exists. */
static void add(struct resource_list *l, struct str key, struct str s)
{
	bool is_new = false;
	struct attribute *a = key.len && s.len ? attribute_of(l, key, &is_new) : NULL;

	if (is_new && a)
		a->text = put(l, s);
}

static void add_text(struct resource_list *l, const char *key, struct str s)
{
	add(l, str_from(key), s);
}

static void add_number(struct resource_list *l, const char *key, uint64_t n)
{
	bool is_new = false;
	struct attribute *a = attribute_of(l, str_from(key), &is_new);

	if (!is_new || !a)
		return;
	a->kind = NUMBER;
	a->number = numbers_signed(n);
}

/* --- packing --- */

static ProtobufCBinaryData bytes_at(const struct resource_list *l, struct resource_place p)
{
	return (ProtobufCBinaryData){ .data = l->text.data + p.at, .len = p.len };
}

static Otlp__AnyValue text_value(const struct resource_list *l, struct resource_place p)
{
	Otlp__AnyValue v = OTLP__ANY_VALUE__INIT;

	v.value_case = OTLP__ANY_VALUE__VALUE_STRING_VALUE;
	v.string_value = bytes_at(l, p);
	return v;
}

/* Packs the list into b, and frees the list. */
static int finish(struct resource_list *l, struct buf *b)
{
	Otlp__KeyValue attributes[ATTRIBUTES], *pointers[ATTRIBUTES];
	Otlp__AnyValue values[ATTRIBUTES], arguments[ARGUMENTS], *of_arguments[ARGUMENTS];
	Otlp__ArrayValue array = OTLP__ARRAY_VALUE__INIT;
	Otlp__Resource resource = OTLP__RESOURCE__INIT;
	int r = l->error;

	for (size_t i = 0; !r && i < l->argument_count; i++) {
		arguments[i] = text_value(l, l->arguments[i]);
		of_arguments[i] = &arguments[i];
	}
	array.n_values = l->argument_count;
	array.values = of_arguments;
	for (size_t i = 0; !r && i < l->n; i++) {
		const struct attribute *a = &l->attributes[i];

		values[i] = text_value(l, a->text);
		if (a->kind == NUMBER) {
			values[i].value_case = OTLP__ANY_VALUE__VALUE_INT_VALUE;
			values[i].int_value = a->number;
		} else if (a->kind == TEXTS) {
			values[i].value_case = OTLP__ANY_VALUE__VALUE_ARRAY_VALUE;
			values[i].array_value = &array;
		}
		otlp__key_value__init(&attributes[i]);
		attributes[i].key = bytes_at(l, a->key);
		attributes[i].value = &values[i];
		pointers[i] = &attributes[i];
	}
	resource.n_attributes = l->n;
	resource.attributes = pointers;
	resource.dropped_attributes_count = l->dropped;
	if (!r)
		r = buf_reserve(b, otlp__resource__get_packed_size(&resource));
	if (!r)
		b->len += otlp__resource__pack(&resource, b->data + b->len);
	buf_done(&l->text);
	return r;
}

/* --- attributes that the process provides --- */

/* The value of this key in the stream; empty: there is none. */
static struct str said(const struct epoch_process *p, const char *wanted)
{
	struct span rest = attributes_all(&p->attributes);
	struct str key, value;

	while (attributes_next(&rest, &key, &value))
		if (str_eq(key, str_from(wanted)))
			return value;
	return (struct str){ 0 };
}

/* The pairs of OTEL_RESOURCE_ATTRIBUTES. If the stream may have truncated the list, leaves out the
 * last pair. */
static struct str said_list(const struct epoch_process *p, uint32_t *dropped)
{
	struct str s = said(p, LIST_VARIABLE);

	if (s.len < MAYBE_CUT)
		return s;
	const char *comma = memrchr(s.data, ',', s.len);

	s.len = comma ? (uint32_t)(comma - s.data) : 0;
	++*dropped;
	return s;
}

static struct str pair_key(const struct key_value *pair)
{
	return (struct str){ .data = pair->key, .len = pair->key_len };
}

static struct str pair_value(const struct key_value *pair)
{
	return (struct str){ .data = pair->value, .len = pair->value_len };
}

/* The service name in the list. The result points into *pair. */
static struct str service_in_list(const struct epoch_process *p, struct key_value *pair)
{
	uint32_t ignored = 0;
	struct str list = said_list(p, &ignored), name = { 0 };
	struct key_value next;

	while (key_values_next(&list, &next, &ignored)) {
		if (!str_eq(pair_key(&next), STR_LIT("service.name")))
			continue;
		*pair = next;
		name = pair_value(pair);
	}
	return name;
}

/* Adds the pairs. As in the SDKs, the last pair of a key wins. Attributes that profpipe sets itself
 * are not replaced. */
static void add_list(struct resource_list *l, const struct epoch_process *p)
{
	struct str list = said_list(p, &l->dropped);
	const size_t first = l->n;
	struct key_value pair;

	while (key_values_next(&list, &pair, &l->dropped)) {
		bool is_new = false;
		struct attribute *a = l->n - first < OF_LIST
					      ? attribute_of(l, pair_key(&pair), &is_new)
					      : NULL;

		if (a && a >= &l->attributes[first])
			a->text = put(l, pair_value(&pair));
		l->dropped += !a;
	}
}

static void add_arguments(struct resource_list *l, struct str s)
{
	bool is_new = false;
	struct attribute *a = attribute_of(l, STR_LIT(ARGUMENTS_KEY), &is_new);

	if (!a || !is_new)
		return;
	a->kind = TEXTS;
	for (bool more = true; more && l->argument_count < ARGUMENTS;) {
		const char *end = s.len ? memchr(s.data, '\0', s.len) : NULL;
		const uint32_t n = end ? (uint32_t)(end - s.data) : s.len;

		l->arguments[l->argument_count++] = put(l,
							(struct str){ .data = s.data, .len = n });
		more = end != NULL;
		s.data += n + more;
		s.len -= n + more;
	}
}

static void add_said(struct resource_list *l, const struct epoch_process *p)
{
	struct span rest = attributes_all(&p->attributes);
	struct str key, value;

	while (attributes_next(&rest, &key, &value)) {
		if (str_eq(key, STR_LIT(SERVICE_VARIABLE)) || str_eq(key, STR_LIT(LIST_VARIABLE)))
			continue; /* these keys have attributes of their own */
		if (l->n == OTHERS)
			l->dropped++;
		else if (str_eq(key, STR_LIT(ARGUMENTS_KEY)))
			add_arguments(l, value);
		else
			add(l, key, value);
	}
	add_list(l, p);
}

/* --- attributes that profpipe sets --- */

static void add_host(struct resource_list *l, const struct model *m)
{
	const struct model_header *h = model_header(m);
	const bool amd64 = str_eq(h->arch, STR_LIT("x86_64"));

	add_text(l, "host.name", h->hostname);
	add_text(l, "host.id", h->host_id);
	add_text(l, "host.arch", amd64 ? STR_LIT("amd64") : h->arch);
	add_text(l, "os.type", STR_LIT("linux"));
	add_text(l, "os.version", h->kernel);
}

/* Uses the clocks from the beginning of the stream, so that a process keeps its creation time when
 * the wall clock is set. */
static void add_creation(struct resource_list *l, const struct model *m, uint64_t start_ns)
{
	const struct model_header *h = model_header(m);
	const uint64_t wall_ns = h->wall_ns - (h->boot_ns - start_ns);
	const time_t seconds = (time_t)(wall_ns / 1000000000u);
	char text[64];
	struct tm tm;

	if (!h->boot_ns || !start_ns || !gmtime_r(&seconds, &tm))
		return;
	const size_t n = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);

	snprintf(text + n, sizeof(text) - n, ".%03uZ", (unsigned)(wall_ns / 1000000u % 1000u));
	add_text(l, "process.creation.time", str_from(text));
}

/* Decodes systemd's \xNN, if the result is printable ASCII. */
static struct str unescape(char to[static 256], struct str s)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < s.len && n < 256; i++) {
		char c = s.data[i];

		if (c == '\\' && s.len - i >= 4 && s.data[i + 1] == 'x') {
			const int code = hex_byte(s.data + i + 2);

			if (code >= ' ' && code <= '~') {
				c = (char)code;
				i += 3;
			}
		}
		to[n++] = c;
	}
	return (struct str){ .data = to, .len = n };
}

int resource_process(struct buf *b, const struct model *m, const struct epoch_process *p)
{
	static const struct epoch_process nobody = { .exe = MODEL_NONE };
	const struct model_file *files;
	struct resource_list l = { 0 };
	struct container c;
	struct str exe = { 0 };
	struct key_value pair;
	char service[256];

	model_files(m, &files);
	if (!p)
		p = &nobody;
	if (p->exe != MODEL_NONE)
		exe = model_string(m, files[p->exe].path);
	container_parse(model_string(m, p->cgroup), &c);

	const struct str comm = { .data = p->comm, .len = p->comm_len };
	const struct str name = exe.len ? str_base_name(exe) : comm;
	const struct str container = c.id.len ? str_cut(c.id, SHORT_ID) : c.name;
	const struct str unit = unescape(service, c.service);
	const struct str variable = said(p, SERVICE_VARIABLE), listed = service_in_list(p, &pair);

	add_text(&l, "service.name",
		 variable.len	 ? variable
		 : listed.len	 ? listed
		 : unit.len	 ? unit
		 : container.len ? container
		 : name.len	 ? name
				 : STR_LIT("unknown_service"));
	add_text(&l, "container.id", c.id);
	add_text(&l, "container.name", c.name);
	add_text(&l, "k8s.pod.uid", (struct str){ .data = c.pod_uid, .len = c.pod_uid_len });
	if (p->pid) {
		add_number(&l, "process.pid", p->pid);
		add_creation(&l, m, p->start_ns);
	}
	add_text(&l, "process.executable.name", name);
	add_text(&l, "process.executable.path", exe);
	add_host(&l, m);
	add_said(&l, p);
	return finish(&l, b);
}

int resource_profiler(struct buf *b, const struct model *m)
{
	struct resource_list l = { 0 };

	add_text(&l, "service.name", STR_LIT("profpipe"));
	add_host(&l, m);
	return finish(&l, b);
}
