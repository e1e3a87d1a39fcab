/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-send/endpoint/endpoint.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/bytes/hash.h"

const char *const endpoint_protocols[ENDPOINT_PROTOCOLS] = { "grpc", "http/protobuf" };

/* The parts of a URL, or NULL. curl owns their memory. */
struct parts {
	char *scheme, *user, *password, *host, *port, *path, *query, *fragment;
};

static void free_parts(struct parts *p)
{
	curl_free(p->scheme);
	curl_free(p->user);
	curl_free(p->password);
	curl_free(p->host);
	curl_free(p->port);
	curl_free(p->path);
	curl_free(p->query);
	curl_free(p->fragment);
}

static void free_url(CURLU **u)
{
	curl_url_cleanup(*u);
}

static int split(const char *text, struct parts *ret)
{
	CURLU *u __attribute__((cleanup(free_url))) = curl_url();
	const struct {
		CURLUPart part;
		unsigned flags;
		char **to;
	} wanted[] = {
		{ CURLUPART_SCHEME, 0, &ret->scheme },
		{ CURLUPART_USER, 0, &ret->user },
		{ CURLUPART_PASSWORD, 0, &ret->password },
		{ CURLUPART_HOST, 0, &ret->host },
		{ CURLUPART_PORT, CURLU_DEFAULT_PORT, &ret->port },
		{ CURLUPART_PATH, 0, &ret->path },
		{ CURLUPART_QUERY, 0, &ret->query },
		{ CURLUPART_FRAGMENT, 0, &ret->fragment },
	};

	*ret = (struct parts){ .scheme = NULL };
	if (!u)
		return -ENOMEM;
	/* Parse with any scheme, so that the error message can name a wrong one. */
	switch (curl_url_set(u, CURLUPART_URL, text, CURLU_NON_SUPPORT_SCHEME)) {
	case CURLUE_OK:
		break;
	case CURLUE_OUT_OF_MEMORY:
		return -ENOMEM;
	case CURLUE_UNSUPPORTED_SCHEME:
		return ENDPOINT_SCHEME;
	default:
		return ENDPOINT_MALFORMED;
	}
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
		if (curl_url_get(u, wanted[i].part, wanted[i].to, wanted[i].flags) ==
		    CURLUE_OUT_OF_MEMORY) {
			free_parts(ret);
			return -ENOMEM;
		}
	return 0;
}

static int check(const struct parts *p, const struct endpoint_how *how)
{
	const bool path = p->path && strcmp(p->path, "/") != 0;

	if (!p->scheme || (strcmp(p->scheme, "http") != 0 && strcmp(p->scheme, "https") != 0))
		return ENDPOINT_SCHEME;
	if (p->user || p->password)
		return ENDPOINT_CREDENTIALS;
	if (p->query || p->fragment)
		return ENDPOINT_QUERY;
	if (!p->host || !p->host[0] || !p->port)
		return ENDPOINT_MALFORMED;
	return path && how->protocol == ENDPOINT_GRPC && !how->base ? ENDPOINT_PATH : 0;
}

static bool is_local(const char *host)
{
	struct in_addr a;

	if (inet_pton(AF_INET, host, &a) == 1)
		return ntohl(a.s_addr) >> 24 == IN_LOOPBACKNET;
	return strcmp(host, "localhost") == 0 || strcmp(host, "[::1]") == 0;
}

static int compose(const struct parts *p, const struct endpoint_how *how, struct endpoint *ret)
{
	struct endpoint e = { .protocol = how->protocol,
			      .tls = strcmp(p->scheme, "https") == 0,
			      .local = is_local(p->host) };
	const char *path = p->path && strcmp(p->path, "/") != 0 ? p->path : "";
	const char *fixed = "";
	const bool grpc = how->protocol == ENDPOINT_GRPC;

	e.port = (uint16_t)strtoul(p->port, NULL, 10);
	if (grpc)
		path = ENDPOINT_GRPC_PATH;
	else if (how->base || !path[0])
		fixed = ENDPOINT_HTTP_PATH;
	/* "http://host/" and "http://host" are the same base URL. */
	int slashes = (int)strlen(path);

	while (fixed[0] && slashes && path[slashes - 1] == '/')
		slashes--;
	const int n = snprintf(e.url, sizeof(e.url), "%s://%s:%u%.*s%s", p->scheme, p->host,
			       (unsigned)e.port, slashes, path, fixed);

	if (n < 0 || (size_t)n >= sizeof(e.url))
		return ENDPOINT_LONG;
	memcpy(e.name, e.url, sizeof(e.name));
	if (grpc)
		e.name[(size_t)n - strlen(path)] = '\0';
	e.key = hash_bytes(HASH_START, e.url, strlen(e.url));
	*ret = e;
	return 0;
}

int endpoint_parse(const char *text, const struct endpoint_how *how, struct endpoint *ret)
{
	char with_scheme[ENDPOINT_URL_MAX];
	struct parts p;

	if (how->no_scheme && how->protocol == ENDPOINT_GRPC && !strstr(text, "://")) {
		const int n = snprintf(with_scheme, sizeof(with_scheme), "%s://%s",
				       how->insecure ? "http" : "https", text);

		if (n < 0 || (size_t)n >= sizeof(with_scheme))
			return ENDPOINT_LONG;
		text = with_scheme;
	}
	if (strlen(text) >= ENDPOINT_URL_MAX)
		return ENDPOINT_LONG;
	/* curl would also accept one slash, or three. */
	const char *slashes = strstr(text, "://");

	if (!slashes)
		return ENDPOINT_SCHEME;
	int r = split(text, &p);

	if (r)
		return r;
	r = check(&p, how);
	if (!r && slashes[3] == '/')
		r = ENDPOINT_MALFORMED;
	if (!r)
		r = compose(&p, how, ret);
	free_parts(&p);
	return r;
}

const char *endpoint_error(int verdict)
{
	switch (verdict) {
	case ENDPOINT_SCHEME:
		return "has neither http:// nor https://; write http://HOST:4317 or "
		       "https://HOST:4317";
	case ENDPOINT_CREDENTIALS:
		return "has a user or password, which everybody on this host could see; put them "
		       "into the file of --otlp-header-file";
	case ENDPOINT_QUERY:
		return "has a query or fragment, which everybody on this host could see; put "
		       "tokens into the file of --otlp-header-file";
	case ENDPOINT_PATH:
		return "has a path, but that of gRPC is fixed; omit it, or give --otlp-protocol "
		       "http/protobuf";
	case ENDPOINT_LONG:
		return "is too long; give at most 1000 bytes";
	case ENDPOINT_MALFORMED:
		return "is not a URL; write http://HOST:4317 or https://HOST:4317";
	default:
		return "cannot be read: out of memory; raise --memory";
	}
}

uint16_t endpoint_proxy_port(const char *text)
{
	char url[ENDPOINT_URL_MAX];
	struct parts p;
	unsigned long port = 0;
	const int n = snprintf(url, sizeof(url), "%s%s", strstr(text, "://") ? "" : "http://",
			       text);

	if (n < 0 || (size_t)n >= sizeof(url) || split(url, &p))
		return 0;
	/* If the URL has no port, curl's default for an http proxy is 1080. */
	if (p.port && strstr(text, p.port))
		port = strtoul(p.port, NULL, 10);
	else
		port = p.scheme && strcmp(p.scheme, "https") == 0 ? 443 : 1080;
	free_parts(&p);
	return (uint16_t)port;
}
