/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/command/words.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_WORDS 32

/* Takes `word`, which is NULL if there was no memory for it. */
static void put(struct words *w, char *word)
{
	if (!word && !w->error)
		w->error = -ENOMEM;
	if (!w->error && w->n + 1 >= w->cap) {
		const size_t cap = w->cap ? 2 * w->cap : FIRST_WORDS;
		char **argv = reallocarray(w->argv, cap, sizeof(*argv));

		if (argv) {
			w->argv = argv;
			w->cap = cap;
		} else {
			w->error = -ENOMEM;
		}
	}
	if (w->error)
		free(word);
	else
		w->argv[w->n++] = word;
}

void words_add(struct words *w, const char *word)
{
	put(w, strdup(word));
}

void words_print(struct words *w, const char *fmt, ...)
{
	char *word = NULL;
	va_list args;

	va_start(args, fmt);
	const int n = vasprintf(&word, fmt, args);

	va_end(args);
	put(w, n < 0 ? NULL : word);
}

int words_end(struct words *w)
{
	if (!w->error && !w->argv) {
		w->argv = calloc(1, sizeof(*w->argv));
		w->cap = w->argv ? 1 : 0;
		w->error = w->argv ? 0 : -ENOMEM;
	}
	if (!w->error)
		w->argv[w->n] = NULL;
	return w->error;
}

void words_done(struct words *w)
{
	for (size_t i = 0; i < w->n; i++)
		free(w->argv[i]);
	free(w->argv);
	*w = WORDS_NONE;
}
