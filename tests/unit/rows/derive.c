/* SPDX-License-Identifier: Apache-2.0 */
/* Rules from instructions: functions of a few bytes. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>
#include "common/rows/x86/flow/flow.h"
#include "common/rows/x86/insn.h"
#include "common/rows/x86/linear_code.h"

static struct flow *flow;

static void setup(void)
{
	cr_assert(eq(int, flow_new(FLOW_MAX_CODE, &flow), 0));
}

static void teardown(void)
{
	flow_free(flow);
}

TestSuite(derive, .init = setup, .fini = teardown);

static int run(const void *bytes, size_t size, unsigned flags, struct flow_result *ret)
{
	const struct flow_code code = {
		.bytes = bytes, .size = (uint32_t)size, .end = (uint32_t)size, .address = 0x1000
	};

	return flow_run(flow, &code, flags, ret);
}

#define RUN(bytes, flags, result) run(bytes, sizeof(bytes) - 1, flags, result)

static struct unwind_rule rule_at(uint32_t at)
{
	struct unwind_rule rule = { 0 };
	uint32_t len;
	bool known;

	cr_assert(flow_rule(flow, at, &len, &known, &rule), "no instruction was reached at %u", at);
	cr_assert(known, "no rule at %u", at);
	return rule;
}

static bool known_at(uint32_t at)
{
	struct unwind_rule rule;
	uint32_t len;
	bool known;

	return flow_rule(flow, at, &len, &known, &rule) && known;
}

Test(derive, pushes_and_pops_move_the_cfa_and_save_registers)
{
	struct flow_result r;

	/* push rbp; push rbx; sub rsp, 24; add rsp, 24; pop rbx; pop rbp; ret */
	cr_assert(eq(int, RUN("\x55\x53\x48\x83\xec\x18\x48\x83\xc4\x18\x5b\x5d\xc3", 0, &r), 0));
	cr_assert(r.returns);
	cr_assert(eq(u32, r.end, 13));
	cr_assert(eq(int, rule_at(0).cfa_off, 8));
	cr_assert(eq(int, rule_at(0).rbp, UNWIND_RBP_SAME));
	cr_assert(eq(int, rule_at(6).cfa_off, 48));
	cr_assert(eq(int, rule_at(6).rbp, UNWIND_RBP_CFA));
	cr_assert(eq(int, rule_at(6).rbp_off, -16));
	cr_assert(eq(int, rule_at(6).rbx, 3));
	cr_assert(eq(int, rule_at(12).cfa_off, 8));
	cr_assert(eq(int, rule_at(12).rbp, UNWIND_RBP_SAME));
}

/* SBCL's runtime sets up the frame of a Lisp function, which the function removes. */
Test(derive, a_callee_takes_the_frame_away_that_was_laid_out_for_it)
{
	struct flow_result r;

	/* push rbp; mov rbp, rsp; push rbx; push r12; push rbp; push rbp; mov rbp, rsp;
	 * call [rax - 3]; pop r12; pop rbx; leave; ret */
	cr_assert(eq(int,
		     RUN("\x55\x48\x89\xe5\x53\x41\x54\x55\x55\x48\x89\xe5\xff\x50\xfd\x41\x5c\x5b"
			 "\xc9\xc3",
			 0, &r),
		     0));
	cr_assert(r.returns);
	cr_assert(eq(int, rule_at(12).cfa_reg, UNWIND_REG_RSP));
	cr_assert(eq(int, rule_at(12).cfa_off, 48));
	cr_assert(eq(int, rule_at(15).cfa_reg, UNWIND_REG_RBP));
	cr_assert(eq(int, rule_at(15).cfa_off, 16));
	cr_assert(eq(int, rule_at(19).cfa_off, 8));
	cr_assert(eq(int, rule_at(19).rbp, UNWIND_RBP_SAME));
}

/* With R12 tracked, a changed R12 that is not saved is unknown. */
Test(derive, rows_speak_of_r12_where_they_are_asked_to)
{
	struct flow_result r;

	flow_set_tracked(flow, 12);
	/* push r12; push rbx; nop; pop rbx; pop r12; ret */
	cr_assert(eq(int, RUN("\x41\x54\x53\x90\x5b\x41\x5c\xc3", 0, &r), 0));
	cr_assert(eq(int, rule_at(0).flags &UNWIND_R12, UNWIND_R12));
	cr_assert(eq(int, rule_at(0).rbx, 0));
	cr_assert(eq(int, rule_at(3).flags &UNWIND_R12, UNWIND_R12));
	cr_assert(eq(int, rule_at(3).rbx, 2));
	/* mov r12d, edi; ret */
	cr_assert(eq(int, RUN("\x41\x89\xfc\xc3", 0, &r), 0));
	cr_assert(eq(int, rule_at(0).flags &UNWIND_R12, UNWIND_R12));
	cr_assert(eq(int, rule_at(3).flags &UNWIND_R12, 0));
}

