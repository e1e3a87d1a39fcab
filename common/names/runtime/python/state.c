/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the thread state by following PyGILState_GetThisThreadState(), along the path of a thread
 * that has one.
 *
 *  - Up to 3.14 it passes a key to pthread_getspecific(), or to CPython's wrappers of that. The key
 *    is in a Py_tss_t after an int (3.7 to 3.14), or alone (3.6).
 *  - From 3.15 on it reads a thread-local variable. (Since 3.12 there is another such variable, for
 *    the attached thread state. That one is empty while a thread has released the GIL and
 *    computes.)
 *  - Up to 3.11 a thread that runs several interpreters has a state for each, and the key leads to
 *    the first. So the state that has the GIL is found as well (`holder`), by what
 *    _PyThreadState_UncheckedGet() reads. From 3.12 on the key is set with each change.
 *
 * Following means: the values of registers are tracked as far as the file determines them, and
 * calls of functions without names are also followed. Conditional jumps are not taken at first. If
 * that gives no answer, one of the first jumps is taken, each in turn: compilers that do not
 * optimize put the exit before the rest.
 *
 * Sources: Intel's manual, volume 2; the psABI's chapter on thread-local storage; "ELF Handling For
 * Thread-Local Storage".
 */
#include <Zydis/Zydis.h>
#include "common/names/runtime/python/python.h"

#define MAX_STEPS 64 /* instructions of one function */
#define MAX_DEPTH 3  /* of nested calls */
#define MAX_TAKEN 3  /* how many of the function's first conditional jumps are tried */
#define STUB 32	     /* bytes of a PLT slot */
#define SLOTS 8
#define FIRST_TLS 15 /* the first minor version with a thread-local variable */

enum kind {
	UNKNOWN,
	ADDRESS,   /* an address in the image */
	LOADED,	   /* the word at this address while the program runs */
	TP,	   /* the TLS base plus a displacement */
	TP_OFFSET, /* an offset from the TLS base, in the GOT at this address */
	TLS_BLOCK, /* the variable of the module and offset at this address, plus a displacement */
	TLS_DESC,  /* the offset from the TLS descriptor at this address */
	TLS_VALUE, /* the contents of the thread-local variable in `answer` */
};

struct value {
	enum kind kind;
	uint64_t at;
	int64_t add;
};

struct state_follow {
	struct elfview *im;
	ZydisDecoder decoder;
	struct value reg[16];
	struct value slot[SLOTS]; /* words below RBP, which only unoptimized code uses */
	struct python_config answer;
	int taken; /* number of the conditional jump that is taken; 0: none */
	bool answered;
	bool nameless;	    /* the file has no symbols */
	bool first_tls;	    /* the first thread-local variable that is read is the answer */
	uint64_t loaded_at; /* the function returns the word at this address */
};

static int gpr_of(ZydisRegister r)
{
	ZydisRegister full = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, r);

	return ZydisRegisterGetClass(full) == ZYDIS_REGCLASS_GPR64 ? ZydisRegisterGetId(full) : -1;
}

enum { RAX = 0, RBP = 5, RDI = 7 };

/* Returns the tracked stack word of an operand; NULL: none. */
static struct value *slot_of(struct state_follow *f, const ZydisDecodedOperand *op)
{
	int64_t at = -op->mem.disp.value / 8 - 1;

	if (op->type != ZYDIS_OPERAND_TYPE_MEMORY || op->mem.index != ZYDIS_REGISTER_NONE ||
	    gpr_of(op->mem.base) != RBP || op->mem.disp.value % 8 || at < 0 || at >= SLOTS)
		return NULL;
	return &f->slot[at];
}

static void set(struct state_follow *f, const ZydisDecodedOperand *op, struct value v)
{
	int reg = op->type == ZYDIS_OPERAND_TYPE_REGISTER ? gpr_of(op->reg.value) : -1;

	if (reg >= 0)
		f->reg[reg] = v;
}

/* Returns the word at an address in the running program. */
static struct value load(struct state_follow *f, uint64_t address)
{
	struct elfview_value w;

