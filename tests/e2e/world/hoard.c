/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes as much of the profiler as it can: maps many files as code, or one file in many places, and
 * then sleeps, runs in all of them, or maps them again and again.
 *
 *     hoard FILES|PLACES idle|busy|churn FOLDER COUNT SECONDS OFFSET
 *
 * FOLDER holds files 0 to COUNT - 1. At OFFSET, a multiple of a page, each holds a function that
 * takes a list of functions, and calls the first with the rest.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096ul
#define DEPTH 100 /* functions in one stack */

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int open_at(const char *folder, unsigned n)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%u", folder, n);
	return open(path, O_RDONLY | O_CLOEXEC);
}

static void map_files(const char *folder, unsigned count, off_t offset, void **at)
{
	for (unsigned i = 0; i < count; i++) {
		const int fd = open_at(folder, i);

		at[i] = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, offset);
		if (at[i] == MAP_FAILED) {
			perror("mmap");
			exit(1);
		}
		close(fd);
	}
}

static void map_places(int fd, unsigned count, off_t offset, void **at, char *region)
{
	for (unsigned i = 0; i < count; i++) {
		at[i] = mmap(region + 2 * PAGE * i, PAGE, PROT_READ | PROT_EXEC,
			     MAP_PRIVATE | MAP_FIXED, fd, offset);
		if (at[i] == MAP_FAILED) {
			perror("mmap");
			exit(1);
		}
	}
}

int main(int argc, char **argv)
{
	if (argc != 7)
		return 2;
	const int places = !strcmp(argv[1], "PLACES");
	const unsigned count = (unsigned)atoi(argv[4]);
	const double end = now() + atof(argv[5]);
	const off_t offset = strtol(argv[6], NULL, 0);
	void **at = calloc(count + 1, sizeof(*at)), *list[DEPTH + 1] = { NULL };
	const int fd = open_at(argv[3], 0);
	char *region = mmap(NULL, 2 * PAGE * count, PROT_NONE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (!at || region == MAP_FAILED)
		return 1;
	/* Every second page stays unmapped, since a reserved range counts as a mapping. */
	munmap(region, 2 * PAGE * count);
	if (places)
		map_places(fd, count, offset, at, region);
	else
		map_files(argv[3], count, offset, at);
	puts("ready");
	fflush(stdout);
	for (unsigned next = 0; now() < end;) {
		if (!strcmp(argv[2], "idle")) {
			pause();
			continue;
		}
		if (!strcmp(argv[2], "churn"))
			map_places(fd, count, offset, at, region);
		for (unsigned i = 0; i < DEPTH; i++)
			list[i] = at[next++ % count];
		((void (*)(void **))list[0])(list + 1);
	}
	return 0;
}
