/* SPDX-License-Identifier: Apache-2.0 */
/* prof-deltas, taken over as it begins to read a file. */
#include "tests/redteam/takeover.h"
#include "common/rows/extract/extract.h"

int __real_extract_rows(int fd, int debug_fd, struct rows *rows, struct extract *ret);
int __wrap_extract_rows(int fd, int debug_fd, struct rows *rows, struct extract *ret);

int __wrap_extract_rows(int fd, int debug_fd, struct rows *rows, struct extract *ret)
{
	takeover_holding(fd);
	return __real_extract_rows(fd, debug_fd, rows, ret);
}
