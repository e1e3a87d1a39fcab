/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/kernel/kernel_types.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <linux/btf.h>
#include <bpf/btf.h>
#include "common/base/bytes/hash.h"
#include "common/base/bytes/str.h"
#include "common/base/files/fd.h"

#define WANTED_SLOTS 1024u
#define TYPE_LEAST sizeof(struct btf_type)

struct selection {
	struct span types;
	const char *strings;
	uint32_t strings_len;
	uint32_t *at;  /* indexed by type: its offset in `types` */
	uint32_t *new; /* indexed by type: its number in the selection, or 0 */
	uint32_t count;
	uint32_t *chosen; /* the types of the selection */
	uint32_t chosen_count;
	struct str wanted[WANTED_SLOTS]; /* names in a hash table; empty: a free slot */
	uint32_t wanted_count;
};

static const struct btf_type *type_at(const struct selection *s, uint32_t type)
{
	return (const struct btf_type *)(s->types.data + s->at[type]);
}

/* Returns a name, or "" if the offset is outside of the strings. */
static const char *name_at(const struct selection *s, uint32_t offset)
{
	return offset < s->strings_len ? s->strings + offset : "";
}

/* Returns how many bytes follow a type's head; -1: this kind is not known. */
static int64_t tail_of(const struct btf_type *t)
{
	switch (btf_kind(t)) {
	case BTF_KIND_INT:
	case BTF_KIND_VAR:
	case BTF_KIND_DECL_TAG:
		return 4;
	case BTF_KIND_ARRAY:
		return sizeof(struct btf_array);
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		return (int64_t)btf_vlen(t) * (int64_t)sizeof(struct btf_member);
	case BTF_KIND_ENUM:
		return (int64_t)btf_vlen(t) * (int64_t)sizeof(struct btf_enum);
	case BTF_KIND_ENUM64:
		return (int64_t)btf_vlen(t) * (int64_t)sizeof(struct btf_enum64);
	case BTF_KIND_FUNC_PROTO:
		return (int64_t)btf_vlen(t) * (int64_t)sizeof(struct btf_param);
	case BTF_KIND_DATASEC:
		return (int64_t)btf_vlen(t) * (int64_t)sizeof(struct btf_var_secinfo);
	case BTF_KIND_PTR:
	case BTF_KIND_FWD:
	case BTF_KIND_TYPEDEF:
	case BTF_KIND_VOLATILE:
	case BTF_KIND_CONST:
	case BTF_KIND_RESTRICT:
	case BTF_KIND_FUNC:
	case BTF_KIND_FLOAT:
	case BTF_KIND_TYPE_TAG:
		return 0;
	default:
		return -1;
	}
}

/* Checks the head, and finds types and strings. */
static int open_btf(struct selection *s, struct span all)
{
	struct btf_header h;

	if (all.len < sizeof(h))
		return -EINVAL;
	memcpy(&h, all.data, sizeof(h));
	if (h.magic != BTF_MAGIC || h.version != BTF_VERSION || h.hdr_len < sizeof(h) ||
	    h.hdr_len > all.len)
		return -EINVAL;
	const size_t rest = all.len - h.hdr_len;
	if (h.type_off > rest || h.type_len > rest - h.type_off || h.str_off > rest ||
	    h.str_len > rest - h.str_off || h.type_off % 4 || h.hdr_len % 4 || !h.str_len)
		return -EINVAL;
	s->types = (struct span){ .data = all.data + h.hdr_len + h.type_off, .len = h.type_len };
	s->strings = (const char *)all.data + h.hdr_len + h.str_off;
	s->strings_len = h.str_len;
	return s->strings[h.str_len - 1] ? -EINVAL : 0;
}

/* Returns the type at *at, and moves *at to the next one. NULL: the type is cut off or of an
 * unknown kind. */
static const struct btf_type *next_type(const struct selection *s, size_t *at)
{
	const struct btf_type *t = (const struct btf_type *)(s->types.data + *at);
	const size_t left = s->types.len - *at;
	const int64_t tail = left < TYPE_LEAST ? -1 : tail_of(t);

	if (tail < 0 || (uint64_t)tail > left - TYPE_LEAST)
		return NULL;
	*at += TYPE_LEAST + (size_t)tail;
	return t;
}

