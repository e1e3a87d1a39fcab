/* SPDX-License-Identifier: Apache-2.0 */
/* Source: libcurl's reference; the OTLP specification; gRPC over HTTP2. */
#include "tools/prof-send/transfer/transfer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include "common/base/bytes/numbers.h"
#include "common/base/command/log.h"
#include "common/base/system/clock.h"
#include "tools/prof-send/answer/backoff.h"
#include "tools/prof-send/transfer/patience.h"

#define REPLY_MAX (4u << 20)  /* maximum size of a reply; OTLP recommends it for the body */
#define BODY_KEPT (64u << 10) /* bytes of the body that are kept, enough for its message */
#define TEXT_MAX (16u << 10)  /* maximum length of a header that is read */
#define CONNECT_MS 5000
#define SENT_MOST 2 /* how often libcurl may send the request in one attempt */
#define KEEPALIVE_S 30
#define CREDENTIALS_NS 2000000000u /* between two looks at files that cannot be used */
#define IDLE_S 300		   /* an idle connection is reused for this long */
#define SAID_NS 10000000000u
/* After this many consecutive attempts without memory, the request is given up: others wait behind
 * it. */
#define LACKS_MOST 4

static const char *const text_names[TRANSFER_TEXTS] = {
	[TRANSFER_CONTENT_TYPE] = "content-type",
	[TRANSFER_RETRY_AFTER] = "retry-after",
	[TRANSFER_GRPC_STATUS] = "grpc-status",
	[TRANSFER_GRPC_MESSAGE] = "grpc-message",
	[TRANSFER_GRPC_DETAILS] = "grpc-status-details-bin",
};

int transfer_setup(void)
{
	return curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK ? 0 : -ENOMEM;
}

/* --- what comes --- */

static void forget_reply(struct transfer *t)
{
	for (int i = 0; i < TRANSFER_TEXTS; i++)
		buf_reset(&t->text[i]);
	buf_reset(&t->body);
	t->body_len = 0;
}

/* Counts received bytes, since curl keeps any number of trailers. Returns false to end the
 * transfer. */
static bool is_bearable(struct transfer *t, size_t len)
{
	t->reply_len += len;
	t->endless = t->reply_len > REPLY_MAX;
	return !t->endless;
}

static size_t on_header(char *data, size_t size, size_t n, void *ctx)
{
	struct transfer *t = ctx;
	struct str line = { .data = data, .len = (uint32_t)(size * n) };

	if (!is_bearable(t, line.len))
		return 0;
	/* A status line: any headers before it belong to an interim reply. */
	if (str_starts(line, "HTTP/"))
		forget_reply(t);
	const char *colon = memchr(line.data, ':', line.len);

	if (!colon)
		return size * n;
	const size_t name_len = (size_t)(colon - line.data);
	const char *value = colon + 1, *end = line.data + line.len;

	while (value < end && (*value == ' ' || *value == '\t'))
		value++;
	while (end > value && (end[-1] == '\r' || end[-1] == '\n' || end[-1] == ' '))
		end--;
	for (int i = 0; i < TRANSFER_TEXTS; i++) {
		if (strlen(text_names[i]) != name_len ||
		    strncasecmp(text_names[i], line.data, name_len) != 0)
			continue;
		/* A text that is too long becomes empty, as if it had not come. */
		buf_reset(&t->text[i]);
		(void)buf_append(&t->text[i], value, (size_t)(end - value));
	}
	return size * n;
}

static size_t on_body(char *data, size_t size, size_t n, void *ctx)
{
	struct transfer *t = ctx;
	const size_t len = size * n;

	if (!is_bearable(t, len))
		return 0;
	t->body_len += len;
	if (t->body.len < BODY_KEPT) {
		const size_t room = BODY_KEPT - t->body.len;

		(void)buf_append(&t->body, data, numbers_smaller(len, room));
	}
	return len;
}

static struct str text_of(const struct transfer *t, enum transfer_text which)
{
	return (struct str){ .data = (const char *)t->text[which].data,
			     .len = (uint32_t)t->text[which].len };
}

/* --- curl's handle --- */

#define SET(option, value) \
	do { \
		if (curl_easy_setopt(t->easy, (option), (value)) != CURLE_OK) \
			return -ENOMEM; \
	} while (0)

static int add_header(struct transfer *t, const char *line)
{
	struct curl_slist *more = curl_slist_append(t->headers, line);

	if (!more)
		return -ENOMEM;
	t->headers = more;
	return 0;
}

