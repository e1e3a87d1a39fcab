/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The toy JIT: functions become code in anonymous memory. The code keeps nothing in RBP that a
 * walker could follow, and each piece has a frame of its own size. All that describes code moves
 * all the time, as objects of a moving garbage collector do, and what was there before is
 * overwritten.
 *
 * Built as toyjit-loop, the function that enters it has no table either, and the runtime takes its
 * frames over as well.
 *
 * `toyjit SECONDS [SPINS [LIBRARY]...]` runs code that calls code, by way of native functions as
 * well, and code that is freed as soon as it ran. Then each library is loaded, and its function
 * `late` is called from code.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* A string in every build of the toy JIT, and in no other file. */
const char toyjit_mark[] = "toyjit: no code of that number";

#define REGION (1u << 20) /* bytes of code */
#define UNIT 64		  /* bytes that belong to one piece of code */

#define LINES 4
#define INLINED 2

/* The source lines of a piece of code. */
struct lines {
	uint64_t bytes; /* of the rest */
	uint32_t count, inlined;
	struct {
		uint32_t end, line, inside; /* inside: 1 + an index of inlined[], or 0 */
	} of[LINES];			    /* by offset in the code */
	struct {
		uint32_t caller, line; /* caller: 1 + an index, or 0; line: of the call */
		char name[16];
	} call[INLINED];
};

struct function {
	const char *name, *source;
};

/* A description of code. */
struct code {
	uint64_t start;
	uint32_t size, frame;
	uint16_t saved, ret; /* offsets: RBP is saved from here on; of the return instruction */
	uint32_t zero;
	uint64_t serial; /* no other has or had it; not 0 */
	struct function *function;
	struct lines *lines;
};

struct {
	uint64_t start, size;
	struct code **units;
	struct code *enter;
} toyjit_region;

void toyjit_enter(uint64_t start);

static uint32_t spins = 300000;
static uint64_t last_serial;
static uint8_t *next_code;

/* --- making code --- */

struct assembler {
	uint8_t *at;
	struct code *code;
};

static void put(struct assembler *a, const void *bytes, size_t n)
{
	memcpy(a->at, bytes, n);
	a->at += n;
}

#define PUT(a, ...) \
	put(a, (const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }))

static void put_u32(struct assembler *a, uint32_t v)
{
	put(a, &v, sizeof(v));
}

static void *allocate(size_t n)
{
	void *ret = calloc(1, n);

	if (!ret)
		abort();
	return ret;
}

static void *copy(const void *of, size_t n)
{
	return memcpy(allocate(n), of, n);
}

static void destroy(void *what, size_t n)
{
	explicit_bzero(what, n);
	memset(what, 0x5a, n);
	free(what);
}

/* Begins a piece of code. `frame` is in bytes: 8 more than a multiple of 16. */
static struct assembler begin(const char *name, const char *source, uint32_t frame, uint8_t *where)
{
	struct assembler a = { .at = where, .code = allocate(sizeof(*a.code)) };

	a.code->start = (uint64_t)(uintptr_t)a.at;
	a.code->frame = frame;
	a.code->serial = ++last_serial;
	a.code->function = allocate(sizeof(*a.code->function));
	a.code->function->name = strdup(name);
	a.code->function->source = strdup(source);
	a.code->lines = allocate(sizeof(*a.code->lines));
	PUT(&a, 0x48, 0x81, 0xec); /* sub rsp, FRAME */
	put_u32(&a, frame);
	PUT(&a, 0x48, 0x89, 0xac, 0x24); /* mov [rsp + FRAME - 8], rbp */
	put_u32(&a, frame - 8);
	a.code->saved = (uint16_t)(a.at - where);
	PUT(&a, 0x48, 0xc7, 0xc5); /* mov rbp, a number */
	put_u32(&a, 0x1234567);
	return a;
}

/* The code up to here is of that line of an inlined call. */
static void line_in(struct assembler *a, uint32_t number, uint32_t inside)
{
	struct lines *l = a->code->lines;

	l->bytes = sizeof(*l) - sizeof(l->bytes);
	l->of[l->count].end = (uint32_t)((uint64_t)(uintptr_t)a->at - a->code->start);
	l->of[l->count].line = number;
	l->of[l->count++].inside = inside;
}

static void line(struct assembler *a, uint32_t number)
{
	line_in(a, number, 0);
}

