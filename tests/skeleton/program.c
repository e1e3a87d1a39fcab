/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The toy: an interpreter with one thread. `program SECONDS [SPINS]` runs a program of two
 * functions, which calls a third by way of native code, and a function that is freed as soon as it
 * ran.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* A string in every build of the toy, and in no other file. */
const char toy_mark[] = "toy: no function of that number";

enum kind { SPIN, CALL, NATIVE, RETURN };

struct operation {
	enum kind kind;
	const struct function *function;
	void (*native)(void);
};

struct lines {
	uint64_t bytes;
	struct {
		uint32_t end, line;
	} of[4]; /* by position */
};

struct function {
	uint64_t serial; /* no other has or had it; not 0 */
	const char *name, *source;
	const struct lines *lines;
	const struct operation *code;
	const struct function *unit; /* its unit, or NULL */
};

struct frame {
	struct frame *previous;
	const struct function *function;
	uint64_t position; /* in its code */
	void *entry;	   /* in the C frame that runs it; NULL: as the previous */
};

static int spins = 2000000;
struct frame *toy_top;
#ifdef TOY_CHAINS
const char toy_chains = 1; /* `entry` is not an address */
#define ENTRY(here) ((void)(here), (void *)1)
#else
#define ENTRY(here) (here)
#endif
void toy_loop(struct frame *first);

#define LINES(a, b, c) \
	{ \
		.bytes = 24, .of = { { 1, a }, { 2, b }, { 3, c } } \
	}
static const struct lines alpha_lines = LINES(10, 11, 11);
static const struct lines beta_lines = LINES(20, 21, 22);
static const struct lines gamma_lines = LINES(30, 31, 32);
static const struct lines brief_lines = LINES(40, 41, 41);

/* Has only a name, which comes before those of its functions. */
static const struct function one = { 1ull << 40, "one.", NULL, NULL, NULL, NULL };

static const struct operation gamma_code[] = { { .kind = SPIN },
					       { .kind = SPIN },
					       { .kind = RETURN } };
static const struct function gamma_function = { 3,	    "gamma", "/toy/two.toy", &gamma_lines,
						gamma_code, NULL };

static struct frame *make_frame(const struct function *f)
{
	struct frame *ret = calloc(1, sizeof(*ret));

	if (!ret)
		abort();
	ret->function = f;
	return ret;
}

/* The loop calls nothing while it has no frame: without addresses, each loop below native code
 * counts as one that runs a chain. */
#define RUN(f) \
	do { \
		struct frame *first = make_frame(f); \
\
		toy_loop(first); \
		free(first); \
	} while (0)

__attribute__((noinline)) static void call_gamma(void)
{
	RUN(&gamma_function);
	__asm__ volatile("" ::: "memory"); /* no tail call */
}

static const struct operation beta_code[] = { { .kind = SPIN },
					      { .kind = NATIVE, .native = call_gamma },
					      { .kind = RETURN } };
static const struct function beta = { 2, "beta", "/toy/one.toy", &beta_lines, beta_code, &one };
static const struct operation alpha_code[] = { { .kind = CALL, .function = &beta },
					       { .kind = RETURN } };
static const struct function alpha = { 1, "alpha", "/toy/one.toy", &alpha_lines, alpha_code, &one };
static const struct operation brief_code[] = { { .kind = SPIN }, { .kind = RETURN } };

static void push(struct frame *new, void *entry)
{
	new->previous = toy_top;
	new->entry = entry;
	toy_top = new;
}

__attribute__((noinline)) void toy_loop(struct frame *first)
{
	struct frame *old = toy_top;
	char here;
	void *entry = ENTRY(&here);

	__asm__ volatile("" : "+r"(entry));
	push(first, entry);
	while (toy_top != old) {
		struct frame *now = toy_top;
		const struct operation *o = &now->function->code[now->position];

		switch (o->kind) {
		case SPIN:
			for (volatile int i = 0; i < spins; i++)
				;
			now->position++;
			break;
		case CALL: /* in the same C frame: when it returns, we go on */
			push(make_frame(o->function), NULL);
			break;
		case NATIVE:
			o->native();
			now->position++;
			break;
		case RETURN:
			toy_top = now->previous;
			if (now == first)
				break;
			toy_top->position++;
			free(now);
			break;
		}
	}
}

/* Made, run, and freed. */
__attribute__((noinline)) static void run_brief(uint64_t serial)
{
	char *name = strdup("brief"), *source = strdup("/toy/brief.toy");
	struct lines *lines = malloc(sizeof(*lines));
	struct function *f = malloc(sizeof(*f));

	if (!name || !source || !lines || !f)
		abort();
	*lines = brief_lines;
	*f = (struct function){ serial, name, source, lines, brief_code, NULL };
	RUN(f);
	explicit_bzero(name, strlen(name));
	explicit_bzero(source, strlen(source));
	explicit_bzero(lines, sizeof(*lines));
	explicit_bzero(f, sizeof(*f));
	free(name);
	free(source);
	free(lines);
	free(f);
}

int main(int argc, char **argv)
{
	const time_t end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 1);

	if (argc > 2)
		spins = atoi(argv[2]);
	/* For `live`. */
	if (write(STDOUT_FILENO, "runs\n", 5) != 5)
		return 1;
	for (uint64_t serial = 4; time(NULL) <= end; serial++) {
		RUN(&alpha);
		run_brief(serial);
	}
	return toy_mark[0] != 't';
}