/* Finds the offset of each type. Type 0 is void. */
static int find_types(struct selection *s)
{
	const size_t most = s->types.len / TYPE_LEAST + 1;
	size_t at = 0;

	s->at = malloc(most * sizeof(*s->at));
	s->new = calloc(most, sizeof(*s->new));
	s->chosen = malloc(most * sizeof(*s->chosen));
	if (!s->at || !s->new || !s->chosen)
		return -ENOMEM;
	s->at[0] = 0;
	for (s->count = 1; at < s->types.len; s->count++) {
		s->at[s->count] = (uint32_t)at;
		if (!next_type(s, &at))
			return -EINVAL;
	}
	return 0;
}

static bool has_wanted_kind(const struct btf_type *t)
{
	return btf_is_composite(t) || btf_is_any_enum(t);
}

/* Returns the slot of a name, or the free one where it belongs. */
static struct str *find_wanted(struct selection *s, struct str name)
{
	uint32_t i = (uint32_t)hash_bytes(HASH_START, name.data, name.len);

	while (s->wanted[i % WANTED_SLOTS].len && !str_eq(s->wanted[i % WANTED_SLOTS], name))
		i++;
	return &s->wanted[i % WANTED_SLOTS];
}

/* Returns a name up to "___". Our programs may declare a kernel struct in several forms, which
 * differ in what follows "___". */
static struct str name_without_form(const char *name)
{
	const char *end = strstr(name, "___");

	return str_cut(str_from(name), end ? (size_t)(end - name) : SIZE_MAX);
}

static void want_names(struct selection *s, const struct btf *ours)
{
	for (uint32_t i = 1; i < btf__type_cnt(ours) && s->wanted_count < WANTED_SLOTS / 2; i++) {
		const struct btf_type *t = btf__type_by_id(ours, i);
		const char *name = btf__name_by_offset(ours, t->name_off);

		if (!has_wanted_kind(t) || !name || !*name)
			continue;
		struct str *slot = find_wanted(s, name_without_form(name));
		s->wanted_count += !slot->len;
		*slot = name_without_form(name);
	}
}

static void choose(struct selection *s, uint32_t type)
{
	if (!type || type >= s->count || s->new[type])
		return;
	s->chosen[s->chosen_count++] = type;
	s->new[type] = s->chosen_count;
}

/* Chooses the types that our programs name, and then the types that these contain by value. */
static void choose_all(struct selection *s)
{
	for (uint32_t i = 1; i < s->count; i++) {
		const struct btf_type *t = type_at(s, i);

		if (has_wanted_kind(t) && t->name_off &&
		    find_wanted(s, str_from(name_at(s, t->name_off)))->len)
			choose(s, i);
	}
	for (uint32_t i = 0; i < s->chosen_count; i++) {
		const struct btf_type *t = type_at(s, s->chosen[i]);

		if (btf_is_composite(t)) {
			for (uint32_t k = 0; k < btf_vlen(t); k++)
				choose(s, btf_members(t)[k].type);
		} else if (btf_is_array(t)) {
			choose(s, btf_array(t)->type);
			choose(s, btf_array(t)->index_type);
		} else if (btf_is_mod(t) || btf_is_typedef(t) || btf_is_type_tag(t)) {
			choose(s, t->type);
		}
	}
}

static uint32_t renumbered(const struct selection *s, uint32_t type)
{
	return type < s->count ? s->new[type] : 0;
}

/* Copies a name, and stores its new offset in *field. */
static int copy_name(const struct selection *s, uint32_t *field, struct buf *strings)
{
	const char *name = name_at(s, *field);

	*field = *name ? (uint32_t)strings->len : 0;
	return *name ? buf_append(strings, name, strlen(name) + 1) : 0;
}

static int copy_type(const struct selection *s, uint32_t type, struct buf *types,
		     struct buf *strings)
{
	const struct btf_type *from = type_at(s, type);
	const size_t len = TYPE_LEAST + (size_t)tail_of(from), at = types->len;
	int r = buf_append(types, from, len);
	struct btf_type *t = r ? NULL : (struct btf_type *)(types->data + at);

