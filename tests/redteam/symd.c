/* SPDX-License-Identifier: Apache-2.0 */
/* prof-symd, taken over when it gets a program, or a process that parses files for it, taken over
 * when it begins to read one. */
#include "tests/redteam/takeover.h"
#include "common/names/elf/symfile.h"
#include "common/names/program/program.h"

int __real_symfile_open(int fd, struct symfile **ret);
int __wrap_symfile_open(int fd, struct symfile **ret);

int __wrap_symfile_open(int fd, struct symfile **ret)
{
	takeover_holding(fd);
	return __real_symfile_open(fd, ret);
}

int __real_program_open(int fd, enum program_class class, uint64_t dwarf_max, struct program **ret);
int __wrap_program_open(int fd, enum program_class class, uint64_t dwarf_max, struct program **ret);

int __wrap_program_open(int fd, enum program_class class, uint64_t dwarf_max, struct program **ret)
{
	takeover_holding(fd);
	return __real_program_open(fd, class, dwarf_max, ret);
}