Test(derive, a_frame_pointer_holds_where_rsp_is_not_known)
{
	struct flow_result r;

	/* push rbp; mov rbp, rsp; sub rsp, rax; nop; leave; ret */
	cr_assert(eq(int, RUN("\x55\x48\x89\xe5\x48\x29\xc4\x90\xc9\xc3", 0, &r), 0));
	cr_assert(r.returns);
	cr_assert(eq(int, rule_at(7).cfa_reg, UNWIND_REG_RBP));
	cr_assert(eq(int, rule_at(7).cfa_off, 16));
	cr_assert(eq(int, rule_at(9).cfa_reg, UNWIND_REG_RSP));
	cr_assert(eq(int, rule_at(9).cfa_off, 8));
}

Test(derive, a_frame_pointer_is_used_where_there_is_one)
{
	struct flow_result r;

	/* push rbp; mov rbp, rsp; sub rsp, 16; call; leave; ret */
	cr_assert(eq(int,
		     RUN("\x55\x48\x89\xe5\x48\x83\xec\x10\xe8\x00\x00\x00\x00\xc9\xc3", 0, &r),
		     0));
	cr_assert(eq(int, rule_at(13).cfa_reg, UNWIND_REG_RBP));
	cr_assert(eq(int, rule_at(13).cfa_off, 16));
	cr_assert(eq(int, rule_at(14).cfa_reg, UNWIND_REG_RSP));
}

Test(derive, a_return_address_is_taken_from_the_stack_before_a_register)
{
	struct flow_result r;

	/* pop rax; push rcx; push rax; push rbp; mov rbp, rsp; pop rbp; pop rax; pop rcx; push rax;
	 * ret */
	cr_assert(eq(int, RUN("\x58\x51\x50\x55\x48\x89\xe5\x5d\x58\x59\x50\xc3", 0, &r), 0));
	cr_assert(eq(int, rule_at(7).ra, UNWIND_RA_CFA_OFF));
	cr_assert(eq(int, rule_at(7).cfa_add, -16));
	cr_assert(eq(int, rule_at(1).ra, UNWIND_RA_REG));
}

Test(derive, an_aligned_stack_saves_the_old_rsp_in_a_slot)
{
	struct flow_result r;

	/* mov rax, rsp; push rbp; sub rsp, 64; and rsp, -64; mov [rsp+40], rax; nop;
	 * mov rax, [rsp+40]; mov rbp, [rax-8]; mov rsp, rax; ret */
	cr_assert(eq(int,
		     RUN("\x48\x89\xe0\x55\x48\x83\xec\x40\x48\x83\xe4\xc0\x48\x89\x44\x24\x28\x90"
			 "\x48\x8b\x44\x24\x28\x48\x8b\x68\xf8\x48\x89\xc4\xc3",
			 FLOW_TRUSTED, &r),
		     0));
	cr_assert(r.returns);
	cr_assert(eq(int, rule_at(17).cfa, UNWIND_CFA_DEREF));
	cr_assert(eq(int, rule_at(17).cfa_reg, UNWIND_REG_RSP));
	cr_assert(eq(int, rule_at(17).cfa_off, 40));
	cr_assert(eq(int, rule_at(17).cfa_add, 8));
	cr_assert(eq(int, rule_at(17).rbp, UNWIND_RBP_CFA));
	cr_assert(eq(int, rule_at(30).cfa_off, 8));
}

Test(derive, musls_vfork_has_its_return_address_in_rdx)
{
	struct flow_result r;

	/* pop rdx; mov eax, 58; syscall; push rdx; ret */
	cr_assert(eq(int, RUN("\x5a\xb8\x3a\0\0\0\x0f\x05\x52\xc3", FLOW_TRUSTED, &r), 0));
	cr_assert(eq(int, rule_at(1).ra, UNWIND_RA_REG));
	cr_assert(eq(int, rule_at(1).ra_reg, 1));
	cr_assert(eq(int, rule_at(1).cfa_off, 0));
	cr_assert(eq(int, rule_at(8).ra, UNWIND_RA_REG));
	cr_assert(eq(int, rule_at(9).ra, UNWIND_RA_CFA));
}

Test(derive, the_child_of_clone_is_the_end_of_its_stack)
{
	struct flow_result r;

	/* xor eax, eax; mov al, 56; syscall; test eax, eax; jnz +5; pop rdi; call r9; hlt; ret */
	cr_assert(eq(int,
		     RUN("\x31\xc0\xb0\x38\x0f\x05\x85\xc0\x75\x05\x5f\x41\xff\xd1\xf4\xc3",
			 FLOW_TRUSTED, &r),
		     0));
	cr_assert(eq(int, rule_at(8).ra, UNWIND_RA_CFA));
	cr_assert(eq(int, rule_at(10).ra, UNWIND_RA_UNDEFINED));
	cr_assert(eq(int, rule_at(11).ra, UNWIND_RA_UNDEFINED));
	cr_assert(eq(int, rule_at(15).ra, UNWIND_RA_CFA));
}

