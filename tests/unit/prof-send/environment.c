/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-send/endpoint/environment.h"

#include <criterion/criterion.h>
#include <string.h>

static const char *const *variables; /* name, value, …, NULL */

static const char *get(const char *name)
{
	for (const char *const *v = variables; *v; v += 2)
		if (strcmp(v[0], name) == 0)
			return v[1];
	return NULL;
}

static int read_these(const char *const *these, struct environment *ret,
		      struct environment_error *error)
{
	variables = these;
	return environment_read(get, ret, error);
}

#define READ(...) read_these((const char *const[]){ __VA_ARGS__, NULL }, &e, &error)

Test(environment, an_empty_one_sets_nothing)
{
	struct environment_error error;
	struct environment e;

	cr_assert_eq(READ("OTEL_EXPORTER_OTLP_ENDPOINT", "", "OTEL_EXPORTER_OTLP_TIMEOUT", ""), 0);
	cr_assert_null(e.endpoint);
	cr_assert_not(e.has_protocol);
	cr_assert_not(e.has_compression);
	cr_assert_eq(e.timeout_ms, 0);
}

Test(environment, the_variables_of_profiles_count_first)
{
	struct environment_error error;
	struct environment e;

	cr_assert_eq(READ("OTEL_EXPORTER_OTLP_ENDPOINT", "all", "OTEL_EXPORTER_OTLP_PROTOCOL",
			  "grpc", "OTEL_EXPORTER_OTLP_PROFILES_PROTOCOL", "http/protobuf"),
		     0);
	cr_assert_str_eq(e.endpoint, "all");
	cr_assert(e.endpoint_of_all);
	cr_assert_eq(e.protocol, ENDPOINT_HTTP);
	cr_assert_eq(READ("OTEL_EXPORTER_OTLP_ENDPOINT", "all",
			  "OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT", "own"),
		     0);
	cr_assert_str_eq(e.endpoint, "own");
	cr_assert_not(e.endpoint_of_all);
	cr_assert_eq(READ("OTEL_EXPORTER_OTLP_INSECURE", "TRUE", "OTEL_EXPORTER_OTLP_COMPRESSION",
			  "none", "OTEL_EXPORTER_OTLP_TIMEOUT", "2500"),
		     0);
	cr_assert(e.insecure && e.has_compression && !e.compress);
	cr_assert_eq(e.timeout_ms, 2500);
}

Test(environment, bad_values_are_refused_with_the_variables_name)
{
	static const char *const cases[][2] = {
		{ "OTEL_EXPORTER_OTLP_PROTOCOL", "http/json" },
		{ "OTEL_EXPORTER_OTLP_PROFILES_COMPRESSION", "zstd" },
		{ "OTEL_EXPORTER_OTLP_TIMEOUT", "10s" },
		{ "OTEL_EXPORTER_OTLP_TIMEOUT", "0" },
		{ "OTEL_EXPORTER_OTLP_TIMEOUT", "99999999999999999999" },
	};
	struct environment_error error;
	struct environment e;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		cr_assert_eq(READ(cases[i][0], cases[i][1]), ENVIRONMENT_REFUSED);
		cr_assert_str_eq(error.name, cases[i][0]);
		cr_assert(strstr(error.text, "; ") != NULL);
	}
}
