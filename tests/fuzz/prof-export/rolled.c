/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Input: a journal that has rolled, as a prof-export that was taken over may leave it. Only the
 * number of the build is corrected. The next prof-export refuses it, or continues with a sender's
 * stream and ends properly.
 */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>
#include "tests/fuzz/must.h"
#include "tools/prof-export/session/journal.h"

#define MODEL_BYTES (256u << 10)
#define BUILD_AT 8
#define OUTPUT_BYTES 100

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct session session;
static struct buf sent = BUF_INIT(4096);

static void no_beat(void *ctx)
{
	(void)ctx;
}

static int collect(void *ctx, struct span batch)
{
	return buf_append(ctx, batch.data, batch.len);
}

static void make_stream(void)
{
	struct stream_out o;

	stream_out_init(&o, 4096, collect, &sent);
	stream_out_epoch(&o, 1ull << 40);
	must(!stream_put(
		&o, &(struct msg){ .id = MSG_HELLO,
				   .hello = { .schema = MSG_SCHEMA, .kind = MSG_STREAM_NAMED } }));
	must(!stream_put(&o, &(struct msg){ .id = MSG_STACK, .stack = { .id = 1 } }));
	must(!stream_put(&o,
			 &(struct msg){ .id = MSG_SAMPLE, .sample = { .stack = 1, .value = 1 } }));
	must(!stream_flush(&o));
	stream_out_done(&o);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int output, file;
	const uint64_t build = msg_build();
	const char text[OUTPUT_BYTES] = { 0 };

	if (!file) {
		file = memfd_create("journal", MFD_CLOEXEC);
		output = memfd_create("output", MFD_CLOEXEC);
		make_stream();
	}
	must(file > 0 && output > 0 && !ftruncate(file, 0) && !ftruncate(output, 0));
	must(pwrite(file, data, size, 0) == (ssize_t)size);
	if (size >= BUILD_AT + sizeof(build))
		must(pwrite(file, &build, sizeof(build), BUILD_AT) == sizeof(build));
	must(pwrite(output, text, sizeof(text), 0) == sizeof(text) && !lseek(output, 0, SEEK_SET));
	/* The length also chooses the format. */
	const enum format formats[] = { FORMAT_TEXT, FORMAT_STREAM, FORMAT_OTLP };
	const struct session_options o = { .format = formats[size % 3],
					   .reporting = REPORTING_DEFAULTS,
					   .memory_max = MODEL_BYTES,
					   .many = true };
	struct journal j = { .fd = file, .max = 1u << 20 };

	must(!session_init(&session, &o, output));
	const int r = journal_replay(&j, &session, no_beat, NULL);

	must((r >= 0 && r <= STREAM_AGAIN) || r == -EBADMSG || r == -EINVAL || r == -ENOMEM);
	if (r == STREAM_AGAIN) {
		const uint64_t samples = model_totals(session.model)->samples;

		must(journal_feed(&j, &session, buf_span(&sent)) == STREAM_AGAIN);
		must(model_totals(session.model)->samples == samples + 1);
		must(j.bytes >= sent.len && lseek(file, 0, SEEK_CUR) == (off_t)j.bytes);
	}
	if (session.begun)
		(void)session_finish(&session);
	session_done(&session);
	return 0;
}
