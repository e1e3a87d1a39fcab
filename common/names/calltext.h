/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Strings of the calls in a worker's answer (programwire.h, codewire.h). Each is an offset and a
 * length in the text of struct names, which follows the calls. The received bytes are untrusted.
 */
#ifndef COMMON_NAMES_CALLTEXT_H
#define COMMON_NAMES_CALLTEXT_H

#include "common/base/bytes/span.h"
#include "common/base/bytes/str.h"
#include "common/names/names.h"

struct calltext {
	uint32_t at, len;
};

/* Returns the offset and length of a string that n owns. */
struct calltext calltext_of(const struct names *n, struct str s);
/* Whether the string lies within a text of this length. */
bool calltext_is_within(struct calltext t, uint32_t text_len);
/* Returns the string, borrowed from n. Call it after calltext_take. */
struct str calltext_str(const struct names *n, struct calltext t);
/* Copies the text to *n from the front of the span: text_len bytes without NUL. Returns false if
 * the span is shorter. */
bool calltext_take(struct span *rest, uint32_t text_len, struct names *n);
/* Appends n bytes, and returns the address after them. */
uint8_t *calltext_append(uint8_t *into, const void *what, size_t n);

#endif
