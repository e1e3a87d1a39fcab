/* SPDX-License-Identifier: Apache-2.0 */
/* Sources, labels and links of samples, as a model takes them. */
#include "tests/unit/model_fixture.h"

static struct model *with_definitions(bool aggregate)
{
	struct model *m = new_model(MODEL_NAMES, aggregate, 1 << 20);

	take(m, (struct msg){ .id = MSG_HELLO, .hello = { .event = STR_LIT("cpu-clock") } });
	simple(m);
	take(m,
	     (struct msg){
		     .id = MSG_SOURCE,
		     .source = { .id = 1, .event = STR_LIT("alloc"), .unit = STR_LIT("bytes") } });
	take(m, (struct msg){ .id = MSG_LABEL, .label = { .id = 1, .key = STR_LIT("k") } });
	take(m, (struct msg){ .id = MSG_LABEL, .label = { .id = 2 } }); /* no key */
	take(m, (struct msg){ .id = MSG_LINK, .link = { .id = 1 } });	/* no trace */
	take(m, (struct msg){ .id = MSG_LABELS, .labels = { .id = 1, .list = LIST(1, 2) } });
	take(m, (struct msg){ .id = MSG_LABELS, .labels = { .id = 2, .list = LIST(1, 9) } });
	return m;
}

static int annotated(struct model *m, uint64_t source, uint64_t labels, uint64_t link,
		     struct model_sample *ret)
{
	const struct msg msg = { .id = MSG_SAMPLE,
				 .sample = { .stack = 1,
					     .thread = 1,
					     .time_ns = 7,
					     .value = source ? 1024 : 10,
					     .source = source,
					     .labels = labels,
					     .link = link } };

	return model_take(m, &msg, ret);
}

Test(annotations, samples_with_undefined_ones_are_malformed)
{
	struct model *m = with_definitions(false);
	struct model_sample s;

	cr_assert_eq(annotated(m, 1, 1, 1, &s), MODEL_SAMPLE);
	cr_assert(s.source != MODEL_NONE && s.labels != MODEL_NONE && s.link == MODEL_NONE);
	cr_assert_eq(annotated(m, 9, 0, 0, &s), 0);
	cr_assert_eq(annotated(m, 0, 2, 0, &s), 0); /* a list with an undefined label */
	cr_assert_eq(annotated(m, 0, 9, 0, &s), 0);
	cr_assert_eq(annotated(m, 0, 0, 9, &s), 0);
	cr_assert_eq(model_totals(m)->lost[LOST_MALFORMED], 4);
	cr_assert_eq(model_totals(m)->samples, 1);
	model_free(m);
}

Test(annotations, those_that_did_not_arrive_cost_samples_only_if_sources)
{
	struct model *m = with_definitions(false);
	struct model_sample s;

	model_missing(m, 1);
	cr_assert_eq(annotated(m, 0, 9, 9, &s), MODEL_SAMPLE);
	cr_assert(s.labels == MODEL_NONE && s.link == MODEL_NONE);
	cr_assert_eq(annotated(m, 9, 0, 0, &s), 0);
	cr_assert_eq(model_totals(m)->lost[LOST_SEQUENCE], 2);
	model_free(m);
}

Test(annotations, other_sources_are_left_out_of_sums_and_are_not_lost)
{
	struct model *m = with_definitions(true);
	const struct model_bucket *buckets;
	struct model_sample s;
	struct status st;

	cr_assert_eq(annotated(m, 0, 0, 0, &s), MODEL_SAMPLE);
	cr_assert_eq(annotated(m, 1, 0, 0, &s), 0);
	cr_assert_eq(annotated(m, 1, 0, 0, &s), 0);
	take(m,
	     (struct msg){ .id = MSG_FIGURE, .figure = { .name = STR_LIT("taken"), .value = 3 } });
	take(
		m, (struct msg) { .id = MSG_END });
	model_conclude(m);
	cr_assert_eq(model_buckets(m, &buckets), 1);
	cr_assert(buckets[0].samples == 1 && buckets[0].value == 10);
	model_status(m, &st, true);
	cr_assert(st.samples == 1 && st.left_out == 2 && st.top[0].self == 1);
	for (int i = 0; i < STATUS_REASONS; i++)
		cr_assert_eq(st.lost[i], 0);
	cr_assert_eq(model_period(m), 10);
	model_free(m);
}

Test(annotations, the_period_and_the_top_are_of_the_event_in_streams)
{
	struct model *m = with_definitions(false);
	struct model_sample s;
	struct status st;

	cr_assert_eq(annotated(m, 0, 0, 0, &s), MODEL_SAMPLE);
	cr_assert_eq(annotated(m, 1, 0, 0, &s), MODEL_SAMPLE);
	model_status(m, &st, true);
	cr_assert(st.samples == 2 && st.left_out == 0 && st.top[0].self == 1);
	cr_assert_eq(model_period(m), 10);
	model_free(m);
}
