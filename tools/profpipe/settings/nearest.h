/* SPDX-License-Identifier: Apache-2.0 */
/* The known word that a mistyped one probably means. Pure. */
#ifndef PROFPIPE_SETTINGS_NEAREST_H
#define PROFPIPE_SETTINGS_NEAREST_H

#include <stdbool.h>

/* How many letters to insert, remove or replace to make one of the other. Words are compared up to
 * their first NEAREST_LETTERS bytes. */
#define NEAREST_LETTERS 64
unsigned nearest_distance(const char *a, const char *b);
/* Whether a word at this distance may be meant: at most a third of the letters differ. */
bool nearest_is_likely(const char *word, unsigned distance);

#endif
