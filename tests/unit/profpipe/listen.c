/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/profpipe/options/listen.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <netinet/in.h>

Test(listen, loopback_addresses_are_taken)
{
	struct sockaddr_storage at;
	socklen_t len = 0;
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)&at;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&at;

	cr_assert(listen_parse("127.0.0.1:9464", &at, &len));
	cr_assert_eq(len, sizeof(*v4));
	cr_assert_eq(ntohl(v4->sin_addr.s_addr), INADDR_LOOPBACK);
	cr_assert_eq(ntohs(v4->sin_port), 9464);
	cr_assert(listen_parse("127.1.2.3:65535", &at, &len));
	cr_assert(listen_parse("[::1]:1", &at, &len));
	cr_assert_eq(len, sizeof(*v6));
	cr_assert(IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr));
	cr_assert_eq(ntohs(v6->sin6_port), 1);
}

Test(listen, all_others_are_refused)
{
	static const char *const bad[] = { "",
					   "127.0.0.1",
					   "127.0.0.1:",
					   "127.0.0.1:0",
					   "127.0.0.1:65536",
					   "127.0.0.1:99999999999",
					   "127.0.0.1:+1",
					   "0.0.0.0:9464",
					   "128.0.0.1:9464",
					   "10.0.0.1:9464",
					   "[::]:9464",
					   "::1:9464",
					   "localhost:9464",
					   ":9464",
					   "[::ffff:127.0.0.1]:9464" };
	struct sockaddr_storage at;
	socklen_t len;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_assert_not(listen_parse(bad[i], &at, &len), "%s", bad[i]);
}
