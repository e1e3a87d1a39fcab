/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-export/session/session.h"

#include <endian.h>
#include <errno.h>
#include "common/status/account.h"
#include "tools/prof-export/output/folded.h"
#include "tools/prof-export/output/pprof.h"
#include "tools/prof-export/page/html.h"

#define WINDOW_PART 4 /* share of the memory for the windows of OTLP */

/* Writes an OTLP request to the output. */
static int put_request(void *ctx, const struct request *r)
{
	struct output *o = ctx;
	const uint32_t len = htobe32((uint32_t)r->plain.len);

	output_put(o, &len, sizeof(len));
	output_put(o, r->plain.data, r->plain.len);
	return o->error;
}

int session_init(struct session *s, const struct session_options *o, int fd)
{
	const size_t windows = o->format == FORMAT_OTLP ? o->memory_max / WINDOW_PART : 0;
	const bool at_end = o->format == FORMAT_FOLDED || o->format == FORMAT_PPROF ||
			    o->format == FORMAT_HTML;
	const struct otlp_options otlp = { .reporting = o->reporting,
					   .gzip = o->send != NULL,
					   .memory_max = windows + o->requests_max,
					   .flush = o->send ? o->send : put_request,
					   .ctx = o->send ? o->send_ctx : &s->output };
	const struct model_options model = {
		.detail = o->format == FORMAT_FOLDED || o->format == FORMAT_HTML ? MODEL_NAMES
										 : MODEL_ADDRESSES,
		.interpreter_frames = o->interpreter_frames,
		.code = o->code,
		.lines = o->lines,
		.names = o->reporting.names,
		.aggregate = at_end,
		.surroundings = o->format == FORMAT_OTLP,
		.memory_max = o->memory_max - windows,
		/* The memory for OTLP does not grow during the run. */
		.share_most = o->format == FORMAT_OTLP ? 0 : o->share_most,
		.others = o->others,
		.joins = o->joins,
	};

	s->options = *o;
	s->model = NULL;
	s->text = (struct text){ 0 };
	s->begun = s->lost = s->again = false;
	stream_in_init(&s->in);
	if (o->many)
		s->in.way = MSG_NAMED_STREAM;
	record_init(&s->record, &s->output);
	otlp_init(&s->otlp, &otlp);
	int r = output_init(&s->output, fd, o->format == FORMAT_PPROF);

	return r ? r : model_new(&model, &s->model);
}

void session_done(struct session *s)
{
	model_free(s->model);
	stream_in_done(&s->in);
	record_done(&s->record);
	otlp_done(&s->otlp);
	text_done(&s->text);
	output_free(&s->output);
}

static bool is_of_run(struct str figure)
{
	return str_starts(figure, "run_") || str_starts(figure, "restarts_") ||
	       str_starts(figure, "witness_");
}

/* Writes what a recording lacks, and the differences from prof-bpf's report. They must come before
 * the end of the recording. */
static int put_verdict(struct session *s)
{
	struct status st;

	model_judge(s->model);
	model_status(s->model, &st, false);

	const struct {
		struct str name;
		uint64_t value;
	} figures[] = { { STR_LIT("witness_more"), st.witness_more },
			{ STR_LIT("witness_fewer"), st.witness_fewer },
			{ STR_LIT("witness_losses"), st.witness_losses },
			{ STR_LIT("skipped_messages"), st.skipped_messages },
			{ STR_LIT("skipped_fields"), st.skipped_fields } };
	unsigned rests = 0;
	int r = 0;

	for (size_t i = 0; !r && i < sizeof(figures) / sizeof(figures[0]); i++) {
		const struct msg m = { .id = MSG_FIGURE,
				       .figure = { .name = figures[i].name,
						   .value = figures[i].value } };

		if (!figures[i].value)
			continue;
		do
			r = record_take(&s->record, &m);
		while (output_rest(&s->output, r, &rests));
	}
	return r;
}

/* Closes windows by the time in the stream. A stream without samples also reports the time until
 * which it was sampled, every second. */
