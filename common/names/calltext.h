/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The strings of calls in a worker's answer (programwire.h, codewire.h). Each is an offset and a
 * length in the text of the struct names, which follows the calls. The bytes that are read are
 * untrusted.
 */
#ifndef COMMON_NAMES_CALLTEXT_H
#define COMMON_NAMES_CALLTEXT_H

#include "common/base/bytes/span.h"
#include "common/base/bytes/str.h"
#include "common/names/names.h"

struct calltext {
	uint32_t at, len;
};

struct calltext calltext_of(const struct names *n, struct str s);
/* Whether it lies within a text of this length. */
bool calltext_is_within(struct calltext t, uint32_t text_len);
/* The string, once the text is taken. */
struct str calltext_str(const struct names *n, struct calltext t);
/* Takes the text from the beginning of the span: text_len bytes without NUL. Returns false if they
 * are not there. */
bool calltext_take(struct span *rest, uint32_t text_len, struct names *n);
/* Appends n bytes, and returns the address after them. */
uint8_t *calltext_append(uint8_t *into, const void *what, size_t n);

#endif
