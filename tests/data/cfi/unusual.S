/* SPDX-License-Identifier: Apache-2.0 */
/* Made into `unusual` by make.sh: what compilers seldom write and libraries do. */
	.text
	.globl _start
_start:				/* no CFI at all: derived */
	xor %ebp, %ebp
	call vfork_like
	hlt
	.p2align 6

vfork_like:			/* the return address in a register */
	.cfi_startproc
	pop %rdi
	.cfi_def_cfa_offset 0
	.cfi_register %rip, %rdi
	nop
	push %rdi
	.cfi_def_cfa_offset 8
	.cfi_offset %rip, -8
	ret
	.cfi_endproc

switches:			/* the CFA in memory, then in r10, then what no rule holds */
	.cfi_startproc
	mov %rsp, %rax
	sub $64, %rsp
	mov %rax, 8(%rsp)
	.cfi_escape 0x0f, 0x05, 0x77, 0x08, 0x06, 0x23, 0x08
	mov %rax, %r10
	.cfi_def_cfa %r10, 8
	nop
	.cfi_escape 0x0f, 0x03, 0x77, 0x00, 0x19
	nop
	.cfi_def_cfa %rsp, 72
	add $64, %rsp
	.cfi_def_cfa_offset 8
	ret
	.cfi_endproc

root:				/* the stack ends here */
	.cfi_startproc
	.cfi_undefined %rip
	hlt
	.cfi_endproc

	.p2align 6
	.cfi_startproc
	.cfi_signal_frame
	.cfi_escape 0x0f, 0x04, 0x77, 0xa0, 0x01, 0x06	/* CFA: *(rsp + 160) */
	.cfi_escape 0x10, 0x06, 0x03, 0x77, 0xf8, 0x00	/* rbp: at rsp + 120 */
	.cfi_escape 0x10, 0x10, 0x03, 0x77, 0xa8, 0x01	/* rip: at rsp + 168 */
	nop
restorer:
	mov $15, %eax
	syscall
	.cfi_endproc

	.p2align 6
gap:
	ret
	.section .note.GNU-stack, "", @progbits