static uint32_t inlined(struct assembler *a, uint32_t caller, uint32_t number, const char *name)
{
	struct lines *l = a->code->lines;

	l->call[l->inlined].caller = caller;
	l->call[l->inlined].line = number;
	memcpy(l->call[l->inlined].name, name, strlen(name));
	return ++l->inlined;
}

static void spin(struct assembler *a, uint32_t times)
{
	PUT(a, 0xb9); /* mov ecx, TIMES */
	put_u32(a, times);
	PUT(a, 0xff, 0xc9, 0x75, 0xfc); /* dec ecx; jnz */
}

static void call(struct assembler *a, const void *what)
{
	PUT(a, 0x48, 0xb8); /* mov rax, WHAT */
	put(a, &what, sizeof(what));
	PUT(a, 0xff, 0xd0); /* call rax */
}

static struct code *end(struct assembler *a)
{
	struct code *c = a->code;

	PUT(a, 0x48, 0x8b, 0xac, 0x24); /* mov rbp, [rsp + FRAME - 8] */
	put_u32(a, c->frame - 8);
	PUT(a, 0x48, 0x81, 0xc4); /* add rsp, FRAME */
	put_u32(a, c->frame);
	c->ret = (uint16_t)((uint64_t)(uintptr_t)a->at - c->start);
	PUT(a, 0xc3);
	c->size = (uint32_t)((uint64_t)(uintptr_t)a->at - c->start);
	for (uint64_t i = 0; i < c->size; i += UNIT)
		toyjit_region.units[(c->start + i - toyjit_region.start) / UNIT] = c;
	return c;
}

static uint8_t *place(void)
{
	uint8_t *ret = next_code;

	next_code += 4 * UNIT;
	return ret;
}

/* --- moving --- */

/* Moves the description of a piece of code, with everything that it leads to. At any moment one of
 * the two copies can be found, and is complete. */
static struct code *move(struct code *c)
{
	struct function *f = copy(c->function, sizeof(*f)), *old = c->function;
	struct lines *l = copy(c->lines, sizeof(*l)), *old_lines = c->lines;
	struct code *new = copy(c, sizeof(*c));

	f->name = strdup(old->name);
	f->source = strdup(old->source);
	new->function = f;
	new->lines = l;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	for (uint64_t i = 0; i < c->size; i += UNIT)
		toyjit_region.units[(c->start + i - toyjit_region.start) / UNIT] = new;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	destroy((char *)(uintptr_t)old->name, strlen(old->name));
	destroy((char *)(uintptr_t)old->source, strlen(old->source));
	destroy(old, sizeof(*old));
	destroy(old_lines, sizeof(*old_lines));
	destroy(c, sizeof(*c));
	return new;
}

static void drop(struct code *c)
{
	for (uint64_t i = 0; i < c->size; i += UNIT)
		toyjit_region.units[(c->start + i - toyjit_region.start) / UNIT] = NULL;
	memset((void *)(uintptr_t)c->start, 0xcc, c->size);
	destroy((char *)(uintptr_t)c->function->name, strlen(c->function->name));
	destroy((char *)(uintptr_t)c->function->source, strlen(c->function->source));
	destroy(c->function, sizeof(*c->function));
	destroy(c->lines, sizeof(*c->lines));
	destroy(c, sizeof(*c));
}

/* --- the program --- */

#define DEPTH 10

static struct code *all[8];
enum { ALPHA, BETA, GAMMA, DOWN, CODES };
static unsigned depth;

#ifdef TOYJIT_LOOP
const char toyjit_loop = 1;
extern const uint8_t toyjit_saved[], toyjit_return[], toyjit_end[];

/* Its prologue is like that of the code. */
__asm__(".text\n"
	".globl toyjit_enter\n"
	".type toyjit_enter, @function\n"
	"toyjit_enter:\n"
	".byte 0x48, 0x81, 0xec; .long 40\n" /* sub rsp, 40 */
	"mov %rbp, 32(%rsp)\n"
	"toyjit_saved:\n"
	"mov $0x7654321, %rbp\n"
	"call *%rdi\n"
	"mov 32(%rsp), %rbp\n"
	"add $40, %rsp\n"
	"toyjit_return:\n"
	"ret\n"
	"toyjit_end:\n"
	".size toyjit_enter, .-toyjit_enter\n");

