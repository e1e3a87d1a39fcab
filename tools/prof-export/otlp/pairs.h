/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A list of pairs, as the variable OTEL_RESOURCE_ATTRIBUTES has it: `key=value` between commas.
 * Blanks around keys and values do not count, and %XX in them stands for any byte. A process writes
 * it, so a pair may be anything. Like the SDKs of OpenTelemetry, we leave out a pair without a key,
 * `=` or value, and keep the others. Pure.
 *
 * Source: the specification of OpenTelemetry, "Resource SDK", "Specifying resource information via
 * an environment variable"; W3C Baggage.
 */
#ifndef PROF_EXPORT_OTLP_PAIRS_H
#define PROF_EXPORT_OTLP_PAIRS_H

#include "common/base/span.h"

#define PAIRS_TEXT 1024 /* bytes of a list: the most that a stream has; the rest is left out */

/* The key and the value, decoded. */
struct pair {
	uint32_t key_len, value_len;
	char key[PAIRS_TEXT], value[PAIRS_TEXT];
};

/* Takes the next pair off the front of the list. False: none is left. Adds the pairs that it leaves
 * out to *skipped. */
bool pairs_next(struct str *list, struct pair *ret, uint32_t *skipped);

#endif
