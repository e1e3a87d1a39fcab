/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library that is preloaded into Node.js, and forges V8's frames and objects there: a thread runs
 * code of its own outside of any file, as V8's compilers make it, with a chain of frames that lead
 * to objects full of lies. Other threads rewrite all of these while they are walked.
 *
 *   FORGED_TYPES    instance types, as numbers: a third of all half words
 *   FORGED_SECONDS  how long it goes on
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define HEAP_WORDS (1u << 17) /* 1 MiB of objects */
#define CODE_BYTES (1u << 16)
#define STACK_WORDS (1u << 12)
#define PIT_BYTES (1u << 16)
#define TYPES 64

static uint64_t *heap, *stack, pit;
static uint8_t *code;
static uint16_t types[TYPES];
static unsigned type_count;
static volatile bool over;

static uint64_t next(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

static uint64_t in_heap(uint64_t *seed)
{
	return (uint64_t)(heap + next(seed) % (HEAP_WORDS - 64));
}

/* A word that may stand in an object or in a frame. */
static uint64_t lie(uint64_t *seed)
{
	const uint64_t r = next(seed);
	uint64_t halves = 0;

	switch (r >> 8 & 15) {
	case 0:
		return r; /* anything */
	case 1:
		return (r >> 16 & 0xffffffff) << 32; /* a number */
	case 2:
		return (uint64_t)(code + r % CODE_BYTES);
	case 3:
		return (uint64_t)(code + r % CODE_BYTES) | 1;
	case 4:
		return pit + (r >> 16) % PIT_BYTES; /* memory that blocks its reader */
	case 5:
		return 0xffffffff81000001; /* the kernel's */
	case 6:
		return 0x7ffffffffff1;
	case 7:
		return (uint64_t)(stack + r % STACK_WORDS);
	case 8:
		return (r >> 16 & 0xffff) << 32; /* a small number */
	case 9:
	case 10:
	case 11:
		for (int i = 0; i < 4 && type_count; i++)
			halves = halves << 16 | types[next(seed) % type_count];
		return halves;
	default:
		return in_heap(seed) | 1;
	}
}

static void *rewrite(void *arg)
{
	uint64_t seed = (uint64_t)arg * 0x9e3779b97f4a7c15 + 1;

	while (!over)
		for (int i = 0; i < 1000; i++)
			heap[next(&seed) % HEAP_WORDS] = lie(&seed);
	return NULL;
}

/* Chains of frames: mostly upward, by a few words, and into all that looks like code. */
static void forge_stack(uint64_t *seed)
{
	for (unsigned at = 64; at + 64 < STACK_WORDS;) {
		const unsigned size = 8 + (unsigned)(next(seed) % 24);

		for (unsigned i = 2; i < size; i++)
			stack[at + i] = lie(seed);
		stack[at] = next(seed) % 50 ? (uint64_t)(stack + at + size) : lie(seed);
		stack[at + 1] = next(seed) % 50 ? (uint64_t)(code + next(seed) % CODE_BYTES)
						: lie(seed);
		at += size;
	}
}

/* Loops in the forged code, on the forged stack. */
static void *run(void *arg)
{
	uint64_t seed = (uint64_t)arg * 77 + 5, turns = 0;

	while (!over) {
		/* sub $1, %rdi; jne to itself; mov %rsi, %rsp; pop %rbp; ret */
		static const uint8_t loop[] = { 0x48, 0x83, 0xef, 0x01, 0x75, 0xfa,
						0x48, 0x89, 0xf4, 0x5d, 0xc3 };
		const unsigned at = 64 + (unsigned)(next(&seed) % (CODE_BYTES - 128));
		uint64_t count = 3000000, sp = (uint64_t)(stack + 32), fp = (uint64_t)(stack + 64);

		if (turns++ % 4 == 0)
			forge_stack(&seed);
		memcpy(code + at, loop, sizeof(loop));
		/* rbp and rsp lead into the forged stack; rsi is where to come back. */
		__asm__ volatile("push %%rbp\n\t"
				 "lea -128(%%rsp), %%rsi\n\t"
				 "lea 1f(%%rip), %%rax\n\t"
				 "mov %%rax, 8(%%rsi)\n\t"
				 "mov %%rbp, (%%rsi)\n\t"
				 "mov %[sp], %%rcx\n\t"
				 "mov %[fp], %%rdx\n\t"
				 "mov %[to], %%rax\n\t"
				 "mov %%rcx, %%rsp\n\t"
				 "mov %%rdx, %%rbp\n\t"
				 "jmp *%%rax\n"
				 "1:\n\t"
				 "lea 112(%%rsp), %%rsp\n\t"
				 "pop %%rbp\n\t"
				 : "+D"(count)
				 : [sp] "r"(sp), [fp] "r"(fp), [to] "r"(code + at)
				 : "rax", "rcx", "rdx", "rsi", "memory", "cc");
	}
	return NULL;
}

/* Memory whose missing pages are never provided. */
static uint64_t dig(void)
{
	void *at = mmap(NULL, PIT_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			0);
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register area = { .range = { (uint64_t)at, PIT_BYTES },
					.mode = UFFDIO_REGISTER_MODE_MISSING };
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);

	if (fd >= 0 && (ioctl(fd, UFFDIO_API, &api) || ioctl(fd, UFFDIO_REGISTER, &area)))
		close(fd);
	return (uint64_t)at;
}

static void *wait_for_end(void *arg)
{
	sleep((unsigned)(uintptr_t)arg);
	over = true;
	return NULL;
}

__attribute__((constructor)) static void forge(void)
{
	const char *seconds = getenv("FORGED_SECONDS"), *listed = getenv("FORGED_TYPES");
	uint64_t seed = 0x123456789abcdef;
	pthread_t thread;

	unsetenv("LD_PRELOAD");
	if (!seconds)
		return;
	for (char *end; listed && *listed && type_count < TYPES; listed = end + (*end == ' ')) {
		types[type_count] = (uint16_t)strtoul(listed, &end, 10);
		if (end == listed)
			break;
		type_count++;
	}
	heap = mmap(NULL, HEAP_WORDS * 8, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		    0);
	stack = mmap(NULL, STACK_WORDS * 8, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		     0);
	code = mmap(NULL, CODE_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pit = dig();
	for (unsigned i = 0; i < HEAP_WORDS; i++)
		heap[i] = lie(&seed);
	/* Code is full of what may also be the head of an object. */
	for (unsigned i = 0; i < CODE_BYTES / 8; i++)
		((uint64_t *)code)[i] = lie(&seed);
	forge_stack(&seed);
	pthread_create(&thread, NULL, rewrite, (void *)1);
	pthread_create(&thread, NULL, run, (void *)1);
	pthread_create(&thread, NULL, wait_for_end, (void *)strtoul(seconds, NULL, 10));
}
