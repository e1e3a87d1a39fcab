/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-send/endpoint/endpoint.h"

#include <criterion/criterion.h>
#include <string.h>

static const struct endpoint_how grpc = { .protocol = ENDPOINT_GRPC };
static const struct endpoint_how http = { .protocol = ENDPOINT_HTTP };

Test(endpoint, the_path_of_grpc_is_fixed_and_not_shown)
{
	struct endpoint e;

	cr_assert_eq(endpoint_parse("http://collector:4317", &grpc, &e), 0);
	cr_assert_str_eq(e.url, "http://collector:4317" ENDPOINT_GRPC_PATH);
	cr_assert_str_eq(e.name, "http://collector:4317");
	cr_assert_eq(e.port, 4317);
	cr_assert_not(e.tls);
	cr_assert_eq(endpoint_parse("https://[::1]:4317/", &grpc, &e), 0);
	cr_assert_str_eq(e.name, "https://[::1]:4317");
	cr_assert(e.tls);
	cr_assert_eq(endpoint_parse("http://h:1/path", &grpc, &e), ENDPOINT_PATH);
}

Test(endpoint, http_has_the_default_path_unless_another_one_is_given)
{
	const struct endpoint_how base = { .protocol = ENDPOINT_HTTP, .base = true };
	static const struct {
		const char *text;
		bool base;
		const char *url;
	} cases[] = {
		{ "http://h:4318", false, "http://h:4318/v1development/profiles" },
		{ "http://h:4318/", false, "http://h:4318/v1development/profiles" },
		{ "http://h:4318/x", false, "http://h:4318/x" },
		{ "http://h:4318/x/", false, "http://h:4318/x/" },
		{ "http://h:4318", true, "http://h:4318/v1development/profiles" },
		{ "http://h:4318/x", true, "http://h:4318/x/v1development/profiles" },
		{ "http://h:4318/x//", true, "http://h:4318/x/v1development/profiles" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct endpoint e;

		cr_assert_eq(endpoint_parse(cases[i].text, cases[i].base ? &base : &http, &e), 0);
		cr_assert_str_eq(e.url, cases[i].url);
	}
}

Test(endpoint, a_url_without_a_port_has_the_one_of_its_scheme)
{
	struct endpoint e;

	cr_assert_eq(endpoint_parse("http://h", &grpc, &e), 0);
	cr_assert_eq(e.port, 80);
	cr_assert_eq(endpoint_parse("HTTPS://h", &grpc, &e), 0);
	cr_assert_eq(e.port, 443);
}

Test(endpoint, a_scheme_may_be_missing_only_in_a_variable_of_grpc)
{
	const struct endpoint_how variable = { .protocol = ENDPOINT_GRPC, .no_scheme = true };
	const struct endpoint_how insecure = { .no_scheme = true, .insecure = true };
	struct endpoint e;

	cr_assert_eq(endpoint_parse("h:4317", &grpc, &e), ENDPOINT_SCHEME);
	cr_assert_eq(endpoint_parse("h:4317", &variable, &e), 0);
	cr_assert_str_eq(e.name, "https://h:4317");
	cr_assert_eq(endpoint_parse("h:4317", &insecure, &e), 0);
	cr_assert_str_eq(e.name, "http://h:4317");
}

Test(endpoint, credentials_and_queries_in_urls_are_refused)
{
	struct endpoint e;

	cr_assert_eq(endpoint_parse("http://user@h", &http, &e), ENDPOINT_CREDENTIALS);
	cr_assert_eq(endpoint_parse("http://:pw@h", &http, &e), ENDPOINT_CREDENTIALS);
	cr_assert_eq(endpoint_parse("http://h/?token=x", &http, &e), ENDPOINT_QUERY);
	cr_assert_eq(endpoint_parse("http://h/#x", &http, &e), ENDPOINT_QUERY);
}

Test(endpoint, other_texts_are_no_endpoints)
{
	static const struct {
		const char *text;
		int verdict;
	} cases[] = {
		{ "", ENDPOINT_SCHEME },
		{ "h", ENDPOINT_SCHEME },
		{ "unix:///run/x", ENDPOINT_SCHEME },
		{ "ftp://h", ENDPOINT_SCHEME },
		{ "http:/h", ENDPOINT_SCHEME },
		{ "http:///h", ENDPOINT_MALFORMED },
		{ "http://", ENDPOINT_MALFORMED },
		{ "http://h:0x", ENDPOINT_MALFORMED },
		{ "http://h:65536", ENDPOINT_MALFORMED },
		{ "http://a b", ENDPOINT_MALFORMED },
	};
	char endless[ENDPOINT_URL_MAX + 16];
	struct endpoint e;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		cr_assert_eq(endpoint_parse(cases[i].text, &grpc, &e), cases[i].verdict, "%s",
			     cases[i].text);
	memset(endless, 'x', sizeof(endless) - 1);
	endless[sizeof(endless) - 1] = '\0';
	memcpy(endless, "http://", 7);
	cr_assert_eq(endpoint_parse(endless, &grpc, &e), ENDPOINT_LONG);
	endless[ENDPOINT_URL_MAX - 30] = '\0';
	cr_assert_eq(endpoint_parse(endless, &grpc, &e), ENDPOINT_LONG, "with its path");
}

Test(endpoint, the_key_tells_urls_apart_and_never_changes)
{
	struct endpoint a, b;

	cr_assert_eq(endpoint_parse("http://h:4317", &grpc, &a), 0);
	cr_assert_eq(endpoint_parse("http://h:4317/", &grpc, &b), 0);
	cr_assert_eq(a.key, b.key);
	cr_assert_eq(a.key, 0xa70efbb1fc9e082fu);
	cr_assert_eq(endpoint_parse("http://h:4317", &http, &b), 0);
	cr_assert_neq(a.key, b.key);
}

Test(endpoint, this_host_is_known_by_its_names)
{
	static const char *const local[] = { "http://localhost", "http://127.0.0.1:4317",
					     "https://[::1]" };
	struct endpoint e;

	for (size_t i = 0; i < sizeof(local) / sizeof(local[0]); i++) {
		cr_assert_eq(endpoint_parse(local[i], &grpc, &e), 0);
		cr_assert(e.local);
	}
	cr_assert_eq(endpoint_parse("http://localhost.example.org", &grpc, &e), 0);
	cr_assert_not(e.local);
	cr_assert_eq(endpoint_parse("http://127.example.org", &grpc, &e), 0);
	cr_assert_not(e.local);
}

Test(endpoint, the_port_of_a_proxy_is_known)
{
	cr_assert_eq(endpoint_proxy_port("http://p:3128"), 3128);
	cr_assert_eq(endpoint_proxy_port("p:8080"), 8080);
	cr_assert_eq(endpoint_proxy_port("http://user:pw@p:3128/"), 3128);
	cr_assert_eq(endpoint_proxy_port("socks5h://p:9050"), 9050);
	cr_assert_eq(endpoint_proxy_port("p"), 1080);
	cr_assert_eq(endpoint_proxy_port("https://p"), 443);
	cr_assert_eq(endpoint_proxy_port("http://:::"), 0);
}
