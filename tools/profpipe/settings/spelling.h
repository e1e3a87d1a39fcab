/* SPDX-License-Identifier: Apache-2.0 */
/* Spelling: how far a mistyped word is from the known word that it may mean. Pure. */
#ifndef PROFPIPE_SETTINGS_SPELLING_H
#define PROFPIPE_SETTINGS_SPELLING_H

#include <stdbool.h>

/* The number of letters to insert, remove or replace to make one word of the other. Only the first
 * SPELLING_LETTERS bytes are compared. */
#define SPELLING_LETTERS 64
unsigned spelling_distance(const char *a, const char *b);
/* Whether a word at this distance is likely: at most a third of the letters differ. */
bool spelling_is_likely(const char *word, unsigned distance);

#endif
