/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A list of pairs in the syntax of the variable OTEL_RESOURCE_ATTRIBUTES: `key=value`, separated by
 * commas. Blanks around keys and values are ignored, and %XX stands for any byte. The profiled
 * process writes the list, so it is untrusted. Like the SDKs of OpenTelemetry, we leave out a pair
 * without a key, `=` or value, and keep the others. Pure.
 *
 * Source: the specification of OpenTelemetry, "Resource SDK", "Specifying resource information via
 * an environment variable"; W3C Baggage.
 */
#ifndef PROF_EXPORT_OTLP_KEY_VALUES_H
#define PROF_EXPORT_OTLP_KEY_VALUES_H

#include "common/base/bytes/str.h"

/* Longest list in bytes; a stream contains no more, and the rest is left out. */
#define KEY_VALUES_TEXT 1024

/* The key and the value, decoded. */
struct key_value {
	uint32_t key_len, value_len;
	char key[KEY_VALUES_TEXT], value[KEY_VALUES_TEXT];
};

/* Removes the next valid pair from the list. Returns false if none is left. Adds the number of
 * skipped pairs to *skipped. */
bool key_values_next(struct str *list, struct key_value *ret, uint32_t *skipped);

#endif
