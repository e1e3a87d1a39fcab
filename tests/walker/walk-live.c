/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walker in the kernel, on one live process: `walk-live PID SECONDS HZ` loads the BPF programs
 * and the rows of the files that PID maps, samples it, and prints how its stacks ended, how deep
 * they were, and the cost of a sample. It does no other work of the pipeline.
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/base/system/clock.h"
#include "common/wire/msg.h"
#include "common/wire/reason.h"
#include "tests/walker/process.h"
#include "tools/prof-bpf/kernel/loader.h"

static uint64_t samples, frames, kernel_frames, by_fp, reasons[WALK_REASONS], deepest;

static void on_deferred(void *ctx, const struct deferred_sample *d)
{
	samples++;
	reasons[d->sample.reason < WALK_REASONS ? d->sample.reason : 0]++;
}

static void on_sample(void *ctx, const struct sample *s)
{
	samples++;
	frames += s->user_frames;
	kernel_frames += s->kernel_frames;
	if (s->user_frames > deepest)
		deepest = s->user_frames;
	for (unsigned i = 0; i < s->user_frames; i++)
		by_fp += sample_user_frames(s)[i] >> 63;
	reasons[s->reason < WALK_REASONS ? s->reason : 0]++;
}

/* Field 22 of /proc/PID/stat, in ns. */
static uint64_t start_ns(const char *pid)
{
	char path[64], text[1024];

	snprintf(path, sizeof(path), "/proc/%s/stat", pid);
	FILE *f = fopen(path, "re");
	if (!f || !fgets(text, sizeof(text), f))
		err(1, "%s", path);
	fclose(f);
	char *at = strrchr(text, ')');
	for (int i = 0; at && i < 20; i++)
		at = strchr(at + 1, ' ');
	return at ? strtoull(at, NULL, 10) * SAMPLE_START_TICK_NS : 0;
}

int main(int argc, char **argv)
{
	struct loader *l;
	struct tables *t;
	struct tables_config c = { .max_bytes = 128u << 20 };
	struct loader_figures fig;
	uint32_t generation;
	struct space space;

	if (argc != 4)
		errx(2, "usage: walk-live PID SECONDS HZ");
	const struct loader_config lc = { .hz = (unsigned)atoi(argv[3]),
					  .ring_max = 16u << 20,
					  .drain_ms = 10,
					  .only_selected = true };
	int r = loader_new(&lc, &l);
	if (r || (r = loader_load(l)))
		errx(1, "BPF: %s (%s)", strerror(-r), r ? loader_trouble(NULL) : "");
	loader_tables(l, &c);
	if (tables_new(&c, &t))
		errx(1, "tables");
	process_open(&space, t, atoi(argv[1]));
	process_load(&space);
	struct tables_mapping *m = space_tables(&space);
	if (!m)
		errx(1, "no memory");
	r = tables_process_set(t, (uint32_t)atoi(argv[1]), start_ns(argv[1]), clock_mono_ns(), m,
			       space.mapping_count, true, &generation);
	free(m);
	if (r || (r = loader_start(l)))
		errx(1, "start: %d", r);
	for (int i = 0; i < atoi(argv[2]) * 20; i++) {
		usleep(50000);
		loader_drain(l, on_sample, on_deferred, NULL);
	}
	loader_stop(l);
	loader_drain(l, on_sample, on_deferred, NULL);
	loader_figures(l, &fig);
	struct tables_figures tf;
	tables_figures(t, &tf);
	printf("samples %lu frames %lu kernel %lu deepest %lu by_fp %lu ns_per_sample %lu "
	       "ns_per_frame %lu map_bytes %lu slab_bytes %lu rows %lu rules %lu verified %u\n",
	       samples, frames, kernel_frames, deepest, by_fp, fig.runs ? fig.ns / fig.runs : 0,
	       frames ? fig.ns / frames : 0, fig.map_bytes, tf.bytes, tf.rows, tf.rules,
	       fig.verified);
	for (int i = 0; i < WALK_REASONS; i++) {
		if (reasons[i])
			printf("%s %lu\n", reason_walk_word((uint64_t)i), reasons[i]);
	}
	space_done(&space);
	loader_free(l);
	tables_free(t);
	return 0;
}
