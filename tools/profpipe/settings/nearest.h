/* SPDX-License-Identifier: Apache-2.0 */
/* The nearest word: the known word that a mistyped one probably means. Pure. */
#ifndef PROFPIPE_SETTINGS_NEAREST_H
#define PROFPIPE_SETTINGS_NEAREST_H

#include <stdbool.h>

/* The number of letters to insert, remove or replace to make one word of the other. Only the first
 * NEAREST_LETTERS bytes are compared. */
#define NEAREST_LETTERS 64
unsigned nearest_distance(const char *a, const char *b);
/* Whether a word at this distance is likely: at most a third of the letters differ. */
bool nearest_is_likely(const char *word, unsigned distance);

#endif
