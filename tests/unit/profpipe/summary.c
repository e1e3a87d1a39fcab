/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/profpipe/run/summary/summary.h"

#include <cjson/cJSON.h>
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "common/wire/msg.h"

static struct summary_cost costs[] = { { .tool = "prof-bpf", .pss_peak = 3 << 20 },
				       { .tool = "profpipe", .pss_peak = 1 << 20 } };

static struct summary some(void)
{
	costs[0].pss_peak = 3 << 20;
	return (struct summary){
		.figures = { .samples = 9, .complete = 9, .duration_ns = 1000000000 },
		.hz = 99,
		.format = "folded",
		.first_complete_s = -1,
		.pss_peak = 4 << 20,
		.costs = costs,
		.cost_count = 2
	};
}

static bool says(const struct summary *s, const char *what)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	summary_print(out, s);
	fclose(out);
	const bool found = strstr(text, what);

	if (!found)
		fputs(text, stderr);
	free(text);
	return found;
}

/* `cost` in the JSON. */
static const cJSON *cost_of(const struct summary *s, cJSON **ret_all)
{
	const int fd = memfd_create("summary", MFD_CLOEXEC);
	static char text[65536];

	cr_assert_eq(summary_json(fd, s), 0);
	const ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

	cr_assert_gt(n, 0);
	text[n] = '\0';
	close(fd);
	*ret_all = cJSON_Parse(text);
	return cJSON_GetObjectItem(*ret_all, "cost");
}

static const cJSON *pss(const cJSON *cost, const char *tool)
{
	return cJSON_GetObjectItem(
		tool ? cJSON_GetObjectItem(cJSON_GetObjectItem(cost, "tools"), tool) : cost,
		"pss_bytes");
}

Test(summary, memory_that_is_known_is_a_number)
{
	const struct summary s = some();
	cJSON *all;
	const cJSON *cost = cost_of(&s, &all);

	cr_assert_eq(pss(cost, "prof-bpf")->valuedouble, 3 << 20);
	cr_assert_eq(pss(cost, NULL)->valuedouble, 4 << 20);
	cJSON_Delete(all);
	cr_assert(says(&s, "; 4.0 MiB of memory and 0 KiB of BPF maps"));
}

Test(summary, the_peak_of_memory_use_is_reported)
{
	struct summary s = some();
	cJSON *all;

	s.figures.memory_peak = 59 << 20;
	const cJSON *peak = cJSON_GetObjectItemCaseSensitive(cost_of(&s, &all),
							     "memory_peak_bytes");

	cr_assert(cJSON_IsNumber(peak));
	cr_assert_eq(peak->valuedouble, 59 << 20);
	cJSON_Delete(all);
	cr_assert(says(&s, "0 KiB of BPF maps, at most 59 MiB at one time"));
}

Test(summary, unreadable_memory_of_a_tool_is_unknown_and_so_is_the_sum)
{
	struct summary s = some();
	cJSON *all;

	s.pss_peak = 1 << 20;
	costs[0].pss_peak = 0;
	const cJSON *cost = cost_of(&s, &all);

	cr_assert(cJSON_IsNull(pss(cost, "prof-bpf")));
	cr_assert_eq(pss(cost, "profpipe")->valuedouble, 1 << 20);
	cr_assert(cJSON_IsNull(pss(cost, NULL)));
	cJSON_Delete(all);
	cr_assert(says(&s, "; an unknown amount of memory"));
}

Test(summary, a_gap_in_sampling_is_told_apart_from_losses)
{
	struct summary s = some();

	cr_assert(says(&s, "\nnothing was lost\n"));
	s.figures.unsampled_ns = 4932000000;
	s.figures.unsampled = 284;
	cr_assert(says(&s, "\nno sample that was taken was lost\nnot sampled: 4.932 s"));
	cJSON *all;
	(void)cost_of(&s, &all);
	const cJSON *note = cJSON_GetArrayItem(cJSON_GetObjectItem(all, "notes"), 0);
	cr_assert_str_eq(note->valuestring,
			 "not sampled: 4.932 s in all while prof-bpf was away, some 284 samples");
	cr_assert_eq(cJSON_GetObjectItem(all, "unsampled_samples")->valuedouble, 284);
	cJSON_Delete(all);
	s.figures.lost[LOST_RESTART] = 3;
	cr_assert(says(&s, "\nlost:\n"));
}

Test(summary, other_losses_are_listed_when_no_sample_was_lost)
{
	struct summary s = some();

	s.figures.lost[LOST_SIDEBAND] = 49;
	cr_assert(says(&s, "\nno sample was lost\nother losses:\n        49  sideband: "));
}

Test(summary, a_count_of_one_has_no_plural)
{
	struct summary s = some();

	s.figures.samples = s.figures.complete = s.figures.processes = s.figures.threads = 1;
	cr_assert(says(&s, "1 sample in 1.0 s at 99 Hz, of 1 process and 1 thread; "
			   "1 stack complete (100.00 %)\n"));
	s.figures.processes = 2;
	cr_assert(says(&s, "of 2 processes and 1 thread;"));
}

Test(summary, remedies_are_in_both_forms)
{
	struct summary s = some();
	cJSON *all;

	s.figures.complete = 1;
	s.figures.truncated[WALK_NO_ROWS] = 8;
	s.figures.runtime_samples[0] = 9;
	s.figures.runtime_truncated[0] = 8;
	cr_assert(says(
		&s, "\nremedies:\n         8  java, truncated: start it with "
		    "-XX:+PreserveFramePointer, or JAVA_TOOL_OPTIONS=-XX:+PreserveFramePointer\n"));
	(void)cost_of(&s, &all);
	const cJSON *r = cJSON_GetArrayItem(cJSON_GetObjectItem(all, "remedies"), 0);
	cr_assert_str_eq(cJSON_GetObjectItem(r, "name")->valuestring, "java");
	cr_assert_eq(cJSON_GetObjectItem(r, "samples")->valuedouble, 8);
	cr_assert_str_eq(cJSON_GetObjectItem(r, "what")->valuestring, "truncated");
	cr_assert_eq(cJSON_GetArraySize(cJSON_GetObjectItem(all, "remedies")), 1);
	cr_assert_eq((int)(cJSON_GetObjectItem(all, "complete_percent")->valuedouble * 100), 1111);
	cJSON_Delete(all);
}
