/* SPDX-License-Identifier: Apache-2.0 */
/* Input: a byte of choices, and the text of a header file or of the variable. An accepted header is
 * one line with a name in lower case, and no message shows its value. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "tests/fuzz/must.h"
#include "tools/prof-send/endpoint/headers.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct headers *h, size_t i)
{
	const char *line = headers_get(h, i), *colon = strstr(line, ": ");

	must(colon && colon > line && (size_t)(colon - line) == h->one[i].name_len);
	for (const char *c = line; c < colon; c++)
		must(*c > ' ' && *c < 0x7f && !(*c >= 'A' && *c <= 'Z') && *c != ':');
	for (const char *c = colon; *c; c++)
		must((uint8_t)*c >= ' ' || *c == '\t');
	/* A value with asterisks may result from hiding others. */
	if (strlen(colon + 2) < 4 || strchr(colon + 2, '*'))
		return;
	char *echo = strdup(line);

	must(echo != NULL);
	headers_hide(h, echo);
	must(!strstr(echo, colon + 2));
	free(echo);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct headers h = { .n = 0 };
	unsigned line = 0;

	if (!size)
		return 0;
	const struct span text = { .data = data + 1, .len = size - 1 };
	const int r = data[0] & 1 ? headers_parse_list(&h, text, &line)
				  : headers_parse_file(&h, text, &line);

	must(r >= 0 && (!r || (h.n == 0 && strstr(headers_error(r), "; "))));
	for (size_t i = 0; i < h.n; i++)
		check(&h, i);
	headers_done(&h);
	return 0;
}
