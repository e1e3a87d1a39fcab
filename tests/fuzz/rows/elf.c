/* SPDX-License-Identifier: Apache-2.0 */
/* Input: a whole ELF file, read through a descriptor like the extractor does. */
#include "tests/fuzz/large_blocks.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/rows_hold.h"
#include "common/rows/extract/extract.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memory_file_for_all(data, size);
	struct extract e;
	struct rows rows;

	rows_init(&rows);

	/* It is also its own debug file. */
	int r = extract_rows(fd, size & 1 ? fd : -1, &rows, &e);

	must(e.why != NULL && (r <= 0 || e.why[0]));
	if (r == 0)
		rows_hold(&rows);
	rows_done(&rows);
	return 0;
}