static int pass_time(struct session *s, const struct msg *m)
{
	const uint64_t ns = m->id == MSG_FIGURE ? model_sampled_until_ns(s->model) : 0;

	return ns ? otlp_time(&s->otlp, s->model, ns) : 0;
}

/* The open window may have samples of a process about which this message says more. */
static void pass_process(struct session *s, const struct msg *m)
{
	const uint64_t id = m->id == MSG_PROCESS     ? m->process.id
			    : m->id == MSG_ATTRIBUTE ? m->attribute.process
						     : 0;

	if (id)
		otlp_process(&s->otlp, s->model, model_process(s->model, id));
}

static int take(struct session *s, const struct msg *m)
{
	struct model_sample sample;
	unsigned rests = 0;
	const bool recording = s->options.format == FORMAT_STREAM;
	int r = 0;

	if (m->id == MSG_HELLO && !s->begun) {
		s->begun = true;
		output_begin(&s->output);
	}
	if (s->in.new_epoch) {
		model_forget(s->model);
		otlp_forget(&s->otlp);
		r = recording ? record_epoch(&s->record) : 0;
		s->in.new_epoch = false;
	}
	/* In a recording, a loss may only come after the hello. */
	if (m->id != MSG_HELLO) {
		const uint64_t missing = stream_missing(&s->in);

		model_missing(s->model, missing);
		if (!r && recording) {
			do
				r = record_missing(&s->record, missing);
			while (output_rest(&s->output, r, &rests));
		}
	}
	/* For facts that the stream cannot know, accept only those from the launcher, not from the
	 * stream. */
	if (m->id == MSG_FIGURE && s->options.many && is_of_run(m->figure.name))
		return r ? r : s->output.error;
	model_skipped(s->model, s->in.skipped.messages, s->in.skipped.fields);

	const bool is_sample = model_take(s->model, m, &sample) == MODEL_SAMPLE;

	s->lost = s->options.many && m->id == MSG_END
	&&m->end.reason == MSG_END_PEER_LOST;
	if (!r && recording && m->id == MSG_END && !s->lost)
		r = put_verdict(s);
	if (!r && recording && !s->lost) {
		do
			r = record_take(&s->record, m);
		while (output_rest(&s->output, r, &rests));
	}
	if (!r && is_sample && s->options.format == FORMAT_TEXT)
		r = text_sample(&s->text, s->model, &sample, &s->output);
	if (s->options.format == FORMAT_OTLP)
		pass_process(s, m);
	if (!r && s->options.format == FORMAT_OTLP && !s->again)
		r = is_sample ? otlp_sample(&s->otlp, s->model, &sample) : pass_time(s, m);
	return r ? r : s->output.error;
}

int session_feed(struct session *s, struct span bytes)
{
	unsigned rests = 0;
	int r;

	do
		r = stream_feed(&s->in, bytes);
	while (output_rest(&s->output, r, &rests));
	if (r)
		return r == -ENOBUFS ? STREAM_MALFORMED : r;
	while (!s->in.ended) {
		struct msg m;

		do
			r = stream_next(&s->in, &m);
		while (output_rest(&s->output, r, &rests));
		if (r)
			return r;
		r = take(s, &m);
		if (r)
			return r;
	}
	return 0;
}

int session_tell(struct session *s, struct str name, uint64_t value)
{
	const struct msg m = { .id = MSG_FIGURE, .figure = { .name = name, .value = value } };
	struct model_sample none;
	unsigned rests = 0;
	int r = 0;

	(void)model_take(s->model, &m, &none);
	if (s->options.format != FORMAT_STREAM || s->record.ended)
		return 0;
	do
		r = record_take(&s->record, &m);
	while (output_rest(&s->output, r, &rests));
	return r;
}

int session_time(struct session *s, uint64_t ns)
{
	return s->begun && s->options.format == FORMAT_OTLP ? otlp_time(&s->otlp, s->model, ns) : 0;
}

void session_replay(struct session *s)
{
	s->again = s->options.send != NULL;
}

