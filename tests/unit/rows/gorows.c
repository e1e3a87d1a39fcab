/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <sys/mman.h>
#include <unistd.h>
#include "tests/unit/gotable.h"
#include "common/rows/x86/go/goasm.h"
#include "common/rows/go/gorows.h"
#include "common/rows/print.h"

/* Functions like those of Go's runtime, which are analysed but never run. Their offsets differ from
 * those of every Go: g at fs:-16, g.m 24, m.curg 144, g.sched.sp 40 and pc 48. */
#define FUNCTION(name, text) \
	extern const uint8_t name##_begin[], name##_mark[], name##_end[]; \
	__asm__(".pushsection .rodata\n.intel_syntax noprefix\n" #name "_begin:\n" text #name \
		"_end:\n.att_syntax\n.popsection\n")
#define MARK(name) #name "_mark:\n"

FUNCTION(returns, "push rbp\nmov rbp, rsp\n"
		  "mov rax, fs:[-16]\nmov rbx, [rax + 24]\nmov rdx, [rbx]\n"
		  "mov fs:[-16], rdx\nmov rsp, [rdx + 40]\n" MARK(
			  returns) "call [rdi]\n"
				   "mov rax, fs:[-16]\nmov rbx, [rax + 24]\nmov rax, [rbx + 144]\n"
				   "mov rsp, [rax + 40]\nmov rbp, [rax + 72]\npop rbp\nret\n");
/* As in a shared library: a word at file offset 0x3007 gives the place of g. */
FUNCTION(shared, "mov rcx, [rip + shared_begin + 0x2007]\nmov rax, fs:[rcx]\nmov rbx, [rax + 24]\n"
		 "mov rdx, [rbx]\nmov fs:[rcx], rdx\nmov rsp, [rdx + 40]\n" MARK(
			 shared) "call [rdi]\nmov rcx, [rip + shared_begin + 0x2007]\n"
				 "mov rax, fs:[rcx]\nmov rbx, [rax + 24]\nmov rax, [rbx + 144]\n"
				 "mov rsp, [rax + 40]\nret\n");
FUNCTION(grows, "mov rdi, fs:[-16]\nmov rbx, [rdi + 24]\n"
		"mov rax, [rsp]\nmov [rdi + 48], rax\nlea rax, [rsp + 8]\nmov [rdi + 40], rax\n"
		"mov rbx, [rbx]\nmov rsp, [rbx + 40]\nmov eax, 0\nmov ebp, 0\n" MARK(
			grows) "call rax\nint3\n");
FUNCTION(calls_c, "push rbp\nmov rbp, rsp\n"
		  "mov rdi, fs:[-16]\nmov rsi, [rdi + 24]\nmov rsi, [rsi]\nmov rdx, rsp\n"
		  "mov rsp, [rsi + 40]\nsub rsp, 32\nand rsp, -16\n"
		  "mov [rsp + 16], rdi\nmov rdi, [rdi + 8]\nsub rdi, rdx\nmov [rsp + 8], rdi\n"
		  "sub rsp, 8\n" MARK(
			  calls_c) "call rax\nadd rsp, 8\n"
				   "mov rdi, [rsp + 16]\nmov rsi, [rdi + 8]\nsub rsi, [rsp + 8]\n"
				   "mov rsp, rsi\npop rbp\nret\n");
FUNCTION(clock, "push rbp\nmov rbp, rsp\nsub rsp, 16\nmov r12, rsp\n"
		"cmp rax, 0\njne 1f\nmov rsp, [rdx + 40]\n1:\nsub rsp, 16\nand rsp, -16\n" MARK(
			clock) "call rax\nmov rsp, r12\nadd rsp, 16\npop rbp\nret\n");
FUNCTION(aligned, "mov rdx, rsp\nsub rsp, 48\nand rsp, -32\nmov [rsp + 24], rdx\n"
		  "push rbx\n" MARK(aligned) "call rax\npop rbx\nmov rsp, [rsp + 24]\nret\n");
FUNCTION(entered, "push rbx\npush rbp\nmov rbp, 7\nsub rsp, 8\n" MARK(
			  entered) "call rax\nadd rsp, 8\npop rbp\npop rbx\nret\n");
FUNCTION(forks, "pop r12\nsyscall\n" MARK(forks) "push r12\nret\n");
FUNCTION(leaves, "mov rsp, [rbx]\n" MARK(leaves) "mov rbp, [rbx + 8]\nmov rbx, [rbx + 16]\n"
						 "jmp rbx\n");
FUNCTION(leaps, "mov rsp, [rbx]\nmov rbx, [rbx + 16]\n" MARK(leaps) "jmp rbx\n");
FUNCTION(endless, "1:\npush rax\njmp 1b\n" MARK(endless) "ret\n");

static struct goasm_curg curg;

