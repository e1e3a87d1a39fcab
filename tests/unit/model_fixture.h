/* SPDX-License-Identifier: Apache-2.0 */
/* Models of prof-export that are made of messages. */
#ifndef TESTS_UNIT_MODEL_FIXTURE_H
#define TESTS_UNIT_MODEL_FIXTURE_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <unistd.h>
#include "tools/prof-export/model/label.h"
#include "tools/prof-export/model/model.h"
#include "tools/prof-export/output/folded.h"

#define LIST(...) \
	{ \
		.data = (uint64_t[]){ __VA_ARGS__ }, \
		.len = sizeof((uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t) \
	}

static inline struct model *model_of(const struct model_options *o)
{
	struct model *m = NULL;

	cr_assert_eq(model_new(o, &m), 0);
	return m;
}

static inline struct model *new_model(enum model_detail detail, bool aggregate, size_t memory_max)
{
	return model_of(&(struct model_options){
		.detail = detail, .aggregate = aggregate, .memory_max = memory_max });
}

static inline int take(struct model *m, struct msg msg)
{
	struct model_sample sample;

	return model_take(m, &msg, &sample);
}

static inline void process(struct model *m, uint64_t id, uint64_t pid, struct str comm)
{
	take(m, (struct msg){ .id = MSG_PROCESS,
			      .process = { .id = id, .pid = pid, .start_ns = pid, .comm = comm } });
	take(m, (struct msg){ .id = MSG_THREAD,
			      .thread = { .id = id, .process = id, .tid = pid, .comm = comm } });
}

static inline void function(struct model *m, uint64_t id, struct str name)
{
	take(m, (struct msg){ .id = MSG_FUNCTION, .function = { .id = id, .name = name } });
}

static inline void frame(struct model *m, uint64_t id, uint64_t offset, uint64_t f)
{
	take(m, (struct msg){ .id = MSG_FRAME,
			      .frame = { .id = id,
					 .offset = offset,
					 .address = offset,
					 .functions = LIST(f),
					 .lines = LIST(id) } });
}

static inline int sample(struct model *m, uint64_t stack, uint64_t thread)
{
	return take(m, (struct msg){ .id = MSG_SAMPLE,
				     .sample = { .stack = stack,
						 .thread = thread,
						 .time_ns = 1000,
						 .value = 7 } });
}

static inline char *folded(const struct model *m, bool threads)
{
	static char text[65536];
	static struct output o;
	FILE *f = tmpfile();

	cr_assert_not_null(f);
	cr_assert_eq(output_init(&o, fileno(f), false), 0);
	cr_assert_eq(folded_write(m, threads, &o), 0);
	cr_assert_eq(output_done(&o), 0);
	output_free(&o);
	rewind(f);
	text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
	fclose(f);
	return text;
}

static inline void simple(struct model *m)
{
	process(m, 1, 10, STR_LIT("a"));
	function(m, 1, STR_LIT("main"));
	function(m, 2, STR_LIT("leaf"));
	frame(m, 1, 100, 1);
	frame(m, 2, 200, 2);
	take(m, (struct msg){ .id = MSG_STACK, .stack = { .id = 1, .frames = LIST(2, 1) } });
}

#endif
