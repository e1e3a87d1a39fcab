/* SPDX-License-Identifier: Apache-2.0 */
/* Input: a byte of choices, and the text of a URL. An accepted URL contains no secret, and fits. */
#include <curl/curl.h>
#include <stdint.h>
#include <string.h>
#include "tests/fuzz/must.h"
#include "tools/prof-send/endpoint/endpoint.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char text[2 * ENDPOINT_URL_MAX];
	struct endpoint e;

	if (!size || size > sizeof(text))
		return 0;
	const struct endpoint_how how = { .protocol = data[0] & 1 ? ENDPOINT_HTTP : ENDPOINT_GRPC,
					  .base = data[0] & 2,
					  .no_scheme = data[0] & 4,
					  .insecure = data[0] & 8 };

	memcpy(text, data + 1, size - 1);
	text[size - 1] = '\0';
	(void)endpoint_proxy_port(text);
	const int r = endpoint_parse(text, &how, &e);

	must(r >= 0);
	if (r) {
		must(strstr(endpoint_error(r), "; ") != NULL);
		return 0;
	}
	must(strncmp(e.url, e.tls ? "https://" : "http://", e.tls ? 8 : 7) == 0);
	must(strlen(e.url) < ENDPOINT_URL_MAX && strlen(e.name) <= strlen(e.url));
	const char *host = strstr(e.url, "://") + 3;
	const size_t authority = strcspn(host, "/");

	must(authority && !memchr(host, '@', authority));
	must(!strchr(e.url, '?') && !strchr(e.url, '#'));
	must(!strpbrk(e.url, " \r\n\t"));
	return 0;
}
