/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-send/answer/grpc.h"

#include <stdlib.h>
#include <string.h>
#include "common/base/text/decimal.h"
#include "common/base/text/percent.h"
#include "tools/prof-send/answer/backoff.h"
#include "tools/prof-send/answer/replies.pb-c.h"

#define DETAILS_MAX (8u << 10) /* bytes after decoding; servers seldom send longer headers */
#define RETRY_INFO "google.rpc.RetryInfo"

void grpc_head(uint8_t ret[static GRPC_HEAD], bool compressed, uint32_t len)
{
	ret[0] = compressed;
	ret[1] = (uint8_t)(len >> 24);
	ret[2] = (uint8_t)(len >> 16);
	ret[3] = (uint8_t)(len >> 8);
	ret[4] = (uint8_t)len;
}

bool grpc_body(struct span body, struct span *ret)
{
	struct span head;

	if (!span_take(&body, GRPC_HEAD, &head) || head.data[0])
		return false;
	const uint32_t len = (uint32_t)head.data[1] << 24 | (uint32_t)head.data[2] << 16 |
			     (uint32_t)head.data[3] << 8 | head.data[4];

	if (len != body.len)
		return false;
	*ret = body;
	return true;
}

static bool number(struct str s, unsigned *ret)
{
	uint64_t n;

	if (!s.len || s.len > 3 || decimal_read(s.data, s.len, &n) < s.len)
		return false;
	*ret = (unsigned)n;
	return true;
}

/* In grpc-message, %XX stands for bytes that are not plain ASCII. */
static void decode_message(struct str s, char ret[static GRPC_MESSAGE_MAX])
{
	size_t n = 0;

	for (size_t i = 0; i < s.len && n < GRPC_MESSAGE_MAX - 1;) {
		const char c = percent_next(s.data, s.len, &i);

		ret[n++] = c ? c : '?';
	}
	ret[n] = '\0';
}

static int digit64(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Decodes base64, with or without padding. Returns the number of bytes, or 0 if the text is invalid
 * or too long. */
static size_t decode64(struct str s, uint8_t ret[static DETAILS_MAX])
{
	uint32_t bits = 0;
	unsigned have = 0;
	size_t n = 0;

	while (s.len && s.data[s.len - 1] == '=')
		s.len--;
	for (uint32_t i = 0; i < s.len; i++) {
		const int d = digit64(s.data[i]);

		if (d < 0)
			return 0;
		bits = bits << 6 | (uint32_t)d;
		have += 6;
		if (have < 8)
			continue;
		have -= 8;
		if (n == DETAILS_MAX)
			return 0;
		ret[n++] = (uint8_t)(bits >> have);
	}
	return n;
}

/* Takes the delay from a RetryInfo. A negative delay means "at once". */
static bool take_delay(const Profsend__Any *any, uint64_t *ret_ms)
{
	const char *slash = any->type_url ? strrchr(any->type_url, '/') : NULL;

	if (!slash || strcmp(slash + 1, RETRY_INFO) != 0)
		return false;
	Profsend__RetryInfo *info = profsend__retry_info__unpack(NULL, any->value.len,
								 any->value.data);

	if (!info)
		return false;
	const Profsend__Duration *d = info->retry_delay;
	int64_t ms = 0;

	if (d && d->seconds >= BACKOFF_ASKED_MOST_S)
		ms = BACKOFF_ASKED_MOST_S * 1000;
	else if (d && d->seconds >= 0 && d->nanos >= 0 && d->nanos < 1000000000)
		ms = d->seconds * 1000 + (d->nanos + 999999) / 1000000;
	profsend__retry_info__free_unpacked(info, NULL);
	*ret_ms = (uint64_t)ms;
	return true;
}

static void read_details(struct str details, struct grpc_status *ret)
{
	uint8_t bytes[DETAILS_MAX];
	const size_t n = decode64(details, bytes);
	Profsend__Status *status = n ? profsend__status__unpack(NULL, n, bytes) : NULL;

	if (!status)
		return;
	for (size_t i = 0; i < status->n_details && !ret->has_delay; i++)
		ret->has_delay = take_delay(status->details[i], &ret->delay_ms);
	profsend__status__free_unpacked(status, NULL);
}

bool grpc_status_of(struct str status, struct str message, struct str details,
		    struct grpc_status *ret)
{
	struct grpc_status s = { .code = 0 };

	if (!number(status, &s.code))
		return false;
	decode_message(message, s.message);
	read_details(details, &s);
	*ret = s;
	return true;
}

unsigned grpc_code_of_http(unsigned http)
{
	switch (http) {
	case 400:
		return GRPC_INTERNAL;
	case 401:
		return GRPC_UNAUTHENTICATED;
	case 403:
		return GRPC_PERMISSION_DENIED;
	case 404:
		return GRPC_UNIMPLEMENTED;
	case 429:
	case 502:
	case 503:
	case 504:
		return GRPC_UNAVAILABLE;
	default:
		return GRPC_UNKNOWN;
	}
}

const char *grpc_code_name(unsigned code)
{
	static const char *const names[GRPC_CODES] = {
		"OK",
		"CANCELLED",
		"UNKNOWN",
		"INVALID_ARGUMENT",
		"DEADLINE_EXCEEDED",
		"NOT_FOUND",
		"ALREADY_EXISTS",
		"PERMISSION_DENIED",
		"RESOURCE_EXHAUSTED",
		"FAILED_PRECONDITION",
		"ABORTED",
		"OUT_OF_RANGE",
		"UNIMPLEMENTED",
		"INTERNAL",
		"UNAVAILABLE",
		"DATA_LOSS",
		"UNAUTHENTICATED",
	};

	return code < GRPC_CODES ? names[code] : "an unknown code";
}
