/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Not a JVM, but it exports a libjvm's description of itself (tests/data/hotspot/fake.c), with
 * forged data: forged HOW SECONDS
 *  - pit: its code heaps lie in memory that blocks its readers forever;
 *  - wild: a heap of all memory, long ways through its map of segments, sizes of 2^31 and 2^63, and
 *    a thread that changes all of it all the time.
 * It also runs 200 nested calls of code that is in no file.
 */
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "tests/data/hotspot/fake.c"

/* f(n): calls f(n - 1); the innermost one spins. */
static const uint8_t code[] = "\x55\x48\x89\xe5\xff\xcf\x74\x07\xe8\xf3\xff\xff\xff\x5d\xc3"
			      "\xb9\x00\x00\x20\x00\xff\xc9\x75\xfc\x5d\xc3";

#define SIZE 65536u

static uint8_t *forged, *segments;
static uint64_t heap[64], array[2], *list[4];

static void *map(int rights)
{
	void *p = mmap(NULL, SIZE, rights, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		_exit(2);
	return p;
}

static uint64_t *pit(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register r = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);

	r.range.start = (uintptr_t)map(PROT_READ | PROT_WRITE);
	r.range.len = SIZE;
	if (fd < 0 || ioctl(fd, UFFDIO_API, &api) != 0 || ioctl(fd, UFFDIO_REGISTER, &r) != 0)
		_exit(3);
	return (uint64_t *)(uintptr_t)r.range.start;
}

/* Half of the numbers lead to forged memory, the others nowhere. */
static uint64_t wild(void)
{
	static const uint64_t numbers[] = { 0,		1,	    2,		INT64_MAX,
					    1ull << 63, UINT64_MAX, 1ull << 31, INT32_MAX };
	const int i = rand() % 16;

	return i < 8 ? numbers[i] : (uintptr_t)forged + (uint64_t)rand() % SIZE;
}

/* In the layout of JDK 17: fields of a block of code and of the objects it leads to. */
static void *lie(void *ignored)
{
	static const unsigned words[] = { 112, 48, 128, 136, 144, 152 };
	static const unsigned ints[] = { 36, 44, 276, 284, 288, 316 };

	for (;;) {
		uint64_t *at = (uint64_t *)forged;

		for (unsigned i = 0; i < SIZE / 8; i++)
			at[i] = wild();
		for (unsigned i = 0; i < 6; i++) {
			at[words[i] / 8] = wild();
			*(uint32_t *)(forged + ints[i]) = (uint32_t)wild();
		}
		*(uint32_t *)(forged + 44) = (uint32_t)(rand() % 4);
		at[112 / 8] = (uintptr_t)(rand() % 2 ? "nmethod" : "Interpreter");
		segments[rand() % SIZE] = (uint8_t)rand();
		usleep(1000);
	}
	return ignored;
}

static void forge_heaps(void)
{
	forged = map(PROT_READ | PROT_WRITE);
	segments = map(PROT_READ | PROT_WRITE);
	memset(segments, 1, SIZE);
	heap[16 / 8] = (uintptr_t)forged;
	heap[40 / 8] = UINT64_MAX;
	heap[136 / 8] = (uintptr_t)segments;
	heap[256 / 8] = 12;
	list[0] = list[1] = list[2] = list[3] = heap;
	array[0] = (uint64_t)INT32_MAX << 32;
	array[1] = (uintptr_t)list;
	fake_heaps[0] = (uintptr_t)array;
	segments[0] = 0;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	const double end = now() + (argc > 2 ? atof(argv[2]) : 1);
	uint8_t *run = map(PROT_READ | PROT_WRITE | PROT_EXEC);
	int (*f)(int);
	pthread_t liar;

	forge_heaps();
	if (argc > 1 && strcmp(argv[1], "pit") == 0)
		fake_heaps[0] = (uintptr_t)pit();
	else if (pthread_create(&liar, NULL, lie, NULL) != 0)
		return 2;
	/* The code is in the forged heap, whose first block the map of segments leads to. */
	memcpy(run, code, sizeof(code));
	f = (int (*)(int))(uintptr_t)run;
	while (now() < end)
		f(200);
	return 0;
}