	if (elfview_word(f->im, address, &w) != 0)
		return (struct value){ .kind = LOADED, .at = address }; /* .bss */
	if (w.kind == ELFVIEW_ADDRESS)
		return (struct value){ .kind = ADDRESS, .at = w.value };
	if (w.kind == ELFVIEW_TPOFF)
		return (struct value){ .kind = TP_OFFSET, .at = address };
	return (struct value){ .kind = LOADED, .at = address };
}

static struct value tls_value(struct state_follow *f, enum python_thread thread, uint64_t state,
			      int64_t add)
{
	if (add < 0 || add > UINT16_MAX)
		return (struct value){ 0 };
	f->answer.thread = (uint8_t)thread;
	f->answer.state = state;
	f->answer.tls_add = (uint16_t)add;
	f->answered |= f->first_tls;
	return (struct value){ .kind = TLS_VALUE };
}

/* Returns the value that a memory operand of a move reads. */
static struct value read_memory(struct state_follow *f, const ZydisDecodedInstruction *in,
				const ZydisDecodedOperand *op, uint64_t pc)
{
	struct value base = { .kind = UNKNOWN };
	int reg;

	if (op->mem.index != ZYDIS_REGISTER_NONE)
		return base;
	if (op->mem.base == ZYDIS_REGISTER_RIP)
		return load(f, pc + in->length + (uint64_t)op->mem.disp.value);
	if (op->mem.base == ZYDIS_REGISTER_NONE) {
		if (op->mem.segment != ZYDIS_REGISTER_FS)
			return load(f, (uint64_t)op->mem.disp.value);
		if (op->mem.disp.value == 0)
			return (struct value){ .kind = TP };
		return tls_value(f, PYTHON_TLS_OFFSET, (uint64_t)op->mem.disp.value, 0);
	}
	if (slot_of(f, op))
		return *slot_of(f, op);
	reg = gpr_of(op->mem.base);
	if (reg < 0)
		return base;
	base = f->reg[reg];
	if (op->mem.segment == ZYDIS_REGISTER_FS) {
		if (op->mem.disp.value == 0 && base.kind == TP_OFFSET)
			return tls_value(f, PYTHON_TLS_GOT, base.at, 0);
		if (op->mem.disp.value == 0 && base.kind == TLS_DESC)
			return tls_value(f, PYTHON_TLS_GOT, base.at + 8, 0);
		return (struct value){ 0 };
	}
	switch (base.kind) {
	case ADDRESS:
		return load(f, base.at + (uint64_t)op->mem.disp.value);
	case TP:
		return tls_value(f, PYTHON_TLS_OFFSET, (uint64_t)(base.add + op->mem.disp.value),
				 0);
	case TP_OFFSET: /* the TLS base was added already: see ADD */
		if (base.add && op->mem.disp.value == 0)
			return tls_value(f, PYTHON_TLS_GOT, base.at, 0);
		break;
	case TLS_BLOCK:
		return tls_value(f, PYTHON_TLS_MODULE, base.at, base.add + op->mem.disp.value);
	default:
		break;
	}
	return (struct value){ 0 };
}

static struct value address_of(struct state_follow *f, const ZydisDecodedInstruction *in,
			       const ZydisDecodedOperand *op, uint64_t pc)
{
	struct value v = { 0 };
	int reg;

	if (op->mem.index != ZYDIS_REGISTER_NONE)
		return v;
	if (op->mem.base == ZYDIS_REGISTER_RIP)
		return (struct value){ .kind = ADDRESS,
				       .at = pc + in->length + (uint64_t)op->mem.disp.value };
	if (op->mem.base == ZYDIS_REGISTER_NONE)
		return (struct value){ .kind = ADDRESS, .at = (uint64_t)op->mem.disp.value };
	reg = gpr_of(op->mem.base);
	if (reg < 0)
		return v;
	v = f->reg[reg];
	if (v.kind == ADDRESS)
		v.at += (uint64_t)op->mem.disp.value;
	else if (v.kind == TP || v.kind == TLS_BLOCK)
		v.add += op->mem.disp.value;
	else
		v.kind = UNKNOWN;
	return v;
}

