/* SPDX-License-Identifier: Apache-2.0 */
/*
 * As much of an interpreter as prof-symd looks at, of each way in which builds differ. make.sh
 * beside this builds it, and puts the files into tests/fuzz/corpus/runtime.
 *
 *   FAKE_VERSION  the minor version
 *   FAKE_STATIC   it has what it calls, and exports nothing
 *   FAKE_STATE    what PyGILState_GetThisThreadState does: 1 a key alone (3.6), 2 a key in a
 * Py_tss_t by CPython's function, 3 by the C library's, 4 by way of another function, 5 a
 * thread-local variable, 6 by functions of which the first says whether there is a key
 *   FAKE_TAILS    the loop is a table of functions
 *   FAKE_HIDDEN   a program that exports nothing: 1 as it is; 2 the loop has no table; 3 its two
 * users of the thread state take it from two places
 *   FAKE_COLD     compilers that optimize move its texts out of their functions
 */
#include <stddef.h>
#include <stdint.h>

#ifndef FAKE_FREE_THREADED
#define FAKE_FREE_THREADED 0
#endif
#define EXPORT __attribute__((visibility("default")))

void *pthread_getspecific(unsigned key);
void *work(int);

struct tss {
	int is_initialized;
	unsigned key;
};

struct runtime {
	char cookie[8];
	uint64_t words[95];
	void *interpreter;
	struct tss key;
};

/* _Py_DebugOffsets: of the thread state, frames, code objects, bytes and strings. */
#define FRAME(size, owner) (size), 8, 0, 56, (size)-8, (owner)
#define CODE(size) (size), 112, 120, 128, 136, 68, 52, 96, 104, (size)-8
#define TEXTS 40, 16, 32, 64, 32, 16, 40
#define FRAME_COPIES(size) FRAME(size, 78), 64, 72
#define CODE_COPIES(size) CODE(size), (size)-16
#if FAKE_VERSION == 15
#define OFFSETS [25] = 72, [38] = FRAME_COPIES(88), [46] = CODE_COPIES(224), [85] = TEXTS
#elif FAKE_VERSION == 14
#define OFFSETS [25] = 72, [30] = FRAME_COPIES(88), [38] = CODE_COPIES(224), [73] = TEXTS
#elif FAKE_VERSION == 13
#define OFFSETS [22] = 72, [27] = FRAME(80, 70), [33] = CODE(208), [63] = TEXTS
#else
#define OFFSETS 0
#endif

EXPORT struct runtime _PyRuntime = { "xdebugpy",
				     { 3u << 24 | FAKE_VERSION << 16, FAKE_FREE_THREADED, OFFSETS },
				     &_PyRuntime,
				     { 1, 3 } };
#if FAKE_VERSION >= 11
EXPORT const uint32_t Py_Version = 3u << 24 | FAKE_VERSION << 16 | 2 << 8 | 0xf0;
#endif
#define STRING(x) #x
#define TEXT(x) STRING(x)
EXPORT const char *const fake_strings[] = { ".cpython-3" TEXT(FAKE_VERSION) "-x86_64-linux-gnu.so",
					    "3." TEXT(FAKE_VERSION) ".7" };

struct member {
	const char *name;
	int type;
	ptrdiff_t offset;
	int flags;
	const char *doc;
};

#ifndef FAKE_ARGCOUNT
#define FAKE_ARGCOUNT 16
#endif
static struct member members[24] = { { "co_argcount", 1, FAKE_ARGCOUNT, 1, 0 },
				     { "co_name", 6, 104, 1, 0 } };
EXPORT struct {
	uintptr_t words[30];
	struct member *members;
	uintptr_t more[40];
} PyCode_Type = { { 1 }, members, { 0 } };

