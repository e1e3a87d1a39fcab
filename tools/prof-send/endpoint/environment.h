/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The environment variables that configure all OTLP exporters. Source: the OpenTelemetry
 * specification, "OpenTelemetry Protocol Exporter". OTEL_EXPORTER_OTLP_PROFILES_X takes precedence
 * over OTEL_EXPORTER_OTLP_X; an empty variable counts as unset. Pure.
 */
#ifndef PROF_SEND_ENDPOINT_ENVIRONMENT_H
#define PROF_SEND_ENDPOINT_ENVIRONMENT_H

#include "tools/prof-send/endpoint/endpoint.h"

/* All are borrowed. NULL: not set. */
struct environment {
	const char *endpoint;
	bool endpoint_of_all; /* the endpoint is for all signals: append the path of this signal */
	bool has_protocol;
	enum endpoint_protocol protocol;
	bool insecure;
	const char *roots, *certificate, *key;
	const char *headers; /* may contain a token */
	bool has_compression, compress;
	unsigned timeout_ms; /* 0: not set */
};

struct environment_error {
	const char *name;
	const char *text; /* "reason; remedy" */
};

enum environment_verdict { ENVIRONMENT_REFUSED = 1 };

/* get: as getenv. Returns 0, or ENVIRONMENT_REFUSED after it has set *ret_error. */
int environment_read(const char *(*get)(const char *name), struct environment *ret,
		     struct environment_error *ret_error);

#endif
