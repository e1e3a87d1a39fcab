/* SPDX-License-Identifier: Apache-2.0 */
/* A whole ELF file, by descriptor, as the extractor gets it. */
#include <sys/mman.h>
#include <unistd.h>
#include "tests/fuzz/rows_hold.h"
#include "tools/prof-deltas/extract.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("elf", MFD_CLOEXEC);
	struct extract e;
	struct rows rows;

	must(fd >= 0);
	must(write(fd, data, size) == (ssize_t)size);
	rows_init(&rows);

	/* It is its own debug file as well. */
	int r = extract_rows(fd, size & 1 ? fd : -1, &rows, &e);

	close(fd);
	must(e.why != NULL && (r <= 0 || e.why[0]));
	if (r == 0)
		rows_hold(&rows);
	rows_done(&rows);
	return 0;
}