Test(derive, paths_that_differ_have_no_rule_where_they_meet)
{
	struct flow_result r;

	/* test eax, eax; jz +1; push rax; nop; jmp to itself */
	cr_assert(eq(int, RUN("\x85\xc0\x74\x01\x50\x90\xeb\xfe", FLOW_TRUSTED, &r), 0));
	cr_assert(known_at(4));
	cr_assert(not(known_at(5)));
}

Test(derive, a_return_elsewhere_than_at_the_return_address_contradicts)
{
	struct flow_result r;

	/* push rax; ret; pop rax; ret */
	cr_assert(eq(int, RUN("\x50\xc3", FLOW_TRUSTED, &r), FLOW_CONTRADICTS));
	cr_assert(eq(int, RUN("\x58\xc3", 0, &r), FLOW_CONTRADICTS));
}

Test(derive, indirect_jumps_lead_to_the_rest_of_a_function_of_known_size)
{
	struct flow_result r;

	/* push rbx; jmp rax; pop rbx; ret */
	cr_assert(eq(int, RUN("\x53\xff\xe0\x5b\xc3", FLOW_TRUSTED | FLOW_SIZED, &r), 0));
	cr_assert(eq(int, rule_at(3).cfa_off, 16));
	cr_assert(eq(int, rule_at(4).cfa_off, 8));
}

Test(derive, the_entry_ends_with_the_call_that_does_not_return)
{
	/* xor ebp, ebp; call; push rbp */
	static const uint8_t start[] = "\x31\xed\xe8\x10\0\0\0\x55\xc3";
	int64_t call = 0;

	cr_assert(eq(u32, linear_code_entry(start, sizeof(start) - 1, &call), 7));
	cr_assert(eq(i64, call, 7 + 16));
}

/* As gcc and clang write it for -fstack-clash-protection. */
Test(derive, a_loop_that_touches_the_pages_of_a_frame_ends_where_it_was_to)
{
	struct flow_result r;

	/* push rbx; lea r11, [rsp - 0x4000]; sub rsp, 0x1000; or qword [rsp], 0; cmp rsp, r11;
	 * jne -19; sub rsp, 0x20; call; add rsp, 0x4020; pop rbx; ret */
	cr_assert(eq(int,
		     RUN("\x53\x4c\x8d\x9c\x24\x00\xc0\xff\xff\x48\x81\xec\x00\x10\0\0"
			 "\x48\x83\x0c\x24\0\x4c\x39\xdc\x75\xef\x48\x83\xec\x20\xe8\0\0\0\x7f"
			 "\x48\x81\xc4\x20\x40\0\0\x5b\xc3",
			 0, &r),
		     0));
	cr_assert(r.returns);
	for (uint32_t at = 9; at <= 24; at += at == 9 ? 7 : at == 16 ? 5 : 3) {
		cr_assert(eq(int, rule_at(at).cfa_reg, 11));
		cr_assert(eq(int, rule_at(at).cfa_off, 0x4010));
		cr_assert(eq(int, rule_at(at).rbx, 2));
	}
	cr_assert(eq(int, rule_at(26).cfa_reg, UNWIND_REG_RSP));
	cr_assert(eq(int, rule_at(26).cfa_off, 0x4010));
	cr_assert(eq(int, rule_at(35).cfa_off, 0x4030));
	cr_assert(eq(int, rule_at(43).cfa_off, 8));
}

/* Another branch tells nothing about RSP, nor does a comparison with another register. */
Test(derive, only_what_is_equal_ends_such_a_loop)
{
	struct flow_result r;

	/* The same with ja; the frame pointer shows that the loop continues. */
	cr_assert(eq(int,
		     RUN("\x55\x48\x89\xe5\x4c\x8d\x9c\x24\x00\xc0\xff\xff\x48\x81\xec\x00\x10\0\0"
			 "\x48\x83\x0c\x24\0\x4c\x39\xdc\x77\xef\x90\x49\x89\xe3\x4d\x31"
			 "\xdb\x90\xc9\xc3",
			 0, &r),
		     0));
	cr_assert(eq(int, rule_at(29).cfa_reg, UNWIND_REG_RBP));
	/* sub rsp, 8; cmp rsp, r11; nop; jne +0; add rsp, 8; ret: r11 is unknown */
	cr_assert(eq(int, RUN("\x48\x83\xec\x08\x4c\x39\xdc\x90\x75\0\x48\x83\xc4\x08\xc3", 0, &r),
		     0));
	cr_assert(eq(int, rule_at(10).cfa_off, 16));
}

/* As clang writes it for -mspeculative-load-hardening. */
Test(derive, speculation_guards_on_rsp_are_ignored)
{
	struct flow_result r;

	/* push rbx; or rsp, rax; call; mov rax, rsp; shl rax, 47; or rsp, rax; pop rbx; ret */
	cr_assert(eq(int,
		     RUN("\x53\x48\x09\xc4\xe8\0\0\0\x7f\x48\x89\xe0\x48\xc1\xe0\x2f"
			 "\x48\x09\xc4\x5b\xc3",
			 0, &r),
		     0));
	cr_assert(r.returns);
	cr_assert(eq(int, rule_at(9).cfa_off, 16));
	cr_assert(eq(int, rule_at(20).cfa_off, 8));
}

