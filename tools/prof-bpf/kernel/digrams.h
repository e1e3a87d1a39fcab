/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Digram coding: a byte above 127 stands for two ASCII characters that are often adjacent. It makes
 * the names of a kernel's functions a third smaller. zlib would make them half as large, but takes
 * five times as long, and has to unpack a thousand bytes to get at one name. Pure.
 */
#ifndef PROF_BPF_KERNEL_DIGRAMS_H
#define PROF_BPF_KERNEL_DIGRAMS_H

#include <stddef.h>
#include <stdint.h>
#include "common/base/bytes/str.h"

#define DIGRAMS 128
#define DIGRAMS_PAIRS (128 * 128) /* of ASCII characters */

/* What decoding needs. */
struct digrams {
	char pair[DIGRAMS][2]; /* of byte 128 + index; unused ones are zero */
};

/* What encoding needs. */
struct digrams_encoder {
	uint32_t count[DIGRAMS_PAIRS];
	uint8_t code[DIGRAMS_PAIRS]; /* 0: none */
};

/* Counts the pairs of a text, in an encoder that is zeroed first. All texts are ASCII. */
void digrams_count(struct digrams_encoder *e, struct str text);
/* Gives codes to the pairs with the highest counts. */
void digrams_choose(struct digrams_encoder *e, struct digrams *ret);
/* Writes at most text.len bytes to `to`, and returns their number. */
size_t digrams_encode(const struct digrams_encoder *e, struct str text, char *to);
/* Writes at most 2 * coded.len bytes to `to`, and returns their number. */
size_t digrams_decode(const struct digrams *d, struct str coded, char *to);

#endif