static int set_headers(struct transfer *t)
{
	static const char *const grpc[] = { "Content-Type: application/grpc", "TE: trailers",
					    "Grpc-Accept-Encoding: identity", "Expect:" };
	static const char *const http[] = { "Content-Type: application/x-protobuf", "Expect:" };
	const bool is_grpc = t->endpoint.protocol == ENDPOINT_GRPC;
	const char *const *own = is_grpc ? grpc : http;
	const size_t n = is_grpc ? sizeof(grpc) / sizeof(grpc[0]) : sizeof(http) / sizeof(http[0]);
	char line[64];
	int r = 0;

	for (size_t i = 0; !r && i < n; i++)
		r = add_header(t, own[i]);
	if (!r && t->compress)
		r = add_header(t, is_grpc ? "Grpc-Encoding: gzip" : "Content-Encoding: gzip");
	snprintf(line, sizeof(line), "Grpc-Timeout: %um", t->timeout_ms);
	if (!r && is_grpc)
		r = add_header(t, line);
	for (size_t i = 0; !r && i < t->credentials.headers.n; i++)
		r = add_header(t, headers_get(&t->credentials.headers, i));
	SET(CURLOPT_HTTPHEADER, t->headers);
	return r;
}

static int set_blob(struct transfer *t, CURLoption option, enum credentials_file file)
{
	struct curl_blob blob = { .data = t->credentials.file[file].data,
				  .len = t->credentials.file[file].len,
				  .flags = CURL_BLOB_COPY };

	if (t->credentials.path[file])
		SET(option, &blob);
	return 0;
}

static int set_tls(struct transfer *t)
{
	int r = set_blob(t, CURLOPT_CAINFO_BLOB, CREDENTIALS_ROOTS);

	/* The TLS settings also apply to a proxy. */
	if (!r)
		r = set_blob(t, CURLOPT_PROXY_CAINFO_BLOB, CREDENTIALS_ROOTS);
	if (!r)
		r = set_blob(t, CURLOPT_SSLCERT_BLOB, CREDENTIALS_CERTIFICATE);
	if (!r)
		r = set_blob(t, CURLOPT_SSLKEY_BLOB, CREDENTIALS_KEY);
	return r;
}

static int set_body(struct transfer *t)
{
	const size_t skip = t->endpoint.protocol == ENDPOINT_GRPC ? 0 : GRPC_HEAD;
	const uint8_t *frame = t->expanded ? t->expanded : t->request->frame;
	const size_t len = t->expanded ? t->request->facts.size : t->request->len;

	SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)(len + GRPC_HEAD - skip));
	SET(CURLOPT_POSTFIELDS, frame + skip);
	return 0;
}

/* libcurl sends a request again by itself if a reused connection was closed meanwhile. It also does
 * so, five times, if the receiver refuses the stream (REFUSED_STREAM); our own attempts then have
 * waits between them. */
static int on_request(void *ctx, char *ip, char *local_ip, int port, int local_port)
{
	struct transfer *t = ctx;

	return ++t->sent <= SENT_MOST ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT;
}

/* libcurl 7.88 fails when it reuses a connection with cleartext HTTP/2 (curl's issue 10634). */
static bool has_broken_reuse(void)
{
	const unsigned version = curl_version_info(CURLVERSION_NOW)->version_num;

	return version >= 0x075800 && version < 0x080000;
}