#define ARGUMENT(bytes) linear_code_argument((const uint8_t *)(bytes), sizeof(bytes) - 1, 0x1000)

Test(derive, the_first_argument_is_what_is_in_rdi_at_the_first_call)
{
	/* mov rdi, 0x401550; call */
	cr_assert(eq(u64, ARGUMENT("\x48\xc7\xc7\x50\x15\x40\0\xe8\x10\0\0\0"), 0x401550));
	/* mov edi, 0x40102b; xor r9d, r9d; jmp */
	cr_assert(eq(u64, ARGUMENT("\xbf\x2b\x10\x40\0\x45\x31\xc9\xe9\x10\0\0\0"), 0x40102b));
	/* lea rdi, [rip + 0x20]; call [rip] */
	cr_assert(eq(u64, ARGUMENT("\x48\x8d\x3d\x20\0\0\0\xff\x15\0\0\0\0"), 0x1027));
	/* mov edi, 0x40102b; mov rdi, rsp; call */
	cr_assert(eq(u64, ARGUMENT("\xbf\x2b\x10\x40\0\x48\x89\xe7\xe8\x10\0\0\0"), 0));
	/* mov edi, 0x40102b; pop rdi; call */
	cr_assert(eq(u64, ARGUMENT("\xbf\x2b\x10\x40\0\x5f\xe8\x10\0\0\0"), 0));
	/* mov edi, 0x40102b; je; call */
	cr_assert(eq(u64, ARGUMENT("\xbf\x2b\x10\x40\0\x74\x02\xe8\x10\0\0\0"), 0));
	/* mov edi, 0x40102b */
	cr_assert(eq(u64, ARGUMENT("\xbf\x2b\x10\x40\0"), 0));
}

/* Jump tables are in the code. */
static bool read_code(void *ctx, uint64_t address, void *into, uint32_t n)
{
	if (address < 0x1000 || address - 0x1000 + n > 64)
		return false;
	memcpy(into, (const uint8_t *)ctx + (address - 0x1000), n);
	return true;
}

Test(derive, cases_of_a_table_have_the_state_of_their_jump)
{
	/* push rbx; cmp edi, 1; ja +0x13; lea rdx, [table]; mov eax, edi;
	 * movsxd rax, [rdx + rax * 4]; add rax, rdx; jmp rax;
	 * (24) pop rbx; ret; int3; int3; (28) nop; pop rbx; ret; int3; (32) the table: 24, 28 */
	static uint8_t code[64] = "\x53\x83\xff\x01\x77\x12\x48\x8d\x15\x13\0\0\0\x89\xf8"
				  "\x48\x63\x04\x82\x48\x01\xd0\xff\xe0"
				  "\x5b\xc3\xcc\xcc\x90\x5b\xc3\xcc"
				  "\xf8\xff\xff\xff\xfc\xff\xff\xff";
	const struct flow_reader reader = { .read = read_code, .ctx = code };
	struct flow_result r;

	cr_assert(eq(int, run(code, 64, FLOW_TRUSTED, &r), 0));
	cr_assert(not(known_at(28)));
	flow_set_reader(flow, &reader);
	cr_assert(eq(int, run(code, 64, 0, &r), 0));
	cr_assert(r.returns);
	cr_assert(eq(u32, r.end, 31));
	cr_assert(eq(int, rule_at(28).cfa_off, 16));
	cr_assert(eq(int, rule_at(30).cfa_off, 8));
}

Test(derive, tables_of_addresses_are_also_read)
{
	/* and edi, 1; push rax; jmp [table + rdi * 8]; (11) pop rax; ret; (13) nop; pop rax; ret;
	 * (16) the table: 11, 13 */
	static uint8_t code[64] = "\x83\xe7\x01\x50\xff\x24\xfd\x10\x10\0\0"
				  "\x58\xc3\x90\x58\xc3\x0b\x10\0\0\0\0\0\0\x0d\x10";
	const struct flow_reader reader = { .read = read_code, .ctx = code };
	struct flow_result r;

	flow_set_reader(flow, &reader);
	cr_assert(eq(int, run(code, 64, 0, &r), 0));
	cr_assert(eq(int, rule_at(13).cfa_off, 16));
	cr_assert(eq(int, rule_at(15).cfa_off, 8));
}

Test(derive, a_branch_to_a_cold_part_is_no_end_of_the_function)
{
	struct flow_result r;

	/* push rbx; test edi, edi; jz far away; pop rbx; ret */
	cr_assert(eq(int, RUN("\x53\x85\xff\x0f\x84\0\x10\0\0\x5b\xc3", 0, &r), 0));
	cr_assert(r.returns);
	cr_assert(eq(u32, r.jumps, 0));
	/* The same without a ret of its own. */
	cr_assert(eq(int, RUN("\x53\x85\xff\x0f\x84\0\x10\0\0\xeb\xfe", 0, &r), 0));
	cr_assert(not(r.returns));
}

