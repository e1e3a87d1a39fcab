/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The JIT of CPython. The code that it makes (traces) has no fixed layout. In 3.13 and 3.14 a stub
 * precedes each trace. From 3.15 on one C function calls them all, and they leave RBP unchanged, so
 * it is that function's:
 *
 *     push rbp; mov rbp, rsp; push REGISTER...; [sub rsp, N;] mov...; call [TRACE]
 */
#include <string.h>
#include "bpf/tables.h"
#include "common/names/runtime/python/python.h"

#define FIRST 13
#define FIRST_WITH_ENTRY 15
#define SETS_UP "\x55\x48\x89\xe5"

unsigned python_words_below(const uint8_t code[static PYTHON_ENTRY_BYTES])
{
	unsigned words = 1, i = strlen(SETS_UP);

	if (memcmp(code, SETS_UP, i) != 0)
		return 0;
	for (; i + 5 < PYTHON_ENTRY_BYTES; words++) {
		if (code[i] == 0x41 && (code[i + 1] & 0xf8) == 0x50)
			i += 2;
		else if ((code[i] & 0xf8) == 0x50)
			i++;
		else
			break;
	}
	if (code[i] == 0x48 && code[i + 1] == 0x83 && code[i + 2] == 0xec)
		words += code[i + 3] / 8u;
	return words;
}

void python_find_jit(const struct elfview *im, unsigned minor, struct runtime_config *c)
{
	struct elfview_symbol entry;
	uint64_t offset, left;
	uint8_t code[PYTHON_ENTRY_BYTES];
	unsigned words = 0;

	/* Only builds with a JIT contain the name of the environment variable that switches it
	 * on. */
	if (minor < FIRST || !symfile_has_text(im->file, ".rodata", "PYTHON_JIT"))
		return;
	if (minor >= FIRST_WITH_ENTRY) {
		if (elfview_defined(im, "_PyJIT_Entry", &entry) != 0 || !entry.size ||
		    c->ranges == RUNTIME_RANGES ||
		    symfile_offset(im->file, entry.value, &offset, &left) != 0 ||
		    elfview_read(im, entry.value, code, sizeof(code)) != 0)
			return;
		words = python_words_below(code);
		if (!words || words > TABLES_RULE_STUB_BELOW_MAX)
			return;
		c->loop[c->ranges++] = (struct runtime_range){ .start = offset,
							       .end = offset + entry.size };
	}
	c->takes = RUNTIME_RULES_GENERATED;
	c->rule = TABLES_RULE_STUB | words << TABLES_RULE_STUB_BELOW_SHIFT;
}