static bool decode(struct state_follow *f, uint64_t pc, ZydisDecodedInstruction *in,
		   ZydisDecodedOperand op[static ZYDIS_MAX_OPERAND_COUNT])
{
	uint8_t bytes[ZYDIS_MAX_INSTRUCTION_LENGTH];
	size_t n = sizeof(bytes);

	while (n > 0 && elfview_read(f->im, pc, bytes, n) != 0)
		n--; /* the segment may end here */
	return n > 0 && ZYAN_SUCCESS(ZydisDecoderDecodeFull(&f->decoder, bytes, n, in, op));
}

/* Whether this is the C library's pthread_getspecific(), in a program without symbols. It compares
 * the key with the number of keys in struct pthread, which it finds at %fs:16. */
static bool gets_specific(struct state_follow *f, uint64_t pc)
{
	ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction in;
	bool compares = false, own = false;

	for (int i = 0; i < 12 && decode(f, pc, &in, op) && in.meta.category != ZYDIS_CATEGORY_RET;
	     i++, pc += in.length) {
		compares |= in.mnemonic == ZYDIS_MNEMONIC_CMP &&
			    op[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
			    op[0].reg.value == ZYDIS_REGISTER_EDI &&
			    op[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE && op[1].imm.value.u == 31;
		own |= op[1].type == ZYDIS_OPERAND_TYPE_MEMORY &&
		       op[1].mem.segment == ZYDIS_REGISTER_FS && op[1].mem.disp.value == 16;
	}
	return compares && own;
}

/* Gives the name of a called function, from its own symbol or its PLT slot; "": unknown. */
static void name_of(struct state_follow *f, uint64_t pc, char ret[static ELFVIEW_NAME])
{
	static const char *const own[] = { "PyThread_tss_get", "PyThread_tss_is_created",
					   "PyThread_get_key_value", "pthread_getspecific",
					   "__pthread_getspecific" };
	ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction in;
	struct elfview_symbol s;
	struct elfview_value w;

	ret[0] = '\0';
	for (size_t i = 0; !f->nameless && i < sizeof(own) / sizeof(own[0]); i++)
		if (elfview_defined(f->im, own[i], &s) == 0 && s.value == pc)
			memcpy(ret, own[i], strlen(own[i]) + 1);
	for (uint64_t at = pc; !ret[0] && at < pc + STUB && decode(f, at, &in, op);
	     at += in.length) {
		if (in.mnemonic == ZYDIS_MNEMONIC_JMP && op[0].type == ZYDIS_OPERAND_TYPE_MEMORY &&
		    op[0].mem.base == ZYDIS_REGISTER_RIP &&
		    elfview_word(f->im, at + in.length + (uint64_t)op[0].mem.disp.value, &w) == 0)
			memcpy(ret, w.name, sizeof(w.name));
		if (in.mnemonic != ZYDIS_MNEMONIC_ENDBR64)
			break;
	}
	if (!ret[0] && f->reg[RDI].kind == LOADED && gets_specific(f, pc))
		memcpy(ret, "pthread_getspecific", sizeof("pthread_getspecific"));
}

static void answer_key(struct state_follow *f, uint64_t address)
{
	f->answer.thread = PYTHON_TSD;
	f->answer.state = address;
	f->answer.tls_add = 0;
	f->answered = true;
}

static void follow(struct state_follow *f, uint64_t pc, int depth);

static void lose_registers(struct state_follow *f)
{
	static const int lost[] = { 0, 1, 2, 6, 7, 8, 9, 10, 11 }; /* caller-saved registers */

	for (size_t i = 0; i < sizeof(lost) / sizeof(lost[0]); i++)
		f->reg[lost[i]].kind = UNKNOWN;
}

/* Handles the call of a function by its name. */
static void take_named(struct state_follow *f, const char *name)
{
	struct value first = f->reg[RDI];

	lose_registers(f);
	if (strcmp(name, "__tls_get_addr") == 0 && first.kind == ADDRESS)
		f->reg[RAX] = (struct value){ .kind = TLS_BLOCK, .at = first.at };
	else if (strcmp(name, "PyThread_tss_get") == 0 && first.kind == ADDRESS)
		answer_key(f, first.at + 4);
	else if ((strcmp(name, "PyThread_get_key_value") == 0 ||
		  strcmp(name, "pthread_getspecific") == 0 ||
		  strcmp(name, "__pthread_getspecific") == 0) &&
		 first.kind == LOADED)
		answer_key(f, first.at);
}

/* Handles a call, or a jump to another function. */
static void take_call(struct state_follow *f, uint64_t target, int depth)
{
	struct value slot[SLOTS];
	char name[ELFVIEW_NAME];

	name_of(f, target, name);
	if (!name[0] && (f->reg[RDI].kind == ADDRESS || f->reg[RDI].kind == LOADED) &&
	    depth + 1 < MAX_DEPTH) {
		/* The callee has its own frame; restore ours when it returns. */
		memcpy(slot, f->slot, sizeof(slot));
		memset(f->slot, 0, sizeof(f->slot));
		follow(f, target, depth + 1);
		memcpy(f->slot, slot, sizeof(slot));
		lose_registers(f);
	} else {
		take_named(f, name);
	}
}

/* Like take_call, through a word of the GOT. Returns false if the target is unknown. */
static bool take_indirect(struct state_follow *f, uint64_t slot, int depth)
{
	struct elfview_value w;

	if (elfview_word(f->im, slot, &w) != 0)
		return false;
	if (w.kind == ELFVIEW_ADDRESS)
		take_call(f, w.value, depth);
	else
		take_named(f, w.name);
	return true;
}

/* Returns the value that an ADD adds. */
static struct value addend(struct state_follow *f, const ZydisDecodedInstruction *in,
			   const ZydisDecodedOperand *op, uint64_t pc)
{
	if (op->type == ZYDIS_OPERAND_TYPE_IMMEDIATE)
		return (struct value){ .kind = ADDRESS, .at = op->imm.value.u };
	if (op->type == ZYDIS_OPERAND_TYPE_MEMORY)
		return read_memory(f, in, op, pc);
	if (op->type == ZYDIS_OPERAND_TYPE_REGISTER && gpr_of(op->reg.value) >= 0)
		return f->reg[gpr_of(op->reg.value)];
	return (struct value){ 0 };
}

static struct value sum(struct value a, struct value b)
{
	if (a.kind == ADDRESS && b.kind == ADDRESS)
		return (struct value){ .kind = ADDRESS, .at = a.at + b.at };
	if ((a.kind == TP && b.kind == TP_OFFSET) || (a.kind == TP_OFFSET && b.kind == TP))
		return (struct value){ .kind = TP_OFFSET,
				       .at = a.kind == TP ? b.at : a.at,
				       .add = 1 };
	return (struct value){ 0 };
}

static void step(struct state_follow *f, const ZydisDecodedInstruction *in,
		 const ZydisDecodedOperand *op, uint64_t pc)
{
	struct value v = { 0 };
	int a;

	switch (in->mnemonic) {
	case ZYDIS_MNEMONIC_MOV:
	case ZYDIS_MNEMONIC_MOVSXD:
		if (op[1].type == ZYDIS_OPERAND_TYPE_MEMORY)
			v = read_memory(f, in, &op[1], pc);
		else if (op[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE)
			v = (struct value){ .kind = ADDRESS, .at = op[1].imm.value.u };
		else if (op[1].type == ZYDIS_OPERAND_TYPE_REGISTER && gpr_of(op[1].reg.value) >= 0)
			v = f->reg[gpr_of(op[1].reg.value)];
		break;
	case ZYDIS_MNEMONIC_LEA:
		v = address_of(f, in, &op[1], pc);
		break;
	case ZYDIS_MNEMONIC_ADD:
		if (op[0].type != ZYDIS_OPERAND_TYPE_REGISTER)
			return;
		a = gpr_of(op[0].reg.value);
		if (a < 0)
			return;
		v = sum(f->reg[a], addend(f, in, &op[1], pc));
		break;
	case ZYDIS_MNEMONIC_CMP:
	case ZYDIS_MNEMONIC_TEST:
	case ZYDIS_MNEMONIC_PUSH:
		return;
	default:
		break;
	}
	if (op[0].type == ZYDIS_OPERAND_TYPE_MEMORY && slot_of(f, &op[0]))
		*slot_of(f, &op[0]) = v;
	for (unsigned i = 0; i < in->operand_count; i++)
		if (op[i].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    (op[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
			set(f, &op[i], i == 0 ? v : (struct value){ 0 });
}

static bool by_got(const ZydisDecodedOperand *op)
{
	return op->type == ZYDIS_OPERAND_TYPE_MEMORY && op->mem.base == ZYDIS_REGISTER_RIP;
}

static void follow(struct state_follow *f, uint64_t pc, int depth)
{
	ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction in;
	char name[ELFVIEW_NAME];

	for (int i = 0; i < MAX_STEPS && !f->answered && decode(f, pc, &in, op); i++) {
		uint64_t after = pc + in.length;
		bool direct = op[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE && op[0].imm.is_relative;

		switch (in.meta.category) {
		case ZYDIS_CATEGORY_RET:
			if (f->reg[RAX].kind == TLS_VALUE)
				f->answered = true;
			if (f->reg[RAX].kind == LOADED)
				f->loaded_at = f->reg[RAX].at;
			return;
		case ZYDIS_CATEGORY_CALL:
			if (direct)
				take_call(f, after + op[0].imm.value.u, depth);
			else if (by_got(&op[0]))
				take_indirect(f, after + (uint64_t)op[0].mem.disp.value, depth);
			else if (op[0].type == ZYDIS_OPERAND_TYPE_MEMORY &&
				 op[0].mem.base == ZYDIS_REGISTER_RAX &&
				 f->reg[RAX].kind == ADDRESS)
				f->reg[RAX].kind = TLS_DESC;
			else
				return;
			break;
		case ZYDIS_CATEGORY_UNCOND_BR:
			if (by_got(&op[0]))
				take_indirect(f, after + (uint64_t)op[0].mem.disp.value, depth);
			if (!direct)
				return;
			/* Continue at the target, which may be in this function or in another. */
			after += op[0].imm.value.u;
			name_of(f, after, name);
			if (name[0]) {
				take_named(f, name);
				return;
			}
			break;
		case ZYDIS_CATEGORY_COND_BR:
			if (depth == 0 && direct && f->taken-- == 1)
				after += op[0].imm.value.u;
			break;
		default:
			step(f, &in, op, pc);
			break;
		}
		pc = after;
	}
}

static void start_at(struct state_follow *f, uint64_t pc, int taken)
{
	memset(f->reg, 0, sizeof(f->reg));
	memset(f->slot, 0, sizeof(f->slot));
	f->loaded_at = 0;
	f->taken = taken;
	follow(f, pc, 0);
}

static bool start(struct state_follow *f, const char *function, int taken)
{
	struct elfview_symbol s;

	if (elfview_defined(f->im, function, &s) != 0)
		return false;
	start_at(f, s.value, taken);
	return true;
}

bool python_follow_use(struct elfview *im, uint64_t function, unsigned minor,
		       struct python_config *c)
{
	struct state_follow f = { .im = im, .nameless = true, .first_tls = minor >= FIRST_TLS };

	ZydisDecoderInit(&f.decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	start_at(&f, function, 0);
	if (!f.answered || (f.answer.thread == PYTHON_TSD) != (minor < FIRST_TLS))
		return false;
	c->thread = f.answer.thread;
	c->state = f.answer.state;
	c->tls_add = f.answer.tls_add;
	return true;
}

bool python_find_state(struct elfview *im, struct python_config *c)
{
	static const char *const functions[] = { "PyGILState_GetThisThreadState",
						 "_PyThreadState_GetCurrent",
						 "PyThreadState_GetUnchecked" };
	struct state_follow f = { .im = im };

	ZydisDecoderInit(&f.decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
		for (int taken = 0; taken <= MAX_TAKEN && !f.answered; taken++)
			start(&f, functions[i], taken);
	if (!f.answered)
		return false;
	c->thread = f.answer.thread;
	c->state = f.answer.state;
	c->tls_add = f.answer.tls_add;
	if (c->frames == PYTHON_OBJECTS || c->frames == PYTHON_CFRAMES) {
		f.answered = false;
		if (start(&f, "_PyThreadState_UncheckedGet", 0))
			c->holder = f.loaded_at;
	}
	return true;
}