Test(derive, a_jump_to_a_register_at_the_return_address_ends_a_function)
{
	struct flow_result r;

	/* sub rsp, 8; add rsp, 8; jmp rax */
	cr_assert(eq(int, RUN("\x48\x83\xec\x08\x48\x83\xc4\x08\xff\xe0", 0, &r), 0));
	cr_assert(r.returns);
}

Test(derive, a_call_with_rsp_not_at_a_multiple_of_16_is_reported)
{
	struct flow_result r;

	/* push rbx; push rcx; call 0; pop rcx; pop rbx; ret */
	cr_assert(eq(int, RUN("\x53\x51\xe8\xf9\xff\xff\xff\x59\x5b\xc3", 0, &r), FLOW_MISALIGNED));
	cr_assert(eq(int, RUN("\x53\x51\xe8\xf9\xff\xff\xff\x59\x5b\xc3", FLOW_UNALIGNED, &r), 0));
	cr_assert(r.rets);
	cr_assert(eq(int, rule_at(7).cfa_off, 24));
}

Test(derive, a_barrier_on_the_return_address_does_not_change_it)
{
	struct flow_result r;

	/* lock or dword [rsp], 0; ret; and with 1 */
	cr_assert(eq(int, RUN("\xf0\x83\x0c\x24\0\xc3", 0, &r), 0));
	cr_assert(eq(int, rule_at(5).cfa_off, 8));
	cr_assert(eq(int, RUN("\xf0\x83\x0c\x24\x01\xc3", 0, &r), FLOW_CONTRADICTS));
}

Test(derive, a_failure_before_a_call_is_not_retried_without_it)
{
	enum { CALLS = 4096 };
	static uint8_t code[16 + 16 * CALLS + 1];
	struct flow_result r;

	/* test edi, edi; jz +9; push rbx; push rcx; call 0; pop rcx; pop rbx; nop; ret */
	memcpy(code, "\x85\xff\x0f\x84\x08\0\0\0\x53\x51\xe8\xf1\xff\xff\xff\xc3", 16);
	/* call 0; an aligned nop of 11 bytes */
	for (uint32_t at = 16; at < sizeof(code) - 1; at += 16) {
		int32_t back = -(int32_t)at - 5;

		code[at] = 0xe8;
		memcpy(code + at + 1, &back, 4);
		memcpy(code + at + 5, "\x66\x66\x2e\x0f\x1f\x84\0\0\0\0\0", 11);
	}
	code[sizeof(code) - 1] = 0xc3;
	cr_assert(eq(int, run(code, sizeof(code), 0, &r), FLOW_MISALIGNED));

	uint64_t once = flow_work(flow);

	cr_assert(ge(u64, once, CALLS));
	cr_assert(gt(int, flow_again(flow, &r), 0));
	cr_assert(eq(u64, flow_work(flow), once));
}

static bool read_nothing(void *ctx, uint64_t address, void *into, uint32_t n)
{
	(void)ctx, (void)address, (void)into, (void)n;
	return false;
}

Test(derive, indirect_jumps_cost_the_same_however_many_there_are, .timeout = 60)
{
	const struct flow_reader reader = { .read = read_nothing };
	static uint8_t code[FLOW_MAX_CODE];
	struct flow_result r;
	uint64_t work[2];

	/* jz +2; jmp rax; ... */
	for (uint32_t at = 0; at < sizeof(code); at += 4)
		memcpy(code + at, "\x74\x02\xff\xe0", 4);
	flow_set_reader(flow, &reader);
	for (unsigned i = 0; i < 2; i++) {
		work[i] = flow_work(flow);
		run(code, (uint32_t)sizeof(code) >> (i ? 0 : 3), 0, &r);
		work[i] = flow_work(flow) - work[i];
	}
	cr_assert(le(u64, work[1], 9 * work[0]));
}

Test(derive, labels_in_the_register_of_a_jump_are_its_cases)
{
	/* push rbx; lea r8, [label]; test edi, edi; jz +7; lea r8, [another];
	 * (19) jmp r8; (22) label: nop; pop rbx; ret; (25) another: pop rbx; ret */
	static const uint8_t code[] = "\x53\x4c\x8d\x05\x0e\0\0\0\x85\xff\x74\x07"
				      "\x4c\x8d\x05\x06\0\0\0\x41\xff\xe0"
				      "\x90\x5b\xc3\x5b\xc3";
	const struct flow_reader reader = { .read = read_nothing };
	const uint32_t size = sizeof(code) - 1;
	struct flow_result r;

	flow_set_reader(flow, &reader);
	cr_assert(eq(int, run(code, size, FLOW_TRUSTED, &r), 0));
	cr_assert(not(known_at(22)));
	cr_assert(eq(int, run(code, size, FLOW_TRUSTED | FLOW_SIZED, &r), 0));
	cr_assert(r.rets);
	cr_assert(eq(int, rule_at(22).cfa_off, 16));
	cr_assert(eq(int, rule_at(24).cfa_off, 8));
	cr_assert(eq(int, rule_at(25).cfa_off, 16));
}

