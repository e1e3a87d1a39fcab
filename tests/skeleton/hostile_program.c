/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs whose memory misleads the walks of the toy runtimes: `hostile KIND SECONDS` is the toy,
 * and built with TOYJIT_HOSTILE the toy JIT. They spin while all that the runtimes read is as KIND
 * says:
 *
 *   circle    the toy's frames lead in a circle
 *   pages     a list of frames without end, each frame, function and unit on pages of their own
 *   unmapped  pointers lead to where nothing is mapped, or to the kernel
 *   stack     the JIT: frames of 8 bytes, as many as the stack has room for
 *   turns     the JIT: its frames and native ones take turns
 *   words     the JIT: each word of the stack leads into its code, with a description of its own
 *   wild      the JIT: sizes and addresses beyond all bounds
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096u
#define MANY 8192u /* frames, or descriptions */

static uint8_t *pages(size_t n)
{
	uint8_t *ret = mmap(NULL, n * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			    0);

	if (ret == MAP_FAILED)
		abort();
	return ret;
}

static uint64_t address(const void *p)
{
	return (uint64_t)(uintptr_t)p;
}

static time_t until;

/* In native code, mostly in libc. */
static void spin(void)
{
	static uint8_t much[1u << 16];

	do {
		memset(much, 1, sizeof(much));
		__asm__ volatile("" ::"r"(much) : "memory");
	} while (time(NULL) <= until);
}

#ifndef TOYJIT_HOSTILE
const char mark[] = "toy: no function of that number";
struct frame {
	uint64_t previous, function, position, entry;
};
struct frame *toy_top;
void toy_loop(void);

__attribute__((noinline)) void toy_loop(void)
{
	spin();
	__asm__ volatile("" ::: "memory"); /* no tail call */
}

/* A frame at `at`, and its function and unit on the two pages behind it. */
static void put_frame(uint8_t *at, uint64_t previous, uint64_t entry)
{
	uint64_t *function = (uint64_t *)(void *)(at + PAGE);

	*(struct frame *)(void *)at = (struct frame){ previous, address(function), 1, entry };
	function[0] = address(at);
	function[5] = address(at + 2 * (size_t)PAGE);
	*(uint64_t *)(void *)(at + 2 * (size_t)PAGE) = address(at) + 1;
}

static void prepare(const char *kind)
{
	static const uint64_t nowhere[] = { 0x10000, 0x7ffffffffff8, 0xffffffff81000000,
					    0x8000000000000000, 1 };
	uint8_t *at = pages(3 * (size_t)MANY);

	toy_top = (struct frame *)(void *)at;
	if (strcmp(kind, "circle") == 0) {
		put_frame(at, address(at + 8 * PAGE), address(&at));
		put_frame(at + 8 * PAGE, address(at), address(&at));
	} else if (strcmp(kind, "pages") == 0) {
		for (size_t i = 0; i < MANY; i++)
			put_frame(at + 3 * i * PAGE, address(at + 3 * (i + 1) % (3 * MANY) * PAGE),
				  0);
	} else if (strcmp(kind, "unmapped") == 0) {
		put_frame(at, nowhere[(unsigned)getpid() % 5], 0);
		((uint64_t *)(void *)(at + PAGE))[5] = nowhere[(unsigned)getpid() / 5 % 5];
	} else {
		abort();
	}
}

static void run(void)
{
	toy_loop();
}
#else
const char mark[] = "toyjit: no code of that number";
struct code {
	uint64_t start;
	uint32_t size, frame;
	uint16_t saved, ret;
	uint32_t zero;
	uint64_t serial, function, lines;
};
struct {
	uint64_t start, size, units, enter;
} toyjit_region;
void toyjit_enter(uint64_t stack);

__attribute__((noinline)) void toyjit_enter(uint64_t stack)
{
	/* On that stack, code calls the function that spins. */
	__asm__ volatile("mov %%rsp, %%rbx\n\tmov %0, %%rsp\n\tjmp *%1" ::"r"(stack), "r"(spin)
			 : "rbx", "memory");
	__builtin_unreachable();
}

#define UNIT 64
static uint64_t *stack;

static void prepare(const char *kind)
{
	const size_t words = (size_t)MANY * PAGE / 8;
	uint8_t *code = mmap(NULL, (size_t)MANY * UNIT, PROT_READ | PROT_WRITE | PROT_EXEC,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *described = pages(MANY);
	uint64_t *units = (uint64_t *)(void *)pages(MANY * 8 / PAGE);

	if (code == MAP_FAILED)
		abort();
	/* spin uses the stack below. */
	stack = (uint64_t *)(void *)pages(MANY) + words / 2 + 1;
	toyjit_region.start = address(code);
	toyjit_region.size = (uint64_t)MANY * UNIT;
	toyjit_region.units = address(units);
	for (size_t i = 0; i < MANY; i++) {
		struct code *c = (struct code *)(void *)(described + i * PAGE + PAGE - sizeof(*c));

		*c = (struct code){ .start = address(code) + i * UNIT,
				    .size = UNIT,
				    .saved = 7,
				    .ret = UNIT - 1,
				    .serial = i + 1,
				    .function = address(described + (i + 1) % MANY * PAGE),
				    .lines = address(described + (i + 2) % MANY * PAGE) };
		*(uint64_t *)(void *)(described + i * PAGE) = UINT64_MAX; /* bytes of lines */
		units[i] = address(c);
		if (strcmp(kind, "wild") == 0) {
			c->start -= i;
			c->size = UINT32_MAX;
			c->frame = i % 3 ? UINT32_MAX : 1u << 20;
			c->function = UINT64_MAX - i;
			c->lines = 0xffffffff81000000 + i;
			units[i] = i % 7 ? address(c) : i << 32;
		}
	}
	for (size_t i = 0; i < words / 2 - 1; i++)
		stack[i] = address(code) + i % MANY * UNIT + UNIT / 2;
	if (strcmp(kind, "turns") == 0)
		for (size_t i = 1; i < words / 2 - 1; i += 2)
			stack[i] = address(spin) + 1;
	if (strcmp(kind, "wild") == 0)
		toyjit_region.size = UINT64_MAX;
}

static void run(void)
{
	toyjit_enter(address(stack));
}
#endif

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	until = time(NULL) + atoi(argv[2]);
	prepare(argv[1]);
	/* For `live`. */
	if (write(STDOUT_FILENO, "runs\n", 5) != 5)
		return 1;
	run();
	return mark[0] != 't';
}
