/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-metrics/page.h"

#include <criterion/criterion.h>
#include <string.h>
#include "common/wire/msg.h"

static struct buf b;

static const char *print(const struct metrics_word *w, bool up)
{
	b = BUF_INIT(64 << 10);
	cr_assert_eq(page_print(&b, w, up), 0);
	cr_assert_eq(buf_append(&b, "", 1), 0);
	return (const char *)b.data;
}

static void expect(const char *text, const char *line)
{
	cr_assert(strstr(text, line), "%s is not in\n%s", line, text);
}

Test(page, each_figure_has_its_line)
{
	struct metrics_word w = { .sampling = 1,
				  .samples = 12345678901234567890u,
				  .written = 2,
				  .lost = { [LOST_CPU_LIMIT] = 3, [LOST_SIDEBAND] = 4 },
				  .requests = 5,
				  .dropped = 6,
				  .delivered = 7,
				  .undelivered = 8,
				  .retries = 9,
				  .queued = 10,
				  .tools = { { 1, 11, 1234567890, 13 },
					     [METRICS_LAUNCHER] = { 1, 0, 2000000000, 14 } } };
	const char *text = print(&w, true);

	expect(text, "\nprofpipe_up 1\n");
	expect(text, "\nprofpipe_sampling 1\n");
	expect(text, "\nprofpipe_samples_total 12345678901234567890\n");
	expect(text, "\nprofpipe_samples_kept_total 2\n");
	expect(text, "\nprofpipe_lost_total{reason=\"cpu-limit\"} 3\n");
	expect(text, "\nprofpipe_lost_total{reason=\"sideband\"} 4\n");
	expect(text, "\nprofpipe_lost_total{reason=\"ring-full\"} 0\n");
	expect(text, "\nprofpipe_requests_total 5\n");
	expect(text, "\nprofpipe_requests_dropped_total 6\n");
	expect(text, "\nprofpipe_requests_delivered_total 7\n");
	expect(text, "\nprofpipe_requests_lost_total 8\n");
	expect(text, "\nprofpipe_requests_retries_total 9\n");
	expect(text, "\nprofpipe_requests_queued 10\n");
	expect(text, "\nprofpipe_restarts_total{tool=\"prof-bpf\"} 11\n");
	expect(text, "\nprofpipe_cpu_seconds_total{tool=\"prof-bpf\"} 1.234\n");
	expect(text, "\nprofpipe_memory_bytes{tool=\"prof-bpf\"} 13\n");
	expect(text, "\nprofpipe_tool_up{tool=\"prof-send\"} 0\n");
	expect(text, "\nprofpipe_cpu_seconds_total{tool=\"profpipe\"} 2.000\n");
	buf_done(&b);
}

Test(page, a_silent_launcher_is_not_up)
{
	const struct metrics_word w = { .magic = METRICS_MAGIC };

	expect(print(&w, false), "\nprofpipe_up 0\n");
	buf_done(&b);
}

Test(page, a_run_that_sends_nothing_is_not_up)
{
	const struct metrics_word w = { .magic = METRICS_MAGIC, .send_failed = 1 };

	expect(print(&w, true), "\nprofpipe_up 0\n");
	buf_done(&b);
}

Test(page, each_metric_is_described_once)
{
	struct metrics_word w = { .magic = METRICS_MAGIC };
	char *text = strdup(print(&w, true)), *save = NULL, name[64] = "";
	unsigned described = 0;

	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		if (strncmp(line, "# HELP ", 7) == 0) {
			snprintf(name, sizeof(name), "%.*s", (int)strcspn(line + 7, " "), line + 7);
			described++;
		} else if (strncmp(line, "# TYPE ", 7) == 0) {
			cr_assert_eq(strncmp(line + 7, name, strlen(name)), 0);
		} else {
			cr_assert_eq(strncmp(line, name, strlen(name)), 0, "%s", line);
		}
	}
	cr_assert_eq(described, 15);
	free(text);
	buf_done(&b);
}
