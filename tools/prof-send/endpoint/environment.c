/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-send/endpoint/environment.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

#define TIMEOUT_MOST_MS 3600000u

/* Both names of a variable: for this signal, and for all signals. */
#define NAMES(word) \
	{ \
		"OTEL_EXPORTER_OTLP_PROFILES_" word, "OTEL_EXPORTER_OTLP_" word \
	}

struct variable {
	const char *names[2];
	const char *name, *value; /* the one that takes effect; NULL: neither is set */
};

static void find(struct variable *v, const char *(*get)(const char *name))
{
	for (int i = 0; i < 2 && !v->value; i++) {
		v->name = v->names[i];
		v->value = get(v->name);
		if (v->value && !v->value[0])
			v->value = NULL;
	}
}

static int refuse(struct environment_error *e, const struct variable *v, const char *text)
{
	*e = (struct environment_error){ .name = v->name, .text = text };
	return ENVIRONMENT_REFUSED;
}

static int take_protocol(const struct variable *v, struct environment *ret,
			 struct environment_error *e)
{
	for (int i = 0; v->value && i < ENDPOINT_PROTOCOLS; i++) {
		if (strcmp(v->value, endpoint_protocols[i]) != 0)
			continue;
		ret->has_protocol = true;
		ret->protocol = (enum endpoint_protocol)i;
	}
	return v->value && !ret->has_protocol
		       ? refuse(e, v, "is not a protocol of prof-send; use grpc or http/protobuf")
		       : 0;
}

static int take_compression(const struct variable *v, struct environment *ret,
			    struct environment_error *e)
{
	if (!v->value)
		return 0;
	ret->has_compression = true;
	ret->compress = strcmp(v->value, "gzip") == 0;
	return ret->compress || strcmp(v->value, "none") == 0
		       ? 0
		       : refuse(e, v, "is not a compression of prof-send; use gzip or none");
}

static int take_timeout(const struct variable *v, struct environment *ret,
			struct environment_error *e)
{
	unsigned n = 0;

	if (!v->value)
		return 0;
	for (const char *c = v->value; *c; c++) {
		if (*c < '0' || *c > '9' || n > TIMEOUT_MOST_MS)
			return refuse(e, v, "is not a number of milliseconds; use 1 to 3600000");
		n = 10 * n + (unsigned)(*c - '0');
	}
	if (!n || n > TIMEOUT_MOST_MS)
		return refuse(e, v, "is out of range; use 1 to 3600000 milliseconds");
	ret->timeout_ms = n;
	return 0;
}

int environment_read(const char *(*get)(const char *name), struct environment *ret,
		     struct environment_error *ret_error)
{
	enum {
		ENDPOINT,
		PROTOCOL,
		INSECURE,
		ROOTS,
		CERTIFICATE,
		KEY,
		HEADERS,
		COMPRESSION,
		TIMEOUT,
		VARIABLES
	};
	struct variable v[VARIABLES] = {
		[ENDPOINT] = { .names = NAMES("ENDPOINT") },
		[PROTOCOL] = { .names = NAMES("PROTOCOL") },
		[INSECURE] = { .names = NAMES("INSECURE") },
		[ROOTS] = { .names = NAMES("CERTIFICATE") },
		[CERTIFICATE] = { .names = NAMES("CLIENT_CERTIFICATE") },
		[KEY] = { .names = NAMES("CLIENT_KEY") },
		[HEADERS] = { .names = NAMES("HEADERS") },
		[COMPRESSION] = { .names = NAMES("COMPRESSION") },
		[TIMEOUT] = { .names = NAMES("TIMEOUT") },
	};

	for (int i = 0; i < VARIABLES; i++)
		find(&v[i], get);
	*ret = (struct environment){
		.endpoint = v[ENDPOINT].value,
		.endpoint_of_all = v[ENDPOINT].value && v[ENDPOINT].name == v[ENDPOINT].names[1],
		.insecure = v[INSECURE].value && strcasecmp(v[INSECURE].value, "true") == 0,
		.roots = v[ROOTS].value,
		.certificate = v[CERTIFICATE].value,
		.key = v[KEY].value,
		.headers = v[HEADERS].value,
	};
	int r = take_protocol(&v[PROTOCOL], ret, ret_error);

	if (!r)
		r = take_compression(&v[COMPRESSION], ret, ret_error);
	if (!r)
		r = take_timeout(&v[TIMEOUT], ret, ret_error);
	return r;
}