	if (r)
		return r;
	r = copy_name(s, &t->name_off, strings);
	if (btf_is_composite(t)) {
		for (uint32_t i = 0; !r && i < btf_vlen(t); i++) {
			btf_members(t)[i].type = renumbered(s, btf_members(t)[i].type);
			r = copy_name(s, &btf_members(t)[i].name_off, strings);
		}
	} else if (btf_is_array(t)) {
		btf_array(t)->type = renumbered(s, btf_array(t)->type);
		btf_array(t)->index_type = renumbered(s, btf_array(t)->index_type);
	} else if (btf_is_enum(t)) {
		for (uint32_t i = 0; !r && i < btf_vlen(t); i++)
			r = copy_name(s, &btf_enum(t)[i].name_off, strings);
	} else if (btf_is_enum64(t)) {
		for (uint32_t i = 0; !r && i < btf_vlen(t); i++)
			r = copy_name(s, &btf_enum64(t)[i].name_off, strings);
	} else if (btf_is_ptr(t)) {
		t->type = 0;
	} else if (btf_is_mod(t) || btf_is_typedef(t) || btf_is_type_tag(t)) {
		t->type = renumbered(s, t->type);
	}
	return r;
}

static int copy_all(const struct selection *s, struct buf *ret)
{
	struct btf_header h = { .magic = BTF_MAGIC, .version = BTF_VERSION, .hdr_len = sizeof(h) };
	struct buf types = { 0 }, strings = { 0 };
	int r = buf_append(&strings, "", 1);

	for (uint32_t i = 0; !r && i < s->chosen_count; i++)
		r = copy_type(s, s->chosen[i], &types, &strings);
	h.type_len = (uint32_t)types.len;
	h.str_off = h.type_len;
	h.str_len = (uint32_t)strings.len;
	if (!r)
		r = buf_append(ret, &h, sizeof(h));
	if (!r)
		r = buf_append(ret, types.data, types.len);
	if (!r)
		r = buf_append(ret, strings.data, strings.len);
	buf_done(&types);
	buf_done(&strings);
	return r;
}

static uint32_t member_offset(const struct selection *s, const struct btf_type *t,
			      const char *member)
{
	for (uint32_t i = 0; i < btf_vlen(t); i++)
		if (strcmp(name_at(s, btf_members(t)[i].name_off), member) == 0)
			return btf_member_bit_offset(t, i) / 8;
	return 0;
}

uint32_t kernel_types_offset(struct span all, const char *type, const char *member)
{
	struct selection s = { 0 };
	size_t at = 0;

	if (open_btf(&s, all))
		return 0;
	while (at < s.types.len) {
		const struct btf_type *t = next_type(&s, &at);

		if (!t)
			return 0;
		if (btf_is_struct(t) && strcmp(name_at(&s, t->name_off), type) == 0)
			return member_offset(&s, t, member);
	}
	return 0;
}

int kernel_types_select(struct span all, const struct btf *ours, struct buf *ret)
{
	struct selection s = { 0 };
	int r = open_btf(&s, all);

	if (!r)
		r = find_types(&s);
	if (!r) {
		want_names(&s, ours);
		choose_all(&s);
		r = copy_all(&s, ret);
	}
	free(s.at);
	free(s.new);
	free(s.chosen);
	return r;
}

#define TYPES_FILE "/sys/kernel/btf/vmlinux"
#define TYPES_MAX (256u << 20) /* bytes */

/* Reads BTF that libbpf finds elsewhere, such as in /boot. */
static int read_elsewhere(struct buf *ret)
{
	struct btf *btf = btf__load_vmlinux_btf();
	uint32_t len = 0;
	const void *data = btf ? btf__raw_data(btf, &len) : NULL;
	const int r = data ? buf_append(ret, data, len) : -ENOENT;

	btf__free(btf);
	return r;
}

int kernel_types_read(struct buf *ret)
{
	const int fd = open(TYPES_FILE, O_RDONLY | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return read_elsewhere(ret);
	int r = fstat(fd, &st) < 0 ? -errno : st.st_size > TYPES_MAX ? -EFBIG : 0;
	if (!r)
		r = buf_reserve(ret, (size_t)st.st_size);
	if (!r) {
		const ssize_t n = fd_read_all(fd, ret->data, (size_t)st.st_size);

		r = n < 0 ? (int)n : 0;
		ret->len = n < 0 ? 0 : (size_t)n;
	}
	close(fd);
	return r;
}

int kernel_types_write(int fd, struct span all, const struct btf *ours)
{
	struct buf selected = { 0 };
	int r = kernel_types_select(all, ours, &selected);

	if (r == -EINVAL)
		r = fd_write_all(fd, all.data, all.len);
	else if (!r)
		r = fd_write_all(fd, selected.data, selected.len);
	buf_done(&selected);
	return r;
}
