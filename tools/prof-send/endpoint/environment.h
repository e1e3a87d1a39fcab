/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The variables by which all exporters of OTLP are configured. Source: the OpenTelemetry
 * specification, "OpenTelemetry Protocol Exporter". OTEL_EXPORTER_OTLP_PROFILES_X counts before
 * OTEL_EXPORTER_OTLP_X; an empty one counts as unset. Pure.
 */
#ifndef PROF_SEND_ENDPOINT_ENVIRONMENT_H
#define PROF_SEND_ENDPOINT_ENVIRONMENT_H

#include "tools/prof-send/endpoint/endpoint.h"

/* NULL: not set. All are borrowed. */
struct environment {
	const char *endpoint;
	bool endpoint_of_all; /* the path of this signal is to be appended */
	bool has_protocol;
	enum endpoint_protocol protocol;
	bool insecure;
	const char *roots, *certificate, *key;
	const char *headers; /* may have a token */
	bool has_compression, compress;
	unsigned timeout_ms; /* 0: not set */
};

struct environment_error {
	const char *name;
	const char *text; /* "reason; remedy" */
};

enum environment_verdict { ENVIRONMENT_REFUSED = 1 };

/* get: as getenv. 0; ENVIRONMENT_REFUSED, with *ret_error filled in. */
int environment_read(const char *(*get)(const char *name), struct environment *ret,
		     struct environment_error *ret_error);

#endif