void session_replayed(struct session *s)
{
	if (s->again)
		otlp_resume(&s->otlp, s->model);
	s->again = false;
}

bool session_may_settle(const struct session *s)
{
	return s->begun && format_streams(s->options.format);
}

static int write_waiting(struct session *s)
{
	if (s->options.format == FORMAT_STREAM)
		return record_flush(&s->record);
	/* Requests for prof-send must not be made twice. */
	return s->options.format == FORMAT_OTLP && !s->options.send
		       ? otlp_settle(&s->otlp, s->model)
		       : 0;
}

int session_settle(struct session *s, struct session_mark *ret)
{
	unsigned rests = 0;
	int r;

	do
		r = write_waiting(s);
	while (output_rest(&s->output, r, &rests));
	if (!r)
		r = output_flush(&s->output);
	if (r)
		return r;
	*ret = (struct session_mark){ .output_bytes = s->output.bytes,
				      .record_epoch = s->record.out.epoch,
				      .window_begin_ns = s->otlp.open ? s->otlp.begin_ns : 0,
				      .window_end_ns = s->otlp.open ? s->otlp.end_ns : 0 };
	model_save(s->model, &ret->model);
	return 0;
}

int session_resume(struct session *s, const struct session_mark *mark)
{
	if (!model_restore(s->model, &mark->model))
		return -EBADMSG;
	const struct model_totals *t = model_totals(s->model);

	s->begun = s->in.hello_seen = true;
	s->in.skipped = (struct stream_skipped){ .messages = t->skipped_messages[0],
						 .fields = t->skipped_fields[0] };
	record_resume(&s->record, mark->record_epoch);
	otlp_resume(&s->otlp, s->model);
	if (mark->window_end_ns && !s->options.send)
		otlp_reopen(&s->otlp, s->model, mark->window_begin_ns, mark->window_end_ns);
	output_resume(&s->output, mark->output_bytes);
	return s->output.error;
}

void session_reopen(struct session *s)
{
	buf_reset(&s->in.pending);
	s->in.taken = 0;
	s->in.ended = s->lost = false;
}

/* Importers ignore comments. */
static int text_end(struct session *s)
{
	char notes[ACCOUNT_NOTES][ACCOUNT_NOTE];
	struct status st;

	model_status(s->model, &st, false);
	const bool says = account_falsified(&st) || st.skipped_messages || st.skipped_fields;

	for (size_t i = 0, n = account_notes(&st, notes); says && i < n; i++)
		output_printf(&s->output, "# %s\n", notes[i]);
	return s->output.error;
}

static int write_end(struct session *s)
{
	switch (s->options.format) {
	case FORMAT_TEXT:
		return text_end(s);
	case FORMAT_FOLDED:
		return folded_write(s->model, s->options.threads, &s->output);
	case FORMAT_PPROF:
		return pprof_write(s->model, &s->output);
	case FORMAT_HTML:
		return html_write(s->model, &s->output);
	case FORMAT_OTLP:
		return otlp_finish(&s->otlp, s->model);
	case FORMAT_STREAM:
		return record_finish(&s->record, model_totals(s->model)->last_ns);
	default:
		return 0;
	}
}

/* Writes what belongs at the end of the format. */
static int write_out(struct session *s)
{
	const bool at_end = !format_streams(s->options.format);
	unsigned rests = 0;
	int r;

	do
		r = write_end(s);
	while (output_rest(&s->output, r, &rests) && (!at_end || output_rewind(&s->output)));
	const int e = output_done(&s->output);

	return e ? e : r;
}

int session_finish(struct session *s)
{
	model_conclude(s->model);
	return write_out(s);
}

int session_turn(struct session *s, int fd, struct status *ret_status)
{
	model_missing(s->model, stream_missing(&s->in));
	model_hand_on(s->model);
	const int r = write_out(s);

	model_status(s->model, ret_status, false);
	ret_status->bytes = s->output.bytes;
	model_next(s->model);
	otlp_resume(&s->otlp, s->model);
	output_next(&s->output, fd);
	return r;
}
