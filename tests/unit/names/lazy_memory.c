/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "common/names/dwarf/lazy_memory.h"
#include "common/names/program/program.h"

#define SIZE ((3u << 20) + 17)

static unsigned calls;

static uint8_t pattern(uint64_t at)
{
	return (uint8_t)(at * 2654435761u >> 24);
}

static void fill(void *ctx, uint64_t at, uint8_t *into, size_t n)
{
	(void)ctx;
	calls++;
	for (size_t i = 0; i < n; i++)
		into[i] = pattern(at + i);
}

static struct lazy_memory *make(size_t size)
{
	struct lazy_memory *l;

	cr_assert_eq(lazy_memory_new(size, SIZE_MAX, fill, NULL, &l), 0);
	cr_assert_eq(l->size, size);
	cr_assert_eq(l->filled, 0u);
	return l;
}

Test(lazy_memory, only_what_is_touched_is_filled_and_once)
{
	struct lazy_memory *a = make(SIZE), *b = make(SIZE);
	size_t one;

	cr_assert_eq(a->bytes[1000000], pattern(1000000));
	one = a->filled;
	cr_assert_gt(one, 0u);
	cr_assert_lt(one, SIZE / 16);
	cr_assert_eq(a->bytes[1000001], pattern(1000001));
	a->bytes[1000002] = 7;
	cr_assert_eq(a->bytes[1000002], 7);
	cr_assert_eq(calls, 1u);
	cr_assert_eq(b->filled, 0u);
	cr_assert_eq(b->bytes[SIZE - 1], pattern(SIZE - 1));
	lazy_memory_free(a);
	cr_assert_eq(b->bytes[0], pattern(0));
	lazy_memory_free(b);
}

Test(lazy_memory, all_of_a_region_that_takes_every_piece_is_right)
{
	struct lazy_memory *l = make(SIZE);

	for (size_t i = 0; i < SIZE; i++)
		cr_assert_eq(l->bytes[i], pattern(i), "%zu", i);
	cr_assert_geq(l->filled, SIZE);
	lazy_memory_free(l);
}

Test(lazy_memory, a_region_of_a_gigabyte_has_few_pieces)
{
	struct lazy_memory *l = make(1u << 30);

	for (uint64_t at = 0; at < 1u << 30; at += 50000017)
		cr_assert_eq(l->bytes[at], pattern(at));
	cr_assert_lt(l->filled, 64u << 20);
	lazy_memory_free(l);
}

Test(lazy_memory, a_fault_elsewhere_is_one)
{
	struct lazy_memory *l = make(SIZE);
	volatile uint8_t *none = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int status;
	pid_t child;

	cr_assert_eq(l->bytes[0], pattern(0));
	child = fork();
	if (child == 0) {
		/* A sanitizer's signal handler would print a lot. */
		close(STDERR_FILENO);
		(void)none[0];
		_exit(0);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFSIGNALED(status) || WEXITSTATUS(status) != 0);
	lazy_memory_free(l);
}

/* --- programs whose DWARF is read lazily --- */

static void lookup(struct program *p, uint64_t address, char into[static 256])
{
	static struct names n;

	cr_assert_eq(program_lookup(p, address, &n), 0);
	snprintf(into, 256, "%.*s %.*s:%d", (int)n.calls[0].name.len, n.calls[0].name.data,
		 (int)n.calls[0].source.len, n.calls[0].source.data, (int)n.calls[0].line);
}

/* The ELF address of fill, which stands in this file. */
static uint64_t address_of_fill(void)
{
	char line[512];
	unsigned long start, offset;
	FILE *f = fopen("/proc/self/maps", "r");
	uint64_t at = (uint64_t)(uintptr_t)fill, base = 0;

	cr_assert(f);
	while (!base && fgets(line, sizeof(line), f))
		if (strstr(line, "/lazy_memory\n") &&
		    sscanf(line, "%lx-%*x %*s %lx", &start, &offset) == 2)
			base = start - offset;
	fclose(f);
	return at - base;
}

static void names_outlast_rests(const char *path)
{
	struct program *p;
	char first[256], again[256];
	size_t most;
	uint64_t at = address_of_fill();

	cr_assert_eq(
		program_open(open(path, O_RDONLY | O_CLOEXEC), PROGRAM_OF_OTHERS, 64 << 20, &p), 0);
	lookup(p, at, first);
	cr_assert(strncmp(first, "fill ", 5) == 0 && strstr(first, "unit/names/lazy_memory.c:"),
		  "%s", first);
	most = program_bytes(p);
	for (int packed = 0; packed < 2; packed++) {
		cr_assert(program_rest(p, packed));
		cr_assert_not(program_rest(p, packed));
		cr_assert_lt(program_bytes(p), most);
		lookup(p, at, again);
		cr_assert_str_eq(again, first);
	}
	program_free(p);
}

Test(lazy_memory, names_are_the_same_after_a_rest)
{
	names_outlast_rests("/proc/self/exe");
}

Test(lazy_memory, names_of_packed_sections_are_the_same_after_a_rest)
{
	char path[] = "/tmp/profpipe-lazy.XXXXXX", exe[256];
	int fd = mkstemp(path), status;
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	pid_t child;

	cr_assert(fd >= 0 && n > 0);
	exe[n] = '\0';
	close(fd);
	child = fork();
	if (child == 0) {
		execlp("objcopy", "objcopy", "--compress-debug-sections=zlib", exe, path, NULL);
		_exit(127);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert_eq(status, 0);
	names_outlast_rests(path);
	unlink(path);
}

/* Copies this program, to be truncated. */
static int copy_exe(char path[static 1])
{
	int to = mkstemp(path), from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	char chunk[65536];
	ssize_t got;

	cr_assert(to >= 0 && from >= 0);
	while ((got = read(from, chunk, sizeof(chunk))) > 0)
		cr_assert_eq(write(to, chunk, (size_t)got), got);
	close(from);
	return to;
}

/* Bytes that libdw has already read stay; others read as zeros. No address may make it loop or
 * crash. */
Test(lazy_memory, a_file_that_shrinks_in_use_is_looked_into_to_its_end, .timeout = 30)
{
	char path[] = "/tmp/profpipe-lazy.XXXXXX";
	static struct names n;
	struct program *p;
	int to = copy_exe(path);
	uint64_t at = address_of_fill();

	cr_assert_eq(program_open(to, PROGRAM_OF_OTHERS, 64 << 20, &p), 0);
	cr_assert_eq(program_lookup(p, at, &n), 0);
	size_t bytes = program_bytes(p);
	cr_assert_eq(truncate(path, 4096), 0);
	for (uint64_t other = at & ~0xffffull; other < (at | 0x3ffff); other += 16)
		(void)program_lookup(p, other, &n);
	cr_assert_gt(program_bytes(p), bytes);
	program_free(p);
	unlink(path);
}

/* Bytes read after the file was truncated are zeros: no address has a name then, and nothing
 * crashes. */
Test(lazy_memory, a_file_that_shrinks_has_no_names)
{
	char path[] = "/tmp/profpipe-lazy.XXXXXX";
	int to = copy_exe(path);
	static struct names n;
	struct program *p;

	cr_assert_eq(program_open(to, PROGRAM_OF_OTHERS, 64 << 20, &p), 0);
	cr_assert_eq(program_lookup(p, address_of_fill(), &n), 0);
	program_rest(p, true);
	cr_assert_eq(truncate(path, 4096), 0);
	cr_assert_neq(program_lookup(p, address_of_fill(), &n), 0);
	program_free(p);
	unlink(path);
}