static bool is_bare(const void *ctx, int64_t at)
{
	return at == *(const int64_t *)ctx;
}

Test(derive, assembly_keeps_rsp_in_a_register_over_calls_of_its_own)
{
	/* mov rcx, rsp; and rsp, -16; sub rsp, 48; (11) call 24; (16) mov rsp, rcx; ret; nops;
	 * (24) ret */
	static const uint8_t code[] = "\x48\x89\xe1\x48\x83\xe4\xf0\x48\x83\xec\x30"
				      "\xe8\x08\0\0\0\x48\x89\xcc\xc3\x90\x90\x90\x90\xc3";
	const uint32_t size = sizeof(code) - 1;
	int64_t helper = 24;
	struct flow_reader reader = { .bare = is_bare, .ctx = &helper };
	struct flow_result r;

	flow_set_reader(flow, &reader);
	cr_assert(eq(int, run(code, size, FLOW_TRUSTED, &r), 0));
	cr_assert(flow_by_hand(flow));
	cr_assert(not(known_at(16)));
	cr_assert(eq(int, run(code, size, FLOW_ASSEMBLY, &r), 0));
	cr_assert(r.rets);
	for (uint32_t at = 11; at <= 16; at += 5) {
		cr_assert(eq(int, rule_at(at).cfa_reg, insn_dwarf[INSN_RCX]));
		cr_assert(eq(int, rule_at(at).cfa_off, 8));
	}
	cr_assert(eq(int, rule_at(19).cfa_reg, UNWIND_REG_RSP));
	/* Compiled code keeps to the calling convention. */
	helper = 0;
	flow_set_reader(flow, &reader);
	cr_assert(eq(int, run(code, size, FLOW_ASSEMBLY, &r), FLOW_CONTRADICTS));
}

Test(derive, code_that_calls_its_own_middle_is_a_nest)
{
	/* mov r11, rsp; and rsp, -32; sub rsp, 272; (14) dec ecx; jg 19; ret; (19) push rcx;
	 * call 14; (25) pop rcx; test edx, edx; je 31; ret; (31) mov rsp, r11; ret */
	static const uint8_t code[] = "\x49\x89\xe3\x48\x83\xe4\xe0\x48\x81\xec\x10\x01\0\0"
				      "\xff\xc9\x7f\x01\xc3\x51\xe8\xf5\xff\xff\xff\x59"
				      "\x85\xd2\x74\x01\xc3\x4c\x89\xdc\xc3";
	const struct unwind_rule nest = { .cfa = UNWIND_CFA_NEST,
					  .cfa_reg = 11,
					  .cfa_off = 8,
					  .cfa_add = 272,
					  .cfa_mid = 8,
					  .index_reg = 5,
					  .flags = UNWIND_DERIVED | UNWIND_GUESSED };
	const uint32_t size = sizeof(code) - 1;
	int64_t middle = 14;
	struct flow_reader reader = { .bare = is_bare, .ctx = &middle };
	struct flow_result r;

	flow_set_reader(flow, &reader);
	cr_assert(eq(int, run(code, size, FLOW_TRUSTED, &r), 0));
	cr_assert(flow_by_hand(flow));
	cr_assert(eq(int, run(code, size, FLOW_ASSEMBLY, &r), 0));
	cr_assert(r.rets);
	cr_assert(eq(int, rule_at(7).cfa, UNWIND_CFA_REG));
	cr_assert(eq(int, rule_at(7).cfa_reg, 11));
	for (uint32_t at = 14; at <= 31; at++) {
		struct unwind_rule rule = nest, got;
		bool known;
		uint32_t len;

		if (at == 20 || at == 25) { /* rcx is pushed */
			rule.cfa_mid = 16;
			rule.cfa_add = 280;
		}
		if (!flow_rule(flow, at, &len, &known, &got))
			continue;
		cr_assert(known && unwind_rule_valid(&got));
		cr_assert(zero(int, memcmp(&got, &rule, sizeof(rule))), "at %u", at);
	}
	cr_assert(eq(int, rule_at(34).cfa_reg, UNWIND_REG_RSP));
	cr_assert(eq(int, rule_at(34).cfa_off, 8));
}

Test(derive, frames_of_a_nest_that_resemble_the_outermost_prevent_rules)
{
	/* The same as before, but with (19) pop rcx; call 14; (25) push rcx. */
	static const uint8_t code[] = "\x49\x89\xe3\x48\x83\xe4\xe0\x48\x81\xec\x10\x01\0\0"
				      "\xff\xc9\x7f\x01\xc3\x59\xe8\xf5\xff\xff\xff\x51"
				      "\x85\xd2\x74\x01\xc3\x4c\x89\xdc\xc3";
	int64_t middle = 14;
	struct flow_reader reader = { .bare = is_bare, .ctx = &middle };
	struct flow_result r;

	flow_set_reader(flow, &reader);
	cr_assert(eq(int, run(code, sizeof(code) - 1, FLOW_ASSEMBLY, &r), FLOW_CONTRADICTS));
}