/* Sets the options that are the same for all attempts. */
static int set_endpoint(struct transfer *t)
{
	const bool grpc = t->endpoint.protocol == ENDPOINT_GRPC;
	const bool h2c = grpc && !t->endpoint.tls;

	SET(CURLOPT_PRIVATE, t);
	SET(CURLOPT_ERRORBUFFER, t->error);
	SET(CURLOPT_URL, t->endpoint.url);
	SET(CURLOPT_PROTOCOLS_STR, "http,https");
	SET(CURLOPT_USERAGENT, "profpipe/" PROFPIPE_VERSION);
	SET(CURLOPT_POST, 1L);
	SET(CURLOPT_NOSIGNAL, 1L);
	/* An attempt ends without waiting for name resolution, whose thread ends later. */
	SET(CURLOPT_QUICK_EXIT, 1L);
	SET(CURLOPT_FOLLOWLOCATION, 0L); /* a token is meant only for the named server */
	SET(CURLOPT_HTTP_VERSION, h2c	 ? (long)CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE
				  : grpc ? (long)CURL_HTTP_VERSION_2TLS
					 : (long)CURL_HTTP_VERSION_1_1);
	SET(CURLOPT_FORBID_REUSE, h2c && has_broken_reuse() ? 1L : 0L);
	/* A proxy forwards HTTP/2 only through a tunnel. The tunnel also hides the headers from
	 * it. */
	SET(CURLOPT_HTTPPROXYTUNNEL, grpc || t->endpoint.tls ? 1L : 0L);
	SET(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
	SET(CURLOPT_CONNECTTIMEOUT_MS,
	    (long)(t->timeout_ms < CONNECT_MS ? t->timeout_ms : CONNECT_MS));
	SET(CURLOPT_TIMEOUT_MS, (long)t->timeout_ms);
	SET(CURLOPT_TCP_KEEPALIVE, 1L);
	SET(CURLOPT_TCP_KEEPIDLE, (long)KEEPALIVE_S);
	SET(CURLOPT_TCP_KEEPINTVL, (long)KEEPALIVE_S);
	SET(CURLOPT_MAXAGE_CONN, (long)IDLE_S);
	SET(CURLOPT_HEADERFUNCTION, on_header);
	SET(CURLOPT_HEADERDATA, t);
	SET(CURLOPT_WRITEFUNCTION, on_body);
	SET(CURLOPT_WRITEDATA, t);
	SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	SET(CURLOPT_SSL_VERIFYPEER, 1L);
	SET(CURLOPT_SSL_VERIFYHOST, 2L);
	/* Root certificates come from memory: prof-send cannot open files. */
	SET(CURLOPT_CAINFO, NULL);
	SET(CURLOPT_CAPATH, NULL);
	SET(CURLOPT_PREREQFUNCTION, on_request);
	SET(CURLOPT_PREREQDATA, t);
	return patience_watch(t->easy) ? 0 : -ENOMEM;
}

void transfer_open(struct transfer *t)
{
	for (int i = 0; i < TRANSFER_TEXTS; i++)
		t->text[i] = BUF_INIT(TEXT_MAX);
	t->body = BUF_INIT(BODY_KEPT);
}

static void let_go(struct transfer *t)
{
	curl_easy_cleanup(t->easy);
	t->easy = NULL;
	curl_slist_free_all(t->headers);
	t->headers = NULL;
	request_drop(t->request);
	t->request = NULL;
	free(t->expanded);
	t->expanded = NULL;
}

void transfer_close(struct transfer *t)
{
	let_go(t);
	for (int i = 0; i < TRANSFER_TEXTS; i++)
		buf_done(&t->text[i]);
	buf_done(&t->body);
	queue_done(&t->queue);
	credentials_done(&t->credentials);
}

/* --- an attempt --- */

static void refresh_credentials(struct transfer *t)
{
	struct credentials_errors e;
	struct buf b = BUF_INIT(0);

	if (!credentials_refresh(&t->credentials, &e)) {
		if (t->said_unusable)
			log_warning("%s: its files can be used again", t->endpoint.name);
		t->said_credentials = t->said_unusable = false;
		return;
	}
	t->said_unusable |= !credentials_are_usable(&t->credentials);
	if (!t->said_credentials && credentials_print(&b, &e.list[0]) == 0)
		log_warning("%.*s; %s", (int)b.len, (const char *)b.data,
			    t->said_unusable ? "requests wait for it"
					     : "the last contents are still used");
	t->said_credentials = true;
	buf_done(&b);
}

enum transfer_verdict { TRANSFER_NO_CREDENTIALS = 1 };

/* Returns 0, enum transfer_verdict, -EBADMSG or -ENOMEM. */
static int prepare(struct transfer *t)
{
	refresh_credentials(t);
	if (!credentials_are_usable(&t->credentials))
		return TRANSFER_NO_CREDENTIALS;
	t->easy = curl_easy_init();
	int r = t->easy ? set_endpoint(t) : -ENOMEM;

	if (!r && !t->compress)
		r = request_expand(t->request, &t->expanded);
	if (!r)
		r = set_headers(t);
	if (!r && t->endpoint.tls)
		r = set_tls(t);
	if (!r)
		r = set_body(t);
	return r;
}

static uint32_t random_number(void)
{
	uint32_t n = 0;

	(void)!getrandom(&n, sizeof(n), GRND_NONBLOCK);
	return n;
}

static void wait_before_next(struct transfer *t, uint64_t asked_ms)
{
	t->failures++;
	t->next_ns = clock_mono_ns() +
		     1000000u * backoff_ms(t->failures, asked_ms, random_number());
}

bool transfer_begin(struct transfer *t, uint64_t now_ns)
{
	if (t->request || now_ns < t->next_ns)
		return false;
	t->request = queue_begin(&t->queue);
	if (!t->request) {
		/* Requests wait, but they cannot be read now. */
		if (!queue_is_empty(&t->queue))
			wait_before_next(t, 0);
		return false;
	}
	forget_reply(t);
	t->reply_len = 0;
	t->sent = 0;
	t->endless = false;
	t->error[0] = '\0';
	const int r = prepare(t);

	if (!r) {
		t->lacks = 0;
		return true;
	}
	let_go(t);
	if (r == -EBADMSG) {
		queue_give_up(&t->queue, QUEUE_DAMAGED);
		return false;
	}
	if (r == TRANSFER_NO_CREDENTIALS) {
		snprintf(t->failing, sizeof(t->failing), "a file of its options cannot be used");
		t->next_ns = now_ns + CREDENTIALS_NS;
		queue_again(&t->queue);
		return false;
	}
	wait_before_next(t, 0);
	if (++t->lacks < LACKS_MOST) {
		queue_again(&t->queue);
		return false;
	}
	t->lacks = 0;
	queue_give_up(&t->queue, QUEUE_MEMORY);
	return false;
}

/* Limits how often the user is told of losses. */
static bool is_time_to_say(struct transfer *t)
{
	const uint64_t now = clock_mono_ns();

	if (t->said_ns && now - t->said_ns < SAID_NS)
		return false;
	t->said_ns = now;
	return true;
}

static void say_recovered(struct transfer *t)
{
	if (t->said_failing)
		log_warning("%s: takes requests again", t->endpoint.name);
	t->said_failing = false;
}

static void take_answer(struct transfer *t, const struct answer *a)
{
	switch (a->verdict) {
	case ANSWER_DELIVERED:
		if (a->partial && is_time_to_say(t))
			log_warning("%s: %s", t->endpoint.name, a->why);
		queue_deliver(&t->queue, a->partial, a->rejected);
		say_recovered(t);
		break;
	case ANSWER_AGAIN:
		if (!t->said_failing)
			log_warning("%s: %s; trying again", t->endpoint.name, a->why);
		t->said_failing = true;
		memcpy(t->failing, a->why, sizeof(t->failing));
		t->queue.counts.retried++;
		queue_again(&t->queue);
		wait_before_next(t, a->has_delay ? a->delay_ms : 0);
		return;
	case ANSWER_REFUSED:
	case ANSWER_TOO_LARGE:
	case ANSWER_VERDICTS:
		if (is_time_to_say(t))
			log_warning("%s: %s; a request is lost: %s", t->endpoint.name, a->why,
				    a->verdict == ANSWER_TOO_LARGE
					    ? "raise the receiver's size limit"
					    : "see the receiver's log");
		queue_give_up(&t->queue,
			      a->verdict == ANSWER_TOO_LARGE ? QUEUE_TOO_LARGE : QUEUE_REFUSED);
		break;
	}
	t->failures = 0;
	t->next_ns = 0;
	t->failing[0] = '\0';
}

/* Adds the system's reason why curl could not connect, which curl's text lacks. */
static const char *failure_of(struct transfer *t, CURLcode result)
{
	const size_t len = strlen(t->error);
	long number = 0;

	if (result == CURLE_ABORTED_BY_CALLBACK && t->sent > SENT_MOST)
		return "the receiver refuses the stream, or closes the connection, before it "
		       "answers";
	curl_easy_getinfo(t->easy, CURLINFO_OS_ERRNO, &number);
	if (result == CURLE_COULDNT_CONNECT && number)
		snprintf(t->error + len, sizeof(t->error) - len, " (%s)", strerror((int)number));
	/* curl also returns this for a header of 100 KiB. */
	if (result == CURLE_OUT_OF_MEMORY)
		return "out of memory, or a header is too long";
	return t->error[0] ? t->error : curl_easy_strerror(result);
}

void transfer_end(struct transfer *t, CURLcode result)
{
	long http = 0;
	struct answer a;

	curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &http);
	/* Ignore a reply that is incomplete. */
	if (result != CURLE_OK && !t->endless)
		http = 0;
	const struct answer_reply reply = {
		.grpc = t->endpoint.protocol == ENDPOINT_GRPC,
		.http = (unsigned)http,
		.failure = failure_of(t, result),
		.endless = t->endless,
		.secret = t->credentials.headers.n > 0,
		.content_type = text_of(t, TRANSFER_CONTENT_TYPE),
		.retry_after = text_of(t, TRANSFER_RETRY_AFTER),
		.grpc_status = text_of(t, TRANSFER_GRPC_STATUS),
		.grpc_message = text_of(t, TRANSFER_GRPC_MESSAGE),
		.grpc_details = text_of(t, TRANSFER_GRPC_DETAILS),
		.body = buf_span(&t->body),
		.whole = t->body.len == t->body_len,
		.now_s = time(NULL),
	};

	answer_of(&reply, &a);
	headers_hide(&t->credentials.headers, a.why);
	let_go(t);
	take_answer(t, &a);
}

void transfer_abandon(struct transfer *t)
{
	if (!t->request)
		return;
	let_go(t);
	queue_again(&t->queue);
}
