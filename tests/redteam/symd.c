/* SPDX-License-Identifier: Apache-2.0 */
/* prof-symd, or the process that runs libdw for it, taken over as it begins to read a file. */
#include "tests/redteam/takeover.h"
#include "common/names/elf/symfile.h"

int __real_symfile_open(int fd, struct symfile **ret);
int __wrap_symfile_open(int fd, struct symfile **ret);

int __wrap_symfile_open(int fd, struct symfile **ret)
{
	takeover_holding(fd);
	return __real_symfile_open(fd, ret);
}