Test(derive, a_nest_that_changes_rbp_has_no_rules)
{
	/* mov r11, rsp; and rsp, -32; push rbp; (8) dec ecx; jg 13; ret; (13) xor ebp, ebp;
	 * call 8; (20) mov rsp, r11; ret */
	static const uint8_t code[] = "\x49\x89\xe3\x48\x83\xe4\xe0\x55"
				      "\xff\xc9\x7f\x01\xc3\x31\xed\xe8\xf4\xff\xff\xff"
				      "\x4c\x89\xdc\xc3";
	int64_t middle = 8;
	struct flow_reader reader = { .bare = is_bare, .ctx = &middle };
	struct flow_result r;

	flow_set_reader(flow, &reader);
	cr_assert(eq(int, run(code, sizeof(code) - 1, FLOW_ASSEMBLY, &r), FLOW_CONTRADICTS));
}

Test(derive, a_number_that_rsp_was_lowered_by_leads_to_the_cfa)
{
	/* mov r11, rsp; and r11, 31; add r11, 96; (11) sub rsp, r11; (14) mov [rsp], r11;
	 * (18) mov [rsp + 8], rbp; (23) xor ebp, ebp; mov r11d, 5; (31) mov r11, [rsp];
	 * mov rbp, [rsp + 8]; (40) add rsp, r11; (43) mov rax, rdi; ret */
	static const uint8_t code[] = "\x49\x89\xe3\x49\x83\xe3\x1f\x49\x83\xc3\x60"
				      "\x4c\x29\xdc\x4c\x89\x1c\x24\x48\x89\x6c\x24\x08"
				      "\x31\xed\x41\xbb\x05\0\0\0\x4c\x8b\x1c\x24"
				      "\x48\x8b\x6c\x24\x08\x4c\x01\xdc\x48\x89\xf8\xc3";
	const struct unwind_rule sum = { .cfa = UNWIND_CFA_SUM,
					 .cfa_reg = UNWIND_REG_RSP,
					 .cfa_off = 0,
					 .cfa_add = 8,
					 .rbp = UNWIND_RBP_DEREF_REG,
					 .rbp_reg = UNWIND_REG_RSP,
					 .rbp_off = 8,
					 .flags = UNWIND_DERIVED | UNWIND_GUESSED };
	struct unwind_rule by_index;
	struct flow_result r;

	cr_assert(eq(int, run(code, sizeof(code) - 1, 0, &r), 0));
	cr_assert(r.rets);
	cr_assert(eq(int, rule_at(11).index, 0));
	by_index = rule_at(14);
	cr_assert(eq(int, by_index.cfa, UNWIND_CFA_REG));
	cr_assert(eq(int, by_index.cfa_reg, UNWIND_REG_RSP));
	cr_assert(eq(int, by_index.cfa_off, 8));
	cr_assert(eq(int, by_index.index, 1));
	cr_assert(eq(int, by_index.index_reg, 11));
	cr_assert(unwind_rule_valid(&by_index));
	for (uint32_t at = 23; at <= 31; at += 8) {
		struct unwind_rule rule = rule_at(at);

		cr_assert(unwind_rule_valid(&rule));
		cr_assert(zero(int, memcmp(&rule, &sum, sizeof(sum))), "at %u", at);
	}
	/* RBP holds the caller's value again, whatever is below RSP. */
	cr_assert(eq(int, rule_at(43).cfa_off, 8));
	cr_assert(eq(int, rule_at(43).rbp, UNWIND_RBP_SAME));
}

Test(derive, rsp_is_followed_where_a_known_number_is_taken_from_it)
{
	struct flow_result r;

	/* mov eax, 64; sub rsp, rax; (8) nop; add rsp, rax; ret */
	cr_assert(eq(int, RUN("\xb8\x40\0\0\0\x48\x29\xc4\x90\x48\x01\xc4\xc3", 0, &r), 0));
	cr_assert(r.rets);
	cr_assert(eq(int, rule_at(8).cfa_off, 72));
	cr_assert(eq(int, rule_at(12).cfa_off, 8));
}

Test(derive, a_number_other_than_the_one_rsp_was_lowered_by_is_no_cfa)
{
	struct flow_result r;

	/* sub rsp, r11; mov [rsp], r11; and rsp, -64; (11) nop; mov r11, [rsp]; add rsp, r11; ret
	 */
	cr_assert(eq(int,
		     RUN("\x4c\x29\xdc\x4c\x89\x1c\x24\x48\x83\xe4\xc0\x90\x4c\x8b\x1c\x24"
			 "\x4c\x01\xdc\xc3",
			 FLOW_TRUSTED, &r),
		     0));
	cr_assert(not(r.rets));
	cr_assert(not(known_at(11)));
}