/* The rule at a mark, as prof-deltas prints it. */
static const char *rule_of(const uint8_t *begin, const uint8_t *mark, const uint8_t *end,
			   int32_t delta, enum goasm_role role)
{
	static char text[PRINT_RULE_SIZE];
	const struct goasm_delta deltas[] = { { .at = 0, .delta = delta } };
	const struct goasm_row *rows;
	struct goasm *a;
	uint32_t n;

	strcpy(text, "none");
	cr_assert_eq(goasm_new(&a), 0);
	cr_assert_eq(goasm_rows(a, begin, (uint32_t)(end - begin), 0x1000, deltas, 1, role, &curg,
				&rows, &n),
		     0);
	for (uint32_t i = 0; i < n; i++) {
		if (rows[i].known)
			cr_assert(unwind_rule_valid(&rows[i].rule));
		if (rows[i].at == (uint32_t)(mark - begin) && rows[i].known)
			print_rule(&rows[i].rule, true, text);
	}
	goasm_free(a);
	return text;
}
#define RULE(name, delta, role) rule_of(name##_begin, name##_mark, name##_end, delta, role)

Test(goasm, a_stack_is_taken_back_from_where_the_code_will)
{
	cr_assert_str_eq(RULE(returns, 8, GOASM_RETURNS),
			 "go-switch(-16,24,144,40)+16 cfa-16 cfa-8 derived");
	cr_assert(curg.known);
	cr_assert(curg.tls == -16 && curg.m == 24 && curg.curg == 144);
	/* Nothing here shows that the stack may move, so RBP works at any depth of calls. */
	cr_assert_str_eq(RULE(returns, 8, GOASM_PLAIN), "rbp+16 cfa-16 cfa-8 derived");
}

Test(goasm, g_of_a_shared_library_is_where_its_got_says)
{
	curg = (struct goasm_curg){ 0 };
	cr_assert_str_eq(RULE(shared, 0, GOASM_RETURNS),
			 "go-switch(*+12295,24,144,40)+8 same cfa-8 derived");
	cr_assert(curg.known && curg.by_word && curg.tls == 0x3007);
	cr_assert_str_eq(RULE(grows, 0, GOASM_MORESTACK),
			 "go-switch(*+12295,24,144,40)+0 undefined g+48 derived");
}

Test(goasm, morestack_finds_its_caller_in_g)
{
	curg = (struct goasm_curg){ 0 };
	cr_assert_str_eq(RULE(grows, 0, GOASM_MORESTACK), "end undefined undefined");
	curg = (struct goasm_curg){ .known = true, .tls = -16, .m = 24, .curg = 144 };
	cr_assert_str_eq(RULE(grows, 0, GOASM_MORESTACK),
			 "go-switch(-16,24,144,40)+0 undefined g+48 derived");
}

Test(goasm, calls_of_c_keep_a_depth)
{
	cr_assert_str_eq(RULE(calls_c, 8, GOASM_PLAIN), "go-depth(24,16)+16 cfa-16 cfa-8 derived");
}

Test(goasm, one_of_two_stacks_is_told_by_rbp)
{
	cr_assert_str_eq(RULE(clock, 24, GOASM_PLAIN), "rbp+16 cfa-16 cfa-8 derived");
}

Test(goasm, an_aligned_stack_is_told_by_a_slot)
{
	cr_assert_str_eq(RULE(aligned, 0, GOASM_PLAIN), "*(rsp+32)+8 same cfa-8 derived");
}

Test(goasm, registers_that_c_wants_back_are_found)
{
	cr_assert_str_eq(RULE(entered, 24, GOASM_PLAIN), "rsp+32 cfa-24 cfa-8 derived rbx=cfa-16");
}

Test(goasm, a_return_address_may_be_popped_around_a_system_call)
{
	cr_assert_str_eq(RULE(forks, 0, GOASM_PLAIN), "rsp+0 same r12 derived");
}

Test(goasm, code_that_leaves_a_stack_for_good_has_no_caller)
{
	cr_assert_str_eq(RULE(leaves, 0, GOASM_LEAVES), "rsp+8 same undefined derived");
	/* Its last instruction has the other goroutine's pc. */
	cr_assert_str_eq(RULE(leaps, 0, GOASM_LEAVES), "rsp+0 same rbx derived");
}

Test(goasm, a_loop_that_never_settles_ends)
{
	cr_assert_str_eq(RULE(endless, 0, GOASM_PLAIN), "none");
}

Test(goasm, code_that_is_too_long_is_given_up)
{
	const struct goasm_row *rows;
	struct goasm *a;
	uint32_t n;

	cr_assert_eq(goasm_new(&a), 0);
	cr_assert_eq(goasm_rows(a, returns_begin, GOASM_MAX_CODE + 1, 0, NULL, 0, GOASM_PLAIN,
				&curg, &rows, &n),
		     GOASM_GIVEN_UP);
	cr_assert_eq(goasm_rows(a, returns_begin, 0, 0, NULL, 0, GOASM_PLAIN, &curg, &rows, &n),
		     GOASM_GIVEN_UP);
	goasm_free(a);
}

