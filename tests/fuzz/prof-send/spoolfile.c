/* SPDX-License-Identifier: Apache-2.0 */
/* Input: the head of a file in the spool, followed by the file's name. Both are accepted only if
 * they are exactly what prof-send writes. */
#include <stdint.h>
#include <string.h>
#include "tests/fuzz/must.h"
#include "tools/prof-send/queue/spoolfile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_name(struct span text)
{
	char name[SPOOLFILE_NAME + 16], again[SPOOLFILE_NAME];
	uint64_t key, serial;
	bool part;

	if (text.len >= sizeof(name))
		return;
	memcpy(name, text.data, text.len);
	name[text.len] = '\0';
	if (!spoolfile_parse_name(name, &key, &serial, &part))
		return;
	spoolfile_name(key, serial, again);
	must(strncmp(name, again, strlen(again)) == 0);
	must(strcmp(name + strlen(again), part ? SPOOLFILE_PART : "") == 0);
}

/* A head that is nearly right gets further than noise. */
static void check_head(struct span head)
{
	uint8_t again[SPOOLFILE_HEAD];
	struct spoolfile f;

	if (!spoolfile_parse(head, &f))
		return;
	must(f.len <= SPOOLFILE_BYTES_MAX && f.facts.size <= REQUEST_MAX);
	spoolfile_encode(&f, again);
	must(memcmp(again, head.data, sizeof(again)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct span in = { .data = data, .len = size }, head;
	struct spoolfile f = { .key = 0 };
	uint8_t mended[SPOOLFILE_HEAD];

	if (!span_take(&in, SPOOLFILE_HEAD, &head))
		return 0;
	check_head(head);
	memcpy(&f, head.data, sizeof(f) < head.len ? sizeof(f) : head.len);
	spoolfile_encode(&f, mended);
	check_head((struct span){ .data = mended, .len = sizeof(mended) });
	if (in.len)
		check_name(in);
	return 0;
}
