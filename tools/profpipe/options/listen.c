/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/profpipe/options/listen.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <string.h>
#include "common/base/text/decimal.h"

#define PORT_MOST 65535

static bool take_port(const char *s, in_port_t *ret)
{
	uint64_t n;

	if (strlen(s) > 5 || !decimal_parse(s, &n) || n < 1 || n > PORT_MOST)
		return false;
	*ret = htons((uint16_t)n);
	return true;
}

bool listen_parse(const char *text, struct sockaddr_storage *ret, socklen_t *ret_len)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
	const char *colon = strrchr(text, ':');
	char host[INET6_ADDRSTRLEN] = "";
	in_port_t port;
	const size_t len = colon ? (size_t)(colon - text) : 0;

	if (!len || len >= sizeof(host) || !take_port(colon + 1, &port))
		return false;
	memcpy(host, text, len);
	if (inet_pton(AF_INET, host, &v4.sin_addr) == 1) {
		v4.sin_port = port;
		if (ntohl(v4.sin_addr.s_addr) >> 24 != IN_LOOPBACKNET)
			return false;
		memset(ret, 0, sizeof(*ret));
		memcpy(ret, &v4, sizeof(v4));
		*ret_len = sizeof(v4);
		return true;
	}
	if (strcmp(host, "[::1]") != 0)
		return false;
	v6.sin6_addr = in6addr_loopback;
	v6.sin6_port = port;
	memset(ret, 0, sizeof(*ret));
	memcpy(ret, &v6, sizeof(v6));
	*ret_len = sizeof(v6);
	return true;
}
