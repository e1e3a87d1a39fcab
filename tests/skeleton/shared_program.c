/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The toy JIT, a build whose code has no frames of its own: it runs in the frame of the native
 * function that jumps to it, and jumps back. `shared SECONDS [SPINS]` runs such code, which calls
 * native functions.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

const char toyjit_mark[] = "toyjit: no code of that number";
struct {
	uint64_t start, size, units;
} toyjit_region;

void toyjit_enter(uint64_t start);
extern const char toyjit_shared[], toyjit_left[];

/* Runs code in its frame: 40 bytes below the saved RBP, which then holds anything. */
__asm__(".text\n"
	".globl toyjit_enter\n"
	".type toyjit_enter, @function\n"
	"toyjit_enter:\n"
	".cfi_startproc\n"
	"push %rbp\n"
	".cfi_def_cfa_offset 16\n"
	".cfi_offset %rbp, -16\n"
	"sub $40, %rsp\n"
	".cfi_def_cfa_offset 56\n"
	"mov $0x1234567, %ebp\n"
	".globl toyjit_shared\n"
	"toyjit_shared:\n"
	"jmp *%rdi\n"
	".globl toyjit_left\n"
	"toyjit_left:\n"
	"add $40, %rsp\n"
	".cfi_def_cfa_offset 16\n"
	"pop %rbp\n"
	".cfi_def_cfa_offset 8\n"
	".cfi_restore %rbp\n"
	"ret\n"
	".cfi_endproc\n"
	".size toyjit_enter, .-toyjit_enter\n");
#ifdef TOYJIT_RULE
const char toyjit_rule = 1; /* the description has the rule, but no place that has it */
#endif

static uint8_t *at;
static uint32_t spins = 300000;

static void put(const void *bytes, size_t n)
{
	memcpy(at, bytes, n);
	at += n;
}

#define PUT(...) put((const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }))

static void spin(void)
{
	PUT(0xb9); /* mov ecx, SPINS */
	put(&spins, sizeof(spins));
	PUT(0xff, 0xc9, 0x75, 0xfc); /* dec ecx; jnz */
}

static uint8_t *inner;
static unsigned depth;

__attribute__((noinline)) static void native(void)
{
	if (++depth < 20)
		toyjit_enter((uint64_t)(uintptr_t)inner);
	depth--;
	__asm__ volatile("" ::: "memory"); /* no tail call */
}

int main(int argc, char **argv)
{
	const time_t until = time(NULL) + (argc > 1 ? atoi(argv[1]) : 1);
	const uint64_t call = (uint64_t)(uintptr_t)native, left = (uint64_t)(uintptr_t)toyjit_left;

	if (argc > 2)
		spins = (uint32_t)atoi(argv[2]);
	at = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		  0);
	if (at == MAP_FAILED)
		return 1;
	inner = at;
	spin();
	PUT(0x48, 0xb8); /* mov rax, NATIVE */
	put(&call, sizeof(call));
	PUT(0xff, 0xd0); /* call rax */
	spin();
	PUT(0x48, 0xb8); /* mov rax, LEFT */
	put(&left, sizeof(left));
	PUT(0xff, 0xe0); /* jmp rax */
	/* For `live`. */
	if (write(STDOUT_FILENO, "runs\n", 5) != 5)
		return 1;
	do {
		toyjit_enter((uint64_t)(uintptr_t)inner);
	} while (time(NULL) <= until);
	return toyjit_mark[0] != 't';
}