/* --- whole programs --- */

static struct gotable table;
static struct rows rows;

/* All functions lower RSP by 24 bytes at +4, and raise it again at +0x1f. */
static void read_made(enum go_kind kind, const void *code, size_t n, uint32_t at)
{
	int fd = memfd_create("go", MFD_CLOEXEC);

	table.kind = kind;
	gotable_make(&table);
	memset(table.bytes + 0x1000, 0xcc, 0xc0);
	memcpy(table.bytes + at, code, n);
	cr_assert_eq(write(fd, table.bytes, sizeof(table.bytes)), sizeof(table.bytes));
	rows_init(&rows);
	cr_assert_eq(rows_segment_add(&rows, GO_TEXT, 0x1000, 0x1000), 0);
	cr_assert_eq(rows_layout(&rows), 0);
	cr_assert_eq(gorows_read(fd, sizeof(table.bytes), &rows), 0);
	close(fd);
}

static const char *row_at(uint32_t at)
{
	static char text[PRINT_RULE_SIZE];
	struct unwind_row_wire row;
	struct rows_cursor c;

	strcpy(text, "none");
	rows_cursor_init(&c, &rows);
	while (rows_next(&c, &row) && rows.base + row.offset <= at)
		print_rule(&rows.rules.rule[row.rule], true, text);
	return text;
}

Test(gorows, rbp_is_saved_from_the_instruction_behind_the_store_on)
{
	/* sub rsp, 24; mov [rsp+16], rbp */
	static const uint8_t store[] = { 0x48, 0x83, 0xec, 24, 0x48, 0x89, 0x6c, 0x24, 16 };

	for (enum go_kind kind = GO_1_9; kind < GO_KINDS; kind++) {
		read_made(kind, store, sizeof(store), 0x1000);
		cr_assert_str_eq(row_at(0x1000), "rsp+8 same cfa-8 derived", "%d", kind);
		cr_assert_str_eq(row_at(0x1004), "rsp+32 same cfa-8 derived", "%d", kind);
		cr_assert_str_eq(row_at(0x1009), "rsp+32 cfa-16 cfa-8 derived", "%d", kind);
		cr_assert_str_eq(row_at(0x101f), "rsp+8 same cfa-8 derived", "%d", kind);
		cr_assert_str_eq(row_at(0x10a5), "rsp+8 same undefined derived", "%d", kind);
		rows_done(&rows);
	}
}

Test(gorows, before_go_1_7_rbp_has_no_fixed_use)
{
	static const uint8_t plain[] = { 0x48, 0x83, 0xec, 24, 0x90 };

	read_made(GO_1_4, plain, sizeof(plain), 0x1000);
	cr_assert_str_eq(row_at(0x1010), "rsp+32 undefined cfa-8 derived");
	rows_done(&rows);
}

Test(gorows, existing_rows_stay)
{
	struct unwind_rule rule = { .cfa = UNWIND_CFA_REG, .cfa_reg = 7, .cfa_off = 400 };
	int fd = memfd_create("go", MFD_CLOEXEC);
	uint16_t number;

	table.kind = GO_1_20;
	gotable_make(&table);
	cr_assert_eq(write(fd, table.bytes, sizeof(table.bytes)), sizeof(table.bytes));
	rows_init(&rows);
	cr_assert_eq(rows_segment_add(&rows, GO_TEXT, 0x1000, 0x1000), 0);
	cr_assert_eq(rows_layout(&rows), 0);
	cr_assert_eq(rows_open(&rows, 0x40, 0x80), 0);
	cr_assert_eq(rows_rules_put(&rows.rules, &rule, &number), 0);
	cr_assert_eq(rows_add(&rows, 0x40, number), 0);
	rows_close(&rows);
	cr_assert_eq(rows_finish(&rows), 0);
	cr_assert_eq(gorows_read(fd, sizeof(table.bytes), &rows), 0);
	cr_assert_str_eq(row_at(0x1050), "rsp+400 same cfa-8");
	cr_assert_str_eq(row_at(0x1002), "rsp+8 same cfa-8 derived");
	rows_done(&rows);
	close(fd);
}

Test(gorows, other_files_and_files_that_are_cut_short_do_no_harm)
{
	table.kind = GO_1_16;
	gotable_make(&table);
	for (size_t n = 0; n < sizeof(table.bytes); n += 61) {
		int fd = memfd_create("go", MFD_CLOEXEC);

		cr_assert_eq(write(fd, table.bytes, n), n);
		rows_init(&rows);
		cr_assert_eq(rows_segment_add(&rows, GO_TEXT, 0x1000, 0x1000), 0);
		cr_assert_eq(rows_layout(&rows), 0);
		cr_assert_eq(gorows_read(fd, n, &rows), 0);
		rows_done(&rows);
		close(fd);
	}
}
