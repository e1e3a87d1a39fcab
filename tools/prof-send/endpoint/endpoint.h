/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An endpoint: where requests go, as a URL and a protocol. Source: the OTLP specification,
 * "OTLP/gRPC" and "OTLP/HTTP", and the OTLP exporter's configuration.
 *
 * The path of OTLP/gRPC is fixed. OTLP/HTTP has the default path, unless the URL has another one. A
 * token in a URL would be in the list of processes and in logs, so a URL has neither credentials
 * nor a query. Pure.
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
	bool local; /* by its name, on this host */
	uint16_t port;
	char url[ENDPOINT_URL_MAX];  /* where requests go */
	char name[ENDPOINT_URL_MAX]; /* for messages: as url; of gRPC without the path */
	uint64_t key; /* a hash of url: tells the spooled requests of endpoints apart */
};

/* How to read the text. */
struct endpoint_how {
	enum endpoint_protocol protocol;
	bool base;	/* the URL is that of all signals: the default path is appended */
	bool no_scheme; /* gRPC: "host:port" will do ... */
	bool insecure;	/* ... and means http */
};

enum endpoint_verdict {
	ENDPOINT_MALFORMED = 1,
	ENDPOINT_SCHEME = 2,
	ENDPOINT_CREDENTIALS = 3,
	ENDPOINT_QUERY = 4,
	ENDPOINT_PATH = 5,
	ENDPOINT_LONG = 6,
};
/* 0, enum endpoint_verdict, -ENOMEM. */
int endpoint_parse(const char *text, const struct endpoint_how *how, struct endpoint *ret);
/* "reason; remedy" of a result of endpoint_parse. Static storage. */
const char *endpoint_error(int verdict);
/* The port of a proxy, written as curl takes it from the environment; 0: none can be told. */
uint16_t endpoint_proxy_port(const char *text);

#endif
