/* SPDX-License-Identifier: Apache-2.0 */
/* The cost of definitions in prof-symd, as prof-bpf counts it (common/wire/epoch.h). */
#include "common/wire/epoch.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include "tools/prof-symd/stream/relayed.h"
#include "tools/prof-symd/stream/namer.h"

static int ask(void *ctx, const struct filestore_request *rq)
{
	return -ENOENT;
}

/* Defines processes and the like until their cost reaches the ceiling, also at sizes where tables
 * have just grown. */
static void fill(size_t ceiling, size_t cost, int (*define)(struct definitions *d, uint64_t id))
{
	const struct namer_limits l = NAMER_LIMITS;
	const struct definitions_limits limits = { .processes = l.processes,
						   .threads = l.threads,
						   .files = l.files,
						   .frames = l.frames,
						   .stacks = l.stacks,
						   .functions = l.raw_functions,
						   .relayed = l.relayed,
						   .numbers = l.numbers,
						   .bytes = ceiling };
	struct filestore store;
	struct definitions d;

	filestore_init(&store, 1u << 20, 1u << 20, ask, NULL);
	cr_assert_eq(definitions_init(&d, &limits, &store), 0);
	for (uint64_t id = 1; id * cost <= ceiling / 8 * EPOCH_EIGHTHS; id++)
		cr_assert_eq(define(&d, id), 0);
	cr_expect(!d.limit_hit, "cost %zu, ceiling %zu", cost, ceiling);
	definitions_done(&d);
}

static void fill_each(size_t cost, int (*define)(struct definitions *d, uint64_t id))
{
	for (size_t mib = 3; mib < 9; mib += 2)
		fill(mib << 20, cost, define);
	fill(32u << 20, cost, define);
}

static int process(struct definitions *d, uint64_t id)
{
	return definitions_process(
		d, &(struct msg_process){ .id = id, .comm = STR_LIT("0123456789abcdef") });
}

#define TITLE "a title of a thread that has more than fifteen bytes"

static int thread(struct definitions *d, uint64_t id)
{
	if (id == 1 && process(d, 1))
		return -ENOMEM;
	return definitions_thread(d, &(struct msg_thread){ .id = id,
							   .process = 1,
							   .comm = STR_LIT("0123456789abcdef"),
							   .title = STR_LIT(TITLE) });
}

static int frame(struct definitions *d, uint64_t id)
{
	struct definition_frame *f;

	return definitions_frame(d, &(struct msg_frame){ .id = id, .offset = id }, &f);
}

static int stack_of(struct definitions *d, uint64_t id, uint32_t n)
{
	static uint64_t frames[4096];
	struct definition_stack *s;

	return definitions_stack(
		d, &(struct msg_stack){ .id = id, .frames = { .data = frames, .len = n } }, &s);
}

static int shallow(struct definitions *d, uint64_t id)
{
	return stack_of(d, id, 1);
}

static int deep(struct definitions *d, uint64_t id)
{
	return stack_of(d, id, 2000);
}

static int file(struct definitions *d, uint64_t id)
{
	return definitions_file(d, &(struct msg_file){ .id = id, .path = STR_LIT("/some/path") });
}

static int function(struct definitions *d, uint64_t id)
{
	return definitions_function(d, &(struct msg_function){ .id = id,
							       .name = STR_LIT("function"),
							       .system_name = STR_LIT("function"),
							       .source = STR_LIT("module") });
}

static int cgroup(struct definitions *d, uint64_t id)
{
	return relayed_take(d, &(struct msg){ .id = MSG_CGROUP,
					      .cgroup = { .id = id, .path = STR_LIT("/a/path") } });
}

static int mapping(struct definitions *d, uint64_t id)
{
	const struct msg_mapping m = { .process = (id + 999) / 1000,
				       .file = UINT64_MAX,
				       .start = id,
				       .end = UINT64_MAX,
				       .offset = UINT64_MAX };

	if (id % 1000 == 1 && process(d, m.process))
		return -ENOMEM;
	return relayed_take(d, &(struct msg){ .id = MSG_MAPPING, .mapping = m });
}

static int attribute(struct definitions *d, uint64_t id)
{
	char key[] = "process.environment_variable.0000";
	struct msg_attribute m = { .process = (id + 16) / 17, .value = STR_LIT("0123456789") };

	if (id % 17 == 1 && process(d, m.process))
		return -ENOMEM;
	snprintf(key, sizeof(key), "process.environment_variable.%04u", (unsigned)(id % 17));
	m.key = str_from(key);
	return relayed_take(d, &(struct msg){ .id = MSG_ATTRIBUTE, .attribute = m });
}

