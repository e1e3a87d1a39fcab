/* SPDX-License-Identifier: Apache-2.0 */
/* Input: a receiver's answer: choices, the HTTP status, four texts with their lengths, and the
 * body. The verdict keeps to the protocol, and its delay to our limit. */
#include <stdint.h>
#include <string.h>
#include "tests/fuzz/must.h"
#include "tools/prof-send/answer/answer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct str take_text(struct span *in)
{
	uint8_t len = 0;
	struct span s = { .data = NULL };

	if (span_read(in, &len, 1))
		(void)span_take(in, len < in->len ? len : in->len, &s);
	return (struct str){ .data = (const char *)s.data, .len = (uint32_t)s.len };
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct span in = { .data = data, .len = size };
	uint8_t head[3] = { 0 };
	struct answer a;

	(void)span_read(&in, head, sizeof(head));
	struct answer_reply reply = { .grpc = head[0] & 1,
				      .endless = head[0] & 2,
				      .whole = head[0] & 4,
				      .http = (head[1] | (unsigned)head[2] << 8) % 600,
				      .failure = head[0] & 8 ? "no route" : NULL,
				      .now_s = 1795251600 };

	reply.retry_after = take_text(&in);
	reply.grpc_status = take_text(&in);
	reply.grpc_message = take_text(&in);
	reply.grpc_details = take_text(&in);
	if (head[0] & 16)
		reply.content_type = STR_LIT("application/grpc");
	reply.body = in;
	answer_of(&reply, &a);
	must(a.verdict < ANSWER_VERDICTS && strlen(a.why) < ANSWER_WHY_MAX);
	must(a.delay_ms <= 3600000 && (a.has_delay || !a.delay_ms));
	must(a.verdict == ANSWER_DELIVERED || (!a.partial && !a.rejected && a.why[0]));
	must(!a.rejected || a.partial);
	if (!reply.grpc && reply.http)
		must((a.verdict == ANSWER_DELIVERED) == (reply.http / 100 == 2));
	if (reply.grpc && a.verdict == ANSWER_DELIVERED)
		must(reply.grpc_status.len && reply.grpc_status.data[0] == '0');
	return 0;
}