#if FAKE_STATE == 1
static unsigned key = 3;
EXPORT __attribute__((noinline)) void *PyThread_get_key_value(unsigned k)
{
	return pthread_getspecific(k);
}
EXPORT void *PyGILState_GetThisThreadState(void)
{
	return _PyRuntime.interpreter ? PyThread_get_key_value(key) : NULL;
}
EXPORT void fake_set(unsigned k)
{
	key = k;
}
#elif FAKE_STATE == 2 || FAKE_STATE == 4 || FAKE_STATE == 6
EXPORT __attribute__((noinline)) void *PyThread_tss_get(struct tss *t)
{
	return pthread_getspecific(t->key);
}
#endif
#if FAKE_STATE == 2
EXPORT void *PyGILState_GetThisThreadState(void)
{
	return _PyRuntime.interpreter ? PyThread_tss_get(&_PyRuntime.key) : NULL;
}
#elif FAKE_STATE == 3
EXPORT void *PyGILState_GetThisThreadState(void)
{
	return _PyRuntime.interpreter ? pthread_getspecific(_PyRuntime.key.key) : NULL;
}
#elif FAKE_STATE == 4
static __attribute__((noinline, noclone)) void *by_way_of(struct runtime *r)
{
	__asm__ volatile("");
	return r->interpreter ? PyThread_tss_get(&r->key) : NULL;
}
EXPORT void *PyGILState_GetThisThreadState(void)
{
	void *s = by_way_of(&_PyRuntime);

	__asm__ volatile("" : : "r"(s));
	return s;
}
#elif FAKE_STATE == 6
static __attribute__((noinline)) int is_there(struct tss *t)
{
	return t->is_initialized;
}
static __attribute__((noinline)) void *of_key(struct tss *t)
{
	return PyThread_tss_get(t);
}
EXPORT void *PyGILState_GetThisThreadState(void)
{
	struct runtime *r = &_PyRuntime;

	if (!is_there(&r->key))
		return NULL;
	return of_key(&r->key);
}
#elif FAKE_STATE == 5
#ifdef FAKE_EXPORTED
EXPORT
#else
static
#endif
_Thread_local void *state;
static _Thread_local void *other;
EXPORT void *PyGILState_GetThisThreadState(void)
{
	return state;
}
EXPORT void fake_set(void *s)
{
	other = state;
	state = s;
}
EXPORT void *fake_other(void)
{
	return other;
}
#endif

#ifdef FAKE_STATIC
#ifdef FAKE_HIDDEN
/* As glibc's begins. */
__asm__(".globl pthread_getspecific\n.type pthread_getspecific, @function\npthread_getspecific:\n"
	".cfi_startproc\ncmp $31, %edi\nja 1f\nmov %edi, %eax\nadd $49, %rax\nshl $4, %rax\n"
	"add %fs:16, %rax\nmov 8(%rax), %rax\nret\n1: xor %eax, %eax\nret\n.cfi_endproc\n");
#else
__attribute__((noinline, noclone)) void *pthread_getspecific(unsigned key)
{
	__asm__ volatile("");
	return (void *)(uintptr_t)key;
}
#endif
#endif
#if defined(FAKE_STATIC) || defined(FAKE_HIDDEN)
__attribute__((noinline, noclone)) void *work(int n)
{
	__asm__ volatile("");
	return (void *)(uintptr_t)n;
}
#endif

#ifdef FAKE_HIDDEN
EXPORT const char *const fake_hidden_strings[] = { "<frozen importlib._bootstrap>",
						   "__build_class__: func must be a function" };