Test(derive, assembly_is_not_understood_if_one_ret_is_not)
{
	/* mov rcx, rsp; and rsp, -16; test edi, edi; jz 19; call [rip + 0] (may change rcx); nop;
	 * (19) mov rsp, rcx; ret */
	static const uint8_t code[] = "\x48\x89\xe1\x48\x83\xe4\xf0\x85\xff\x74\x08"
				      "\xff\x15\0\0\0\0\x66\x90\x48\x89\xcc\xc3";
	struct flow_result r;

	cr_assert(eq(int, run(code, sizeof(code) - 1, FLOW_TRUSTED, &r), 0));
	cr_assert(flow_by_hand(flow));
	cr_assert(eq(int, run(code, sizeof(code) - 1, FLOW_ASSEMBLY, &r), FLOW_CONTRADICTS));
}

Test(derive, code_goes_on_at_labels_that_come_to_a_jump)
{
	/* push rbx; lea r8, [16]; jmp 12; (12) nop; jmp r8; (16) lea rcx, [28]; mov r8, rcx;
	 * jmp 12; (28) pop rbx; ret */
	static const uint8_t code[] = "\x53\x4c\x8d\x05\x08\0\0\0\xeb\x02"
				      "\x90\x90\x90\x41\xff\xe0"
				      "\x48\x8d\x0d\x05\0\0\0"
				      "\x49\x89\xc8\xeb\xf0"
				      "\x5b\xc3";
	struct flow_result r;

	cr_assert(eq(int, run(code, sizeof(code) - 1, FLOW_TRUSTED, &r), 0));
	cr_assert(flow_by_hand(flow));
	cr_assert(not(known_at(16)));
	cr_assert(eq(int, run(code, sizeof(code) - 1, FLOW_ASSEMBLY, &r), 0));
	cr_assert(r.rets);
	cr_assert(not(r.unread));
	cr_assert(eq(int, rule_at(16).cfa_off, 16));
	cr_assert(eq(int, rule_at(28).cfa_off, 16));
	cr_assert(eq(int, rule_at(29).cfa_off, 8));
}

Test(derive, a_jump_to_a_possible_non_label_is_not_understood)
{
	/* push rbx; test edi, edi; jz 12; lea r8, [15]; (12) jmp r8; (15) pop rbx; ret */
	static const uint8_t code[] = "\x53\x85\xff\x74\x07\x4c\x8d\x05\x03\0\0\0\x41\xff\xe0"
				      "\x5b\xc3";
	struct flow_result r;

	cr_assert(eq(int, run(code, sizeof(code) - 1, FLOW_TRUSTED, &r), 0));
	cr_assert(flow_by_hand(flow));
	cr_assert(eq(int, run(code, sizeof(code) - 1, FLOW_ASSEMBLY, &r), FLOW_CONTRADICTS));
}

Test(derive, a_jump_with_another_rbp_marks_code_that_is_not_called)
{
	struct flow_result r;

	/* add rbp, 8; jmp [rbp]: GHC's return; RBP is its stack pointer */
	cr_assert(eq(int, RUN("\x48\x83\xc5\x08\xff\x65\x00", FLOW_TRUSTED, &r), FLOW_CONTRADICTS));
	cr_assert(flow_foreign(flow));
	/* add rbp, 8; ret */
	cr_assert(eq(int, RUN("\x48\x83\xc5\x08\xc3", FLOW_TRUSTED, &r), 0));
	cr_assert(not(flow_foreign(flow)));
}

Test(derive, zeros_are_padding_up_to_the_last_one)
{
	/* Free Pascal pads with zeros. */
	static const uint8_t code[] = "\0\0\0\x55\x48\x89\xe5";

	cr_assert(eq(u32, linear_code_padding(code, sizeof(code) - 1), 3));
	cr_assert(eq(u32, linear_code_padding(code + 2, sizeof(code) - 3), 0));
}

Test(derive, a_jump_to_a_sum_does_not_end_a_function)
{
	struct flow_result r;

	/* add rax, rdx; jmp rax; mov rax, [rdi]; jmp rax */
	cr_assert(eq(int, RUN("\x48\x01\xd0\xff\xe0", 0, &r), 0));
	cr_assert(not(r.returns));
	cr_assert(eq(int, RUN("\x48\x8b\x07\xff\xe0", 0, &r), 0));
	cr_assert(r.returns);
}

Test(derive, jumps_may_lead_before_the_first_instruction)
{
	/* (0) pop rbx; ret; (2) push rbx; jmp 0 */
	static const uint8_t bytes[] = "\x5b\xc3\x53\xeb\xfb";
	const struct flow_code code = { .bytes = bytes, .size = 5, .entry = 2, .end = 5 };
	struct flow_result r;

	cr_assert(eq(int, flow_run(flow, &code, 0, &r), 0));
	cr_assert(r.rets);
	cr_assert(eq(u32, r.low, 0));
	cr_assert(eq(int, rule_at(0).cfa_off, 16));
}
