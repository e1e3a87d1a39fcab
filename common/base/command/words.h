/* SPDX-License-Identifier: Apache-2.0 */
/* The words of a command line that starts another tool. They are copied, and the list grows as
 * needed. After an error, later words are ignored, and words_end returns the error. */
#ifndef COMMON_BASE_COMMAND_WORDS_H
#define COMMON_BASE_COMMAND_WORDS_H

#include <stddef.h>

struct words {
	char **argv; /* NULL-terminated once words_end was called */
	size_t n, cap;
	int error; /* -errno of the first failure */
};
#define WORDS_NONE ((struct words){ .argv = NULL })

void words_add(struct words *w, const char *word);
__attribute__((format(printf, 2, 3))) void words_print(struct words *w, const char *fmt, ...);
/* Ends the command line with NULL. 0, -ENOMEM. */
int words_end(struct words *w);
void words_done(struct words *w);

#endif