Test(epoch, prof_symd_has_room_for_what_prof_bpf_sends)
{
	fill_each(EPOCH_PROCESS, process);
	fill_each(EPOCH_THREAD + strlen(TITLE), thread);
	fill_each(EPOCH_FRAME, frame);
	fill_each(EPOCH_STACK + EPOCH_NUMBER, shallow);
	fill_each(EPOCH_STACK + 2000 * EPOCH_NUMBER, deep);
	fill_each(EPOCH_FILE + 10, file);
	fill_each(EPOCH_FUNCTION + 22, function);
	fill_each(EPOCH_EXTRA + 7, cgroup);
	fill_each(EPOCH_EXTRA + EPOCH_MAPPING, mapping);
	fill_each(EPOCH_EXTRA + 43 + EPOCH_PROCESS / 17 + 1, attribute);
}

static unsigned asked;

static int answer(void *ctx, const struct filestore_request *rq)
{
	asked++;
	filestore_answer(ctx, rq->id, rq->want ? -1 : open("/usr/bin/true", O_RDONLY | O_CLOEXEC),
			 1);
	return 0;
}

/* Defines a file, and returns its program. */
static struct program *program_of(struct definitions *d, uint64_t id, uint64_t ctime_ns,
				  uint64_t flags)
{
	struct program *ret = NULL;

	cr_assert_eq(definitions_file(d, &(struct msg_file){ .id = id,
							     .ctime_ns = ctime_ns,
							     .path = STR_LIT("/usr/bin/true"),
							     .flags = flags }),
		     0);
	cr_assert_eq(filestore_get(d->store, &definitions_find_file(d, id)->store, 1, &ret), 0);
	cr_assert(ret);
	return ret;
}

Test(epoch, a_file_that_is_defined_again_has_no_more_room_than_a_new_one)
{
	static const char path[4096] = { [0 ... 4095] = 'x' };
	const struct definitions_limits limits = { .files = 100, .bytes = 64 << 10 };
	struct definitions d;
	struct filestore store;

	filestore_init(&store, 1u << 20, 1u << 20, ask, NULL);
	cr_assert_eq(definitions_init(&d, &limits, &store), 0);
	for (uint64_t id = 1; id <= 50; id++)
		cr_assert_eq(file(&d, id), 0);
	cr_expect(!d.limit_hit);
	for (uint64_t id = 1; id <= 50; id++)
		cr_assert_eq(definitions_file(
				     &d, &(struct msg_file){ .id = id, .path = { path, 4096 } }),
			     0);
	cr_expect(d.limit_hit);
	cr_expect_leq(definitions_bytes(&d), 64 << 10);
	cr_expect_eq(definitions_find_file(&d, 1)->def.path.len, 4096);
	cr_expect_lt(definitions_find_file(&d, 50)->def.path.len, 4096, "it keeps the former one");
	definitions_done(&d);
}

Test(epoch, a_file_that_turns_out_to_be_of_the_hosts_root_changes_its_worker)
{
	const struct definitions_limits limits = { .files = 100 };
	struct filestore store;
	struct definitions d;

	filestore_init(&store, 64u << 20, 1u << 20, answer, &store);
	cr_assert_eq(definitions_init(&d, &limits, &store), 0);
	program_of(&d, 1, 5, 0);
	const unsigned once = asked;

	cr_expect_not(definitions_find_file(&d, 1)->store.of_root);
	program_of(&d, 1, 5, 0);
	cr_expect_eq(asked, once);
	program_of(&d, 1, 5, MSG_FILE_ROOT_ONLY);
	cr_expect_gt(asked, once, "another worker opens it");
	cr_expect(definitions_find_file(&d, 1)->store.of_root);
	cr_expect_eq(store.open_count, 1);
	definitions_done(&d);
}

Test(epoch, a_program_stays_open_if_the_next_epoch_defines_the_same_file)
{
	const struct definitions_limits limits = { .files = 100 };
	struct filestore store;
	struct definitions d;

	filestore_init(&store, 64u << 20, 1u << 20, answer, &store);
	cr_assert_eq(definitions_init(&d, &limits, &store), 0);
	struct program *const root = program_of(&d, 1, 5, MSG_FILE_ROOT_ONLY),
			      *const other = program_of(&d, 2, 5, 0);
	const unsigned both = asked;

	definitions_clear(&d);
	cr_expect_eq(program_of(&d, 1, 5, MSG_FILE_ROOT_ONLY), root);
	cr_expect_eq(program_of(&d, 2, 5, 0), other);
	cr_expect_eq(asked, both);
	definitions_clear(&d);
	program_of(&d, 1, 6, MSG_FILE_ROOT_ONLY);
	cr_expect_gt(asked, both, "it has changed");
	definitions_clear(&d);
	cr_expect_eq(store.open_count, 1, "the others were not needed for an epoch");
	definitions_done(&d);
	cr_expect_eq(store.open_count, 0);
}
