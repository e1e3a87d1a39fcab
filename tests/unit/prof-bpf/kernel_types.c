/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <linux/btf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <bpf/btf.h>
#include "common/base/bytes/buf.h"
#include "tests/random.h"
#include "tools/prof-bpf/kernel/kernel_types.h"

static struct buf all;

static void read_all(void)
{
	if (!all.len)
		cr_assert_eq(kernel_types_read(&all), 0);
}

/* BTF of programs that use structs of these names. */
static struct btf *ours(const char *const *names, unsigned count)
{
	struct btf *btf = btf__new_empty();

	for (unsigned i = 0; i < count; i++)
		cr_assert_gt(btf__add_struct(btf, names[i], 8), 0);
	return btf;
}

static const struct btf_type *find(const struct btf *btf, const char *name)
{
	const int id = btf__find_by_name_kind(btf, name, BTF_KIND_STRUCT);

	return id > 0 ? btf__type_by_id(btf, (uint32_t)id) : NULL;
}

static const char *name_of(const struct btf *btf, uint32_t offset)
{
	return btf__name_by_offset(btf, offset);
}

/* The type behind typedefs and qualifiers. */
static const struct btf_type *meant(const struct btf *btf, uint32_t id)
{
	const struct btf_type *t = btf__type_by_id(btf, id);

	while (btf_is_mod(t) || btf_is_typedef(t))
		t = btf__type_by_id(btf, t->type);
	return t;
}

/* The number of nested structs, which all have the same members. */
static unsigned compare(const struct btf *a, const struct btf_type *of_a, const struct btf *b,
			const struct btf_type *of_b)
{
	unsigned structs = 1;

	cr_assert_eq(btf_kind(of_a), btf_kind(of_b));
	cr_assert_str_eq(name_of(a, of_a->name_off), name_of(b, of_b->name_off));
	if (!btf_is_ptr(of_a))
		cr_assert_eq(of_a->size, of_b->size);
	if (!btf_is_composite(of_a))
		return 0;
	cr_assert_eq(btf_vlen(of_a), btf_vlen(of_b));
	for (uint32_t i = 0; i < btf_vlen(of_a); i++) {
		const struct btf_member *m = &btf_members(of_a)[i], *n = &btf_members(of_b)[i];

		cr_assert_str_eq(name_of(a, m->name_off), name_of(b, n->name_off));
		cr_assert_eq(btf_member_bit_offset(of_a, i), btf_member_bit_offset(of_b, i));
		cr_assert_eq(btf_member_bitfield_size(of_a, i), btf_member_bitfield_size(of_b, i));
		cr_assert_eq(btf__resolve_size(a, m->type), btf__resolve_size(b, n->type));
		if (!btf_is_array(meant(a, m->type)))
			structs += compare(a, meant(a, m->type), b, meant(b, n->type));
	}
	return structs;
}

static void compare_enums(const struct btf *a, const struct btf *b, const char *name)
{
	const int of_a = btf__find_by_name_kind(a, name, BTF_KIND_ENUM),
		  of_b = btf__find_by_name_kind(b, name, BTF_KIND_ENUM);

	cr_assert(of_a > 0 && of_b > 0);
	const struct btf_type *t = btf__type_by_id(a, (uint32_t)of_a),
			      *u = btf__type_by_id(b, (uint32_t)of_b);
	cr_assert_eq(btf_vlen(t), btf_vlen(u));
	for (uint32_t i = 0; i < btf_vlen(t); i++) {
		cr_expect_eq(btf_enum(t)[i].val, btf_enum(u)[i].val);
		cr_expect_str_eq(name_of(a, btf_enum(t)[i].name_off),
				 name_of(b, btf_enum(u)[i].name_off));
	}
}

static uint32_t offset_of(const struct btf *btf, const char *type, const char *member)
{
	const struct btf_type *t = find(btf, type);

	for (uint32_t i = 0; i < btf_vlen(t); i++)
		if (strcmp(name_of(btf, btf_members(t)[i].name_off), member) == 0)
			return btf_member_bit_offset(t, i) / 8;
	cr_assert_fail("no %s", member);
	return 0;
}

