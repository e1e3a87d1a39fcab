/* SPDX-License-Identifier: Apache-2.0 */
/* Made into `rare` by make.sh: instructions of call frame information that few producers write, one
 * function each. Code and rules belong together only in number of bytes. */
	.text
	.globl _start

	.macro function name
	.p2align 4, 0xcc
\name:
	.cfi_startproc
	nop
	.endm
	.macro end
	nop
	ret
	.cfi_endproc
	.endm

	function _start
	.cfi_undefined %rip
	end

	function args_size		/* DW_CFA_GNU_args_size changes nothing */
	.cfi_escape 0x2e, 0x20
	nop
	.cfi_def_cfa_offset 48
	end

	function saved_rbx	/* offset, offset_extended, remember, restore, restore_state */
	.cfi_def_cfa_offset 16
	.cfi_offset %rbx, -16
	nop
	.cfi_remember_state
	.cfi_escape 0x05, 0x03, 0x05	/* at cfa - 40 */
	nop
	.cfi_remember_state
	.cfi_restore %rbx
	nop
	.cfi_restore_state
	nop
	.cfi_restore_state
	end

	function longjmp		/* RSP, RBP and the return address in registers */
	.cfi_def_cfa %rdi, 0
	.cfi_register %rsp, %r8
	.cfi_register %rbp, %r9
	.cfi_register %rip, %rdx
	.cfi_offset %rbx, 0
	end

	function shifted	/* DW_CFA_val_offset_sf: RSP is not the CFA, but 16 bytes above */
	.cfi_def_cfa %rbp, 16
	.cfi_offset %rbp, -16
	.cfi_escape 0x15, 0x07, 0x7e
	end

	function register_after_expression
	.cfi_def_cfa_offset 56
	nop
	.cfi_escape 0x0f, 0x03, 0x77, 0x10, 0x06	/* *(rsp + 16) */
	nop
	.cfi_def_cfa_register %rsp
	end

	function by_expressions
	.cfi_escape 0x10, 0x06, 0x02, 0x40, 0x1c	/* RBP at CFA; 16; minus */
	.cfi_escape 0x16, 0x10, 0x02, 0x72, 0x00	/* the return address is RCX */
	nop
	.cfi_escape 0x0f, 0x06, 0x77, 0x00, 0x38, 0x32, 0x1e, 0x22	/* rsp + 8 * 2 */
	.cfi_restore %rip
	end

	function indexed		/* OpenSSL: *(rsp + 8 + r9 * 8) + 8 */
	.cfi_escape 0x0f, 0x0a, 0x77, 0x08, 0x79, 0x00, 0x38, 0x1e, 0x22, 0x06, 0x23, 0x08
	end

	function same_value
	.cfi_def_cfa %rbp, 16
	.cfi_offset %rbp, -16
	nop
	.cfi_same_value %rbp
	end

	function negative_offset /* DW_CFA_GNU_negative_offset_extended: RBP at cfa - -(2 * -8) */
	.cfi_escape 0x2f, 0x06, 0x02
	end

	function window_save		/* SPARC's: the rest of this function is unknown */
	.cfi_escape 0x2d
	nop
	.cfi_def_cfa_offset 64
	end

	function after_it
	end
	.section .note.GNU-stack, "", @progbits
