/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that a worker reads with a false libdw, for the tests of program.h and below it. */
#ifndef TESTS_UNIT_PROGRAM_FIXTURE_H
#define TESTS_UNIT_PROGRAM_FIXTURE_H

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "common/names/jit/codeworker.h"
#include "common/names/program/fileworker.h"
#include "common/names/program/program.h"
#include "tests/unit/fake_libdw.h"

static inline struct symfile *self(void)
{
	struct symfile *f;

	cr_assert_eq(symfile_open(open("/proc/self/exe", O_RDONLY | O_CLOEXEC), &f), 0);
	return f;
}

/* Criterion has some 110 MiB before a test starts. */
#define HEAP (192u << 20)

static inline void start_for(unsigned life_s)
{
	int control;

	cr_assert_eq(filekeeper_start(&fileworker_class, &codeworker_class, HEAP, &control), 0);
	program_use_keeper(control, life_s, HEAP, 0);
}

static inline void start(void)
{
	start_for(FILEWORKER_LIFE_S);
}

static struct names names;

static inline int open_self(const struct symfile *f, uint64_t max, struct program **ret)
{
	return program_open(fcntl(symfile_fd(f), F_DUPFD_CLOEXEC, 3), PROGRAM_OF_OTHERS, max, ret);
}

static inline void expect_names(struct program *d, const char *outer)
{
	cr_assert_eq(program_lookup(d, NAME, &names), 0);
	cr_assert_eq(names.count, 2);
	cr_assert(str_eq(names.calls[0].name, STR_LIT("inner")));
	cr_assert(str_eq(names.calls[1].name, str_from(outer)));
	cr_assert(str_eq(names.calls[1].source, STR_LIT("/a/b.c")));
	cr_assert(names.calls[1].line == 7 && names.calls[1].start_line == 3 &&
		  names.calls[1].bare);
	cr_assert(!program_dwarf_lost(d) && program_bytes(d) >= 4096);
}

/* Does this in the middle of a file's life, which must cost only that file. */
static inline void costs_its_file_only(uint64_t deed)
{
	struct symfile *f = self();
	struct program *bad, *good, *later;

	start();
	cr_assert_eq(open_self(f, MAX, &good), 0);
	cr_assert_eq(open_self(f, MAX, &bad), 0);
	expect_names(good, "outer");
	expect_names(bad, "outer");
	cr_assert_eq(program_lookup(bad, deed, &names), SYMFILE_NONE, "deed %d", (int)deed);
	cr_assert(program_dwarf_lost(bad) && program_dwarf_kills(bad) == 0);
	cr_assert_eq(program_lookup(bad, NAME, &names), SYMFILE_NONE);
	expect_names(good, "outer");
	cr_assert_eq(open_self(f, MAX, &later), 0);
	expect_names(later, "outer");
	program_free(bad);
	program_free(good);
	program_free(later);
	symfile_free(f);
}

static inline pid_t child_of(pid_t pid)
{
	char path[64], text[64] = "";

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, pid);
	FILE *f = fopen(path, "re");

	cr_assert(f && fgets(text, sizeof(text), f));
	fclose(f);
	pid = atoi(text);
	cr_assert_gt(pid, 1);
	return pid;
}

/* A worker: the keeper's child. */
static inline pid_t the_worker(void)
{
	return child_of(child_of(getpid()));
}

#endif