Test(kernel_types, structs_have_the_members_of_the_kernels)
{
	static const char *const names[] = { "task_struct", "mm_struct___bitmap", "pid",
					     "no_struct_of_the_kernel" };
	struct btf *wanted = ours(names, 4), *kernel, *selected;
	struct buf bytes = { 0 };

	cr_assert_gt(btf__add_enum(wanted, "cgroup_subsys_id", 4), 0);

	read_all();
	cr_assert_eq(kernel_types_select(buf_span(&all), wanted, &bytes), 0);
	cr_expect_lt(bytes.len, all.len / 20);
	kernel = btf__new(all.data, (uint32_t)all.len);
	selected = btf__new(bytes.data, (uint32_t)bytes.len);
	cr_assert(kernel && selected);
	cr_expect_gt(compare(kernel, find(kernel, "task_struct"), selected,
			     find(selected, "task_struct")),
		     50);
	cr_expect_gt(
		compare(kernel, find(kernel, "mm_struct"), selected, find(selected, "mm_struct")),
		5);
	cr_expect_gt(compare(kernel, find(kernel, "pid"), selected, find(selected, "pid")), 1);
	cr_expect_null(find(selected, "no_struct_of_the_kernel"));
	cr_expect_eq(kernel_types_offset(buf_span(&all), "pid", "numbers"),
		     offset_of(kernel, "pid", "numbers"));
	cr_expect_eq(kernel_types_offset(buf_span(&all), "pid", "no_member"), 0);
	cr_expect_eq(kernel_types_offset(buf_span(&all), "no_struct_of_the_kernel", "numbers"), 0);
	compare_enums(kernel, selected, "cgroup_subsys_id");
	cr_expect_null(find(selected, "inode"));
	btf__free(kernel);
	btf__free(selected);
	btf__free(wanted);
	buf_done(&bytes);
}

static size_t written(struct span what, const struct btf *wanted)
{
	const int fd = memfd_create("types", MFD_CLOEXEC);
	struct stat st;

	cr_assert_eq(kernel_types_write(fd, what, wanted), 0);
	cr_assert_eq(fstat(fd, &st), 0);
	close(fd);
	return (size_t)st.st_size;
}

Test(kernel_types, those_of_an_unknown_form_are_left_to_libbpf)
{
	static const char *const names[] = { "pid" };
	struct btf *wanted = ours(names, 1);
	struct buf copy = { 0 };
	struct btf_header *h;

	read_all();
	cr_assert_eq(buf_append(&copy, all.data, all.len), 0);
	cr_expect_lt(written(buf_span(&copy), wanted), all.len / 20);
	h = (struct btf_header *)copy.data;
	struct btf_type *first = (struct btf_type *)(copy.data + h->hdr_len + h->type_off);
	first->info |= 31u << 24;
	cr_expect_eq(written(buf_span(&copy), wanted), all.len);
	btf__free(wanted);
	buf_done(&copy);
}

Test(kernel_types, damaged_ones_are_refused_or_selected_from)
{
	static const char *const names[] = { "task_struct" };
	struct btf *wanted = ours(names, 1);
	struct buf few = { 0 };
	uint64_t random = 1;

	/* All that task_struct needs, which is quick to read. */
	read_all();
	cr_assert_eq(kernel_types_select(buf_span(&all), wanted, &few), 0);
	for (unsigned i = 0; i < 2000; i++) {
		uint8_t *copy = malloc(few.len);
		struct buf bytes = { 0 };
		size_t len = i % 4 ? few.len : (size_t)(random_next(&random) % few.len);

		memcpy(copy, few.data, few.len);
		for (unsigned k = 0; k < 1 + i % 20; k++)
			copy[random_next(&random) % (i % 2 ? few.len : 512)] =
				(uint8_t)random_next(&random);
		/* Of exactly its length, so that a sanitizer sees reads beyond it. */
		uint8_t *exact = malloc(len ? len : 1);
		memcpy(exact, copy, len);
		const int r = kernel_types_select((struct span){ exact, len }, wanted, &bytes);

		cr_expect(r == 0 || r == -EINVAL);
		free(exact);
		free(copy);
		buf_done(&bytes);
	}
	btf__free(wanted);
	buf_done(&few);
}
