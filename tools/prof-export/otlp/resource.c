/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-export/otlp/resource.h"

#include <stdio.h>
#include <time.h>
#include "tools/prof-export/model/label.h"
#include "tools/prof-export/otlp/container.h"
#include "tools/prof-export/otlp/otlp.pb-c.h"

#define ATTRIBUTES 16
#define SHORT_ID 12 /* of a container, as its engine's tools show it */

/* A resource in the making. */
struct list {
	Otlp__KeyValue attributes[ATTRIBUTES], *pointers[ATTRIBUTES];
	Otlp__AnyValue values[ATTRIBUTES];
	size_t at[ATTRIBUTES], len[ATTRIBUTES]; /* of texts */
	size_t n;
	struct buf text;
	int error;
};

static Otlp__AnyValue *add(struct list *l, const char *key)
{
	Otlp__KeyValue *a = &l->attributes[l->n];
	Otlp__AnyValue *v = &l->values[l->n];

	otlp__key_value__init(a);
	otlp__any_value__init(v);
	a->key = (ProtobufCBinaryData){ .data = (uint8_t *)key, .len = strlen(key) };
	a->value = v;
	l->pointers[l->n++] = a;
	return v;
}

/* Adds no empty text. */
static void add_text(struct list *l, const char *key, struct str s)
{
	const size_t at = l->text.len, i = l->n;

	if (!s.len || l->error)
		return;
	l->error = label_escape(&l->text, s);
	add(l, key)->value_case = OTLP__ANY_VALUE__VALUE_STRING_VALUE;
	l->at[i] = at;
	l->len[i] = l->text.len - at;
}

static void add_number(struct list *l, const char *key, uint64_t n)
{
	Otlp__AnyValue *v = add(l, key);

	v->value_case = OTLP__ANY_VALUE__VALUE_INT_VALUE;
	v->int_value = n < INT64_MAX ? (int64_t)n : INT64_MAX;
}

/* Packs the list, and frees it. */
static int finish(struct list *l, struct buf *b)
{
	Otlp__Resource resource = OTLP__RESOURCE__INIT;
	int r = l->error;

	/* The text may have moved while it grew. */
	for (size_t i = 0; i < l->n; i++)
		if (l->values[i].value_case == OTLP__ANY_VALUE__VALUE_STRING_VALUE)
			l->values[i].string_value = (ProtobufCBinaryData){
				.data = l->text.data + l->at[i], .len = l->len[i]
			};
	resource.n_attributes = l->n;
	resource.attributes = l->pointers;
	if (!r)
		r = buf_reserve(b, otlp__resource__get_packed_size(&resource));
	if (!r)
		b->len += otlp__resource__pack(&resource, b->data + b->len);
	buf_done(&l->text);
	return r;
}

static void add_host(struct list *l, const struct model *m)
{
	const struct model_header *h = model_header(m);
	const bool amd64 = str_eq(h->arch, STR_LIT("x86_64"));

	add_text(l, "host.name", h->hostname);
	add_text(l, "host.id", h->host_id);
	add_text(l, "host.arch", amd64 ? STR_LIT("amd64") : h->arch);
	add_text(l, "os.type", STR_LIT("linux"));
	add_text(l, "os.version", h->kernel);
}

static struct str base_name(struct str path)
{
	const char *slash = path.len ? memrchr(path.data, '/', path.len) : NULL;

	if (slash && slash + 1 < path.data + path.len) {
		path.len -= (uint32_t)(slash + 1 - path.data);
		path.data = slash + 1;
	}
	return path;
}

/* By the clocks of the stream's beginning: a process keeps its time, whatever happens to the wall
 * clock. */
static void add_creation(struct list *l, const struct model *m, uint64_t start_ns)
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

/* Undoes systemd's \xNN, as far as it makes printable ASCII. */
static struct str unescape(char to[static 256], struct str s)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < s.len && n < 256; i++) {
		char c = s.data[i];
		unsigned code;

		if (c == '\\' && s.len - i >= 4 && s.data[i + 1] == 'x') {
			const char hex[3] = { s.data[i + 2], s.data[i + 3], '\0' };

			if (sscanf(hex, "%2x", &code) == 1 && code >= ' ' && code <= '~') {
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
	struct list l = { 0 };
	struct container c;
	struct str exe = { 0 };
	char service[256];

	model_files(m, &files);
	if (!p)
		p = &nobody;
	if (p->exe != MODEL_NONE)
		exe = model_string(m, files[p->exe].path);
	container_parse(model_string(m, p->cgroup), &c);

	const struct str comm = { .data = p->comm, .len = p->comm_len };
	const struct str name = exe.len ? base_name(exe) : comm;
	const struct str container = str_cut(c.id, SHORT_ID);
	const struct str unit = unescape(service, c.service);

	add_text(&l, "service.name",
		 unit.len	 ? unit
		 : container.len ? container
		 : name.len	 ? name
				 : STR_LIT("unknown_service"));
	add_text(&l, "container.id", c.id);
	add_text(&l, "k8s.pod.uid", (struct str){ .data = c.pod_uid, .len = c.pod_uid_len });
	if (p->pid) {
		add_number(&l, "process.pid", p->pid);
		add_creation(&l, m, p->start_ns);
	}
	add_text(&l, "process.executable.name", name);
	add_text(&l, "process.executable.path", exe);
	add_host(&l, m);
	return finish(&l, b);
}

int resource_profiler(struct buf *b, const struct model *m)
{
	struct list l = { 0 };

	add_text(&l, "service.name", STR_LIT("profpipe"));
	add_host(&l, m);
	return finish(&l, b);
}
