/* SPDX-License-Identifier: Apache-2.0 */
/* The page's two halves, around the profile. */
	.section .rodata
	.globl	html_head, html_head_end, html_tail, html_tail_end
	.hidden	html_head, html_head_end, html_tail, html_tail_end
html_head:
	.incbin	"page-head.html"
html_head_end:
html_tail:
	.incbin	"page-tail.html"
html_tail_end:
	.section .note.GNU-stack,"",@progbits