static void describe_enter(void)
{
	static struct function enter = { "enter", "/toy/enter.toy" };
	static struct lines lines = { .bytes = sizeof(lines) - 8, .count = 1 };
	static struct code code;
	const uint8_t *start = (const uint8_t *)(uintptr_t)toyjit_enter;

	lines.of[0].end = (uint32_t)(toyjit_end - start);
	lines.of[0].line = 7;
	code = (struct code){ .start = (uint64_t)(uintptr_t)start,
			      .size = lines.of[0].end,
			      .frame = 40,
			      .saved = (uint16_t)(toyjit_saved - start),
			      .ret = (uint16_t)(toyjit_return - start),
			      .serial = 1ull << 40,
			      .function = &enter,
			      .lines = &lines };
	toyjit_region.enter = &code;
}
#else
__attribute__((noinline)) void toyjit_enter(uint64_t start)
{
	((void (*)(void))(uintptr_t)start)();
	__asm__ volatile("" ::: "memory"); /* no tail call */
}

static void describe_enter(void)
{
}
#endif

/* Native code between two pieces of JIT code. Meanwhile their descriptions move. */
__attribute__((noinline)) static void call_gamma(void)
{
	for (int i = 0; i < CODES; i++)
		all[i] = move(all[i]);
	toyjit_enter(all[GAMMA]->start);
	__asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) static void call_down(void)
{
	if (++depth < DEPTH)
		toyjit_enter(all[DOWN]->start);
	else
		toyjit_enter(all[GAMMA]->start);
	depth--;
	__asm__ volatile("" ::: "memory");
}

static void make_all(void)
{
	struct assembler a = begin("gamma", "/toy/two.toy", 24, place());

	spin(&a, spins);
	line(&a, 30);
	spin(&a, spins);
	/* gamma calls tiny, which calls least; both are inlined. */
	line_in(&a, 80, inlined(&a, inlined(&a, 0, 31, "tiny"), 70, "least"));
	all[GAMMA] = end(&a);
	a = begin("beta", "/toy/one.toy", 4104, place());
	spin(&a, spins);
	line(&a, 20);
	call(&a, (const void *)(uintptr_t)call_gamma);
	line(&a, 21);
	all[BETA] = end(&a);
	a = begin("alpha", "/toy/one.toy", 72, place());
	line(&a, 9);
	call(&a, (const void *)(uintptr_t)all[BETA]->start);
	line(&a, 10);
	all[ALPHA] = end(&a);
	a = begin("down", "/toy/down.toy", 1000, place());
	spin(&a, 8);
	line(&a, 50);
	call(&a, (const void *)(uintptr_t)call_down);
	line(&a, 51);
	all[DOWN] = end(&a);
}

/* Made, run, and freed. */
__attribute__((noinline)) static void run_brief(uint8_t *where)
{
	struct assembler a = begin("brief", "/toy/brief.toy", 136, where);

	line(&a, 39);
	spin(&a, spins);
	line(&a, 40);

	struct code *c = end(&a);

	toyjit_enter(c->start);
	drop(c);
}

/* Calls native code that was never sampled before. */
__attribute__((noinline)) static void run_late(const char *library, uint8_t *where)
{
	void *loaded = dlopen(library, RTLD_NOW);
	void *late = loaded ? dlsym(loaded, "late") : NULL;

	if (!late)
		abort();
	struct assembler a = begin("caller", "/toy/late.toy", 520, where);

	line(&a, 59);
	call(&a, late);
	line(&a, 60);

	struct code *c = end(&a);

	toyjit_enter(c->start);
	drop(c);
}

int main(int argc, char **argv)
{
	const time_t until = time(NULL) + (argc > 1 ? atoi(argv[1]) : 1);

	if (argc > 2)
		spins = (uint32_t)atoi(argv[2]);
	uint8_t *region = mmap(NULL, REGION, PROT_READ | PROT_WRITE | PROT_EXEC,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (region == MAP_FAILED)
		return 1;
	next_code = region;
	toyjit_region.start = (uint64_t)(uintptr_t)region;
	toyjit_region.size = REGION;
	toyjit_region.units = allocate(REGION / UNIT * sizeof(*toyjit_region.units));
	describe_enter();
	make_all();

	uint8_t *brief = place();

	/* For `live`. */
	if (write(STDOUT_FILENO, "runs\n", 5) != 5)
		return 1;
	do {
		toyjit_enter(all[ALPHA]->start);
		toyjit_enter(all[DOWN]->start);
		run_brief(brief);
	} while (time(NULL) <= until);
	for (int i = 3; i < argc; i++)
		run_late(argv[i], brief);
	return toyjit_mark[0] != 't';
}
