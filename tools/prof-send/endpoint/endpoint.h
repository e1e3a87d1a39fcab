/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An endpoint: the URL and the protocol by which requests are sent. Source: the OTLP specification,
 * "OTLP/gRPC" and "OTLP/HTTP", and the OTLP exporter's configuration.
 *
 * The path of OTLP/gRPC is fixed. OTLP/HTTP uses the default path, unless the URL has a path. A URL
 * may contain neither credentials nor a query: they would be visible in the list of processes and
 * in logs. Pure.
 */
#ifndef PROF_SEND_ENDPOINT_ENDPOINT_H
#define PROF_SEND_ENDPOINT_ENDPOINT_H

#include <stdbool.h>
#include <stdint.h>

#define ENDPOINT_URL_MAX 1024 /* bytes of a URL, with its NUL */
#define ENDPOINT_HTTP_PATH "/v1development/profiles"
#define ENDPOINT_GRPC_PATH \
	"/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export"

enum endpoint_protocol { ENDPOINT_GRPC, ENDPOINT_HTTP, ENDPOINT_PROTOCOLS };
/* As OTEL_EXPORTER_OTLP_PROTOCOL spells them. */
extern const char *const endpoint_protocols[ENDPOINT_PROTOCOLS];

struct endpoint {
	enum endpoint_protocol protocol;
	bool tls;
	bool local; /* on this host, judged by its name */
	uint16_t port;
	char url[ENDPOINT_URL_MAX];  /* URL of the requests */
	char name[ENDPOINT_URL_MAX]; /* for messages: as url; for gRPC without the path */
	/* A hash of url, which separates the spooled requests of different endpoints. */
	uint64_t key;
};

/* How to read the text. */
struct endpoint_how {
	enum endpoint_protocol protocol;
	bool base;	/* the URL is for all signals: append the default path */
	bool no_scheme; /* gRPC: "host:port" is also accepted, ... */
	bool insecure;	/* ... and then means http */
};

enum endpoint_verdict {
	ENDPOINT_MALFORMED = 1,
	ENDPOINT_SCHEME = 2,
	ENDPOINT_CREDENTIALS = 3,
	ENDPOINT_QUERY = 4,
	ENDPOINT_PATH = 5,
	ENDPOINT_LONG = 6,
};
/* Returns 0, enum endpoint_verdict or -ENOMEM. */
int endpoint_parse(const char *text, const struct endpoint_how *how, struct endpoint *ret);
/* The "reason; remedy" for a result of endpoint_parse. Static storage. */
const char *endpoint_error(int verdict);
/* The port of a proxy, in the syntax that curl accepts in environment variables; 0: unknown. */
uint16_t endpoint_proxy_port(const char *text);

#endif