#ifdef FAKE_COLD
__attribute__((cold)) /* what calls it is moved out of its function */
#endif
static __attribute__((noinline, noclone)) void
complain(const char *text)
{
	__asm__ volatile("" : : "r"(text) : "memory");
}
#if FAKE_STATE != 5
static __attribute__((noinline, noclone)) void *get(struct tss *t)
{
	return t->is_initialized ? pthread_getspecific(t->key) : NULL;
}
static struct tss other = { 1, 4 };
#define GET get(&_PyRuntime.key)
#define GET_AGAIN get(FAKE_HIDDEN == 3 ? &other : &_PyRuntime.key)
#else
#define GET state
#define GET_AGAIN state
#endif
void fake_set_other(unsigned);
void fake_set_other(unsigned k)
{
	_PyRuntime.words[90] = k;
#if FAKE_STATE != 5
	other.key = k;
#endif
}
EXPORT int PyGILState_Ensure(void)
{
	int *tcur = GET;

	if (!tcur) {
		complain("Couldn't create thread-state for new thread");
		return 1;
	}
	return ++*tcur;
}
EXPORT void PyGILState_Release(int how)
{
	int *tcur = GET_AGAIN;

	if (!tcur)
		complain("auto-releasing thread-state, but no thread-state for this thread");
	else
		*tcur -= how;
}
#define BUILD_CLASS(n) \
	if ((n) < 0) \
	complain("__build_class__ not found")
#define NO_LOCALS(n) \
	if ((n) < -1) \
	complain("no locals when deleting %R")
#define SAY_NAME complain("_PyEval_EvalFrameDefault")
#else
#define BUILD_CLASS(n)
#define NO_LOCALS(n)
#define SAY_NAME
#endif

#ifdef FAKE_TAILS
#define OP(n) \
	static void *op##n(int i) \
	{ \
		return work(i + 0x##n); \
	}
#define OPS(n) OP(n##0) OP(n##1) OP(n##2) OP(n##3) OP(n##4) OP(n##5) OP(n##6) OP(n##7)
#define ALL_OPS OPS(1) OPS(2) OPS(3) OPS(4) OPS(5) OPS(6) OPS(7) OPS(8) struct runtime
#define NAMES(n) op##n##0, op##n##1, op##n##2, op##n##3, op##n##4, op##n##5, op##n##6, op##n##7

ALL_OPS;
static void *op_last(int i)
{
	BUILD_CLASS(i);
	NO_LOCALS(i);
	return work(i);
}

static void *(*table[256])(int) = { NAMES(1),	    NAMES(2), NAMES(3),
				    NAMES(4),	    NAMES(5), NAMES(6),
				    NAMES(7),	    NAMES(8), [64 ... 254] = op10,
				    [255] = op_last };

static __attribute__((noinline)) void *first(int n)
{
	return table[n & 255](n);
}
EXPORT void fake_set_table(int n)
{
	table[n] = op20;
}
EXPORT void *_PyEval_EvalFrameDefault(int n)
{
	void *p = first(n);

	SAY_NAME;
	__asm__ volatile("" : : "r"(p));
	return p;
}
#elif defined(FAKE_HIDDEN) && FAKE_HIDDEN != 2
#define PLACE(n) \
	place##n : p = work(*next + 0x##n); \
	goto *places[*++next & 255];
#define PLACES(n) \
	PLACE(n##0) \
	PLACE(n##1) PLACE(n##2) PLACE(n##3) PLACE(n##4) PLACE(n##5) PLACE(n##6) PLACE(n##7)
#define AT(n) \
	&&place##n##0, &&place##n##1, &&place##n##2, &&place##n##3, &&place##n##4, &&place##n##5, \
		&&place##n##6, &&place##n##7
EXPORT void *_PyEval_EvalFrameDefault(int *next)
{
	static const void *const places[256] = { AT(1), AT(2), AT(3),
						 AT(4), AT(5), AT(6),
						 AT(7), AT(8), [64 ... 255] = &&end };
	void *p = NULL;

	BUILD_CLASS(*next);
	NO_LOCALS(*next);
	goto *places[*next & 255];
	PLACES(1)
	PLACES(2)
	PLACES(3) PLACES(4) PLACES(5) PLACES(6) PLACES(7) PLACES(8) end : return p;
}
#else
EXPORT void *_PyEval_EvalFrameDefault(int n)
{
	void *p = NULL;

	BUILD_CLASS(n);
	NO_LOCALS(n);
	while (n--) {
		p = work(n);
		if (__builtin_expect(!p, 0))
			work(-n);
	}
	return p;
}
#endif
