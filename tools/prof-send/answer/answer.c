/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-send/answer/answer.h"

#include <curl/curl.h>
#include <stdio.h>
#include <string.h>
#include "common/base/bytes/numbers.h"
#include "common/base/text/decimal.h"
#include "tools/prof-send/answer/backoff.h"
#include "tools/prof-send/answer/grpc.h"
#include "tools/prof-send/answer/replies.pb-c.h"

#define DATE_MAX 64 /* bytes of a date */
#define SHOWN 160   /* bytes of a server's message */

static void say(struct answer *a, const char *what, const char *message)
{
	snprintf(a->why, sizeof(a->why), "%s%s%.*s", what, message && message[0] ? ": " : "", SHOWN,
		 message ? message : "");
}

/* Says why a request was not taken. A receiver that does not accept a token may repeat it in any
 * form, so its text is not shown then. */
static void say_failure(const struct answer_reply *reply, bool is_of_token, struct answer *a,
			const char *what, const char *message)
{
	const bool hides = reply->secret && is_of_token && message && message[0];

	say(a, what, hides ? "its text is not shown, since it may repeat a token" : message);
}

/* Parses a Retry-After header: a number of seconds, or a date. */
static bool retry_after(const struct answer_reply *reply, uint64_t *ret_ms)
{
	const struct str s = reply->retry_after;
	char text[DATE_MAX];
	uint64_t seconds;

	if (!s.len || s.len >= sizeof(text))
		return false;
	if (decimal_read(s.data, s.len, &seconds) < s.len) {
		memcpy(text, s.data, s.len);
		text[s.len] = '\0';
		const time_t at = curl_getdate(text, NULL);

		if (at < 0)
			return false;
		seconds = at > reply->now_s ? (uint64_t)(at - reply->now_s) : 0;
	}
	*ret_ms = numbers_smaller(seconds, BACKOFF_ASKED_MOST_S) * 1000;
	return true;
}

/* Reads the body of an accepted request, which may report that a part was rejected. */
static void read_response(struct span body, struct answer *ret)
{
	Profsend__ExportProfilesServiceResponse *r =
		profsend__export_profiles_service_response__unpack(NULL, body.len, body.data);
	const Profsend__ExportProfilesPartialSuccess *p = r ? r->partial_success : NULL;

	if (p && (p->rejected_profiles > 0 || (p->error_message && p->error_message[0]))) {
		ret->partial = true;
		ret->rejected = p->rejected_profiles > 0 ? (uint64_t)p->rejected_profiles : 0;
		say(ret,
		    p->rejected_profiles > 0 ? "the receiver rejected a part"
					     : "the receiver warns",
		    p->error_message);
	}
	if (r)
		profsend__export_profiles_service_response__free_unpacked(r, NULL);
}

/* Shows the message in the body of a failed OTLP/HTTP request if it is a Status. Most bodies are
 * text or HTML, which is not shown. */
static void say_http(const struct answer_reply *reply, struct answer *ret)
{
	char what[48];
	Profsend__Status *s = reply->whole && reply->body.len
				      ? profsend__status__unpack(NULL, reply->body.len,
								 reply->body.data)
				      : NULL;

	snprintf(what, sizeof(what), "HTTP status %u", reply->http);
	say_failure(reply, reply->http == 401 || reply->http == 403 || reply->http == 407, ret,
		    what, s ? s->message : NULL);
	if (s)
		profsend__status__free_unpacked(s, NULL);
}

static void of_http(const struct answer_reply *reply, struct answer *ret)
{
	if (reply->http >= 200 && reply->http < 300) {
		ret->verdict = ANSWER_DELIVERED;
		if (reply->whole)
			read_response(reply->body, ret);
		return;
	}
	say_http(reply, ret);
	switch (reply->http) {
	case 429:
	case 502:
	case 503:
	case 504:
		ret->verdict = ANSWER_AGAIN;
		ret->has_delay = retry_after(reply, &ret->delay_ms);
		break;
	case 413:
		ret->verdict = ANSWER_TOO_LARGE;
		break;
	default:
		ret->verdict = ANSWER_REFUSED;
	}
}

static bool is_retryable(const struct grpc_status *s)
{
	switch (s->code) {
	case GRPC_CANCELLED:
	case GRPC_DEADLINE_EXCEEDED:
	case GRPC_ABORTED:
	case GRPC_OUT_OF_RANGE:
	case GRPC_UNAVAILABLE:
	case GRPC_DATA_LOSS:
		return true;
	case GRPC_RESOURCE_EXHAUSTED:
		return s->has_delay;
	default:
		return false;
	}
}

/* A gRPC server began to answer, but closed before it sent its status: it is shutting down, and may
 * not have taken the request. A reply with another content type is not from a gRPC server. */
static bool has_broken_off(const struct answer_reply *reply)
{
	static const char type[] = "application/grpc";

	return reply->http == 200 && !reply->endless &&
	       reply->content_type.len >= sizeof(type) - 1 &&
	       memcmp(reply->content_type.data, type, sizeof(type) - 1) == 0;
}

static void of_grpc(const struct answer_reply *reply, struct answer *ret)
{
	struct grpc_status s;
	struct span message;

	if (!grpc_status_of(reply->grpc_status, reply->grpc_message, reply->grpc_details, &s)) {
		s = (struct grpc_status){ .code = grpc_code_of_http(reply->http) };
		snprintf(s.message, sizeof(s.message), "HTTP status %u without a gRPC status",
			 reply->http);
		if (has_broken_off(reply))
			s.code = GRPC_UNAVAILABLE;
		ret->has_delay = retry_after(reply, &ret->delay_ms);
		if (reply->http == 413) {
			say(ret, "the request is too large", s.message);
			ret->verdict = ANSWER_TOO_LARGE;
			return;
		}
	}
	if (s.code == GRPC_OK) {
		ret->verdict = ANSWER_DELIVERED;
		if (reply->whole && grpc_body(reply->body, &message))
			read_response(message, ret);
		return;
	}
	if (s.has_delay) {
		ret->has_delay = true;
		ret->delay_ms = s.delay_ms;
	}
	say_failure(reply, s.code == GRPC_UNAUTHENTICATED || s.code == GRPC_PERMISSION_DENIED, ret,
		    grpc_code_name(s.code), s.message);
	ret->verdict = is_retryable(&s) ? ANSWER_AGAIN : ANSWER_REFUSED;
}

void answer_of(const struct answer_reply *reply, struct answer *ret)
{
	*ret = (struct answer){ .verdict = ANSWER_AGAIN };
	if (!reply->http) {
		say(ret, reply->failure ? reply->failure : "the connection failed", NULL);
		return;
	}
	/* gRPC's status follows the body, and so was not read. gRPC's own clients also treat this
	 * as a refusal. In OTLP/HTTP the status came before the body. */
	if (reply->grpc && reply->endless) {
		ret->verdict = ANSWER_REFUSED;
		say(ret, "the reply is larger than 4 MiB", NULL);
		return;
	}
	if (reply->grpc)
		of_grpc(reply, ret);
	else
		of_http(reply, ret);
}
