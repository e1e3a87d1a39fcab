/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Offsets that follow from the version of V8. Most builds export more of them (v8.c); exported
 * values take precedence. Each line is that of its version's release builds for x86-64 without
 * pointer compression, or with it if the line says so.
 */
#include "common/names/runtime/v8/v8.h"

#define VERSION(major, minor) ((major) << 8 | (minor))

/* The same in all versions of the table. */
#define COMMON \
	.map_type = 12, .script_source = 8, .script_name = 16, .script_line = 24, \
	.script_ends = 56, .script_id = 64, .shared_data = 8, .deopt_inlined = 24, \
	.string_data = 24
/* Builds that compress pointers. Code is not found in them. */
#define COMPRESSED_156 \
	.compressed = 1, .map_type = 8, .script_source = 4, .script_name = 8, .script_line = 12, \
	.script_ends = 28, .script_id = 32, .script_url = 60, .function_shared = 16, \
	.shared_data = 4, .shared_scope = 12, .shared_script = 20, .shared_literal = 36, \
	.scope_flags = 4, .scope_locals = 12, .scope_first = 24, .scope_range = 16, \
	.scope_module = 6, .scope_inlined_locals = 75, .frame_bytecodes = 32, .array_plain = 1, \
	.string_data = 20, .kind_baseline = 255, .kind_interpreted = 254
#define ALL COMMON, .frame_bytecodes = 32, .descriptors_first = 24
#define ALL_141 COMMON, .frame_bytecodes = 32, .descriptors_first = 32
/* Frames do not hold the number of arguments. */
#define ALL_OLD COMMON, .frame_bytecodes = 24, .descriptors_first = 24

/* A script's own name (source URL). A word was inserted before it in 11.3, and another in 14.9. */
#define SCRIPT_OLD .script_url = 104
#define SCRIPT_113 .script_url = 112
#define SCRIPT_149 .script_url = 120

/* A function points to its code, and its description has 56 bytes. */
#define FUNCTION_OLD \
	.function_code = 48, .function_shared = 24, .shared_scope = 16, .shared_script = 32, \
	.shared_literal = 52
#define FUNCTION_118 \
	.function_code = 24, .function_shared = 32, .shared_scope = 16, .shared_script = 32, \
	.shared_literal = 52
/* In 13.6 and later a function has an index into a table of code, as half a word. The table belongs
 * to the isolate group, or to the isolate. */
#define FUNCTION_129 \
	.function_code = 24, .function_shared = 32, .shared_scope = 24, .shared_script = 40, \
	.shared_literal = 60
#define GROUP .group_table = 2400, .group_shift = 8
/* The order of a scope's fields: Smis first, then the names, then the range; or the range first.
 * Many locals are in a table. */
#define SCOPE_84 \
	.scope_flags = 20, .scope_locals = 32, .scope_first = 40, .scope_module = 3, \
	.scope_inlined_locals = 255, .scope_receiver = 1
#define SCOPE_OLD \
	.scope_flags = 12, .scope_locals = 24, .scope_first = 32, .scope_module = 3, \
	.scope_inlined_locals = 255, .scope_receiver = 1
#define SCOPE_102 \
	.scope_flags = 12, .scope_locals = 24, .scope_first = 32, .scope_module = 3, \
	.scope_inlined_locals = 75
#define SCOPE_129(module) \
	.scope_flags = 8, .scope_locals = 24, .scope_first = 48, .scope_range = 32, \
	.scope_module = (module), .scope_inlined_locals = 75
/* Instructions follow the code's description, or are in an object of their own. */
#define CODE_OLD(body) \
	.code_body = (body), .code_size = 40, .code_flags = 48, .code_deopt = 16, \
	.code_positions = 24, .kind_baseline = 11, .kind_interpreted = 10
/* These versions have no baseline code. */
#define CODE_84(body) \
	.code_body = (body), .code_size = 40, .code_flags = 44, .code_deopt = 16, \
	.code_positions = 24, .kind_baseline = 255, .kind_interpreted = 254
#define CODE_113 \
	.code_start = 40, .code_head = 16, .code_size = 56, .code_flags = 48, .code_deopt = 16, \
	.code_positions = 24, .kind_baseline = 11, .kind_interpreted = 10
#define CODE_118 \
	.code_start = 32, .code_head = 32, .code_size = 44, .code_flags = 40, .code_deopt = 8, \
	.code_positions = 16, .kind_baseline = 11, .kind_interpreted = 10
#define CODE_124 \
	.code_start = 40, .code_head = 32, .code_size = 52, .code_flags = 48, .code_deopt = 8, \
	.code_positions = 16, .kind_baseline = 10, .kind_interpreted = 9
/* These versions have Maglev, which at first did not write positions, and then not all. */
#define MAGLEV .code_maglev = 11
#define MAGLEV_145 .code_maglev = 12
#define CODE_136(interpreted) \
	.code_start = 40, .code_head = 32, .code_size = 56, .code_flags = 52, .code_deopt = 8, \
	.code_positions = 16, .kind_baseline = (interpreted) + 1, \
	.kind_interpreted = (interpreted)
#define DEOPT_OLD .deopt_literals = 32, .deopt_inlining = 72
#define DEOPT_136 .deopt_literals = 40, .deopt_inlining = 80

#define BYTECODES(start, positions) .bytecodes_start = (start), .bytecodes_positions = (positions)
#define TYPES(no_string, bytecodes, array, scope) \
	.type_no_string = (no_string), .type_bytecodes = (bytecodes), .type_fixed_array = (array), \
	.type_scope_info = (scope)

/* WebAssembly: the marker of frames and the bytes of a jump; offsets in an instance, its module's
 * object, and the compiled module. Since 12.9 a builtin sets up frames. */
#define WASM(marker, jump, jumps, instance, module, bytes, imported, caller) \
	.wasm_marker = (marker), .wasm_jump = (jump), .wasm_jumps = (jumps), \
	.wasm_instance = (instance), .wasm_module = (module), .wasm_bytes = (bytes), \
	.wasm_imported = (imported), .wasm_caller = (caller)
#define WASM_129(marker, jump, instance, bytes, imported, caller) \
	WASM(marker, (jump) | V8_WASM_SETUP, 56, instance, 32, bytes, imported, caller)

/* clang-format off */
static const struct {
	uint32_t first, last; /* versions */
	uint16_t position_flags, safepoints;
	struct v8_config c;
} layouts[] = {
	{ VERSION(7, 8), VERSION(7, 9), 0, 0,
	  { ALL_OLD, SCRIPT_OLD, FUNCTION_OLD, SCOPE_84, .scope_classless = 1, CODE_84(64),
	    DEOPT_OLD, BYTECODES(54, 32), TYPES(64, 72, 123, 136) } },
	{ VERSION(8, 1), VERSION(8, 1), 0, 0,
	  { ALL_OLD, SCRIPT_OLD, FUNCTION_OLD, SCOPE_84, .scope_classless = 1, CODE_84(64),
	    DEOPT_OLD, BYTECODES(54, 32), TYPES(64, 133, 117, 130) } },
	{ VERSION(8, 4), VERSION(8, 4), 0, 0,
	  { ALL_OLD, SCRIPT_OLD, FUNCTION_OLD, SCOPE_84, CODE_84(96), DEOPT_OLD,
	    WASM(10, 5, 128, 0, 136, 296, 60, 0), BYTECODES(54, 32), TYPES(64, 133, 117, 130) } },
	{ VERSION(8, 6), VERSION(8, 6), 0, 0,
	  { ALL_OLD, SCRIPT_OLD, FUNCTION_OLD, SCOPE_84, CODE_84(96), DEOPT_OLD,
	    WASM(10, 5, 128, 0, 136, 296, 60, 0), BYTECODES(54, 32), TYPES(64, 133, 117, 130) } },
	{ VERSION(9, 1), VERSION(9, 4), 0, 0,
	  { ALL, SCRIPT_OLD, FUNCTION_OLD, SCOPE_OLD, CODE_OLD(96), DEOPT_OLD,
	    WASM(8, 5, 120, 0, 208, 312, 68, 7), BYTECODES(54, 32), TYPES(64, 133, 119, 178) } },
	{ VERSION(9, 5), VERSION(9, 6), 0, 0,
	  { ALL, SCRIPT_OLD, FUNCTION_OLD, SCOPE_OLD, CODE_OLD(128), DEOPT_OLD,
	    WASM(8, 5, 120, 0, 208, 312, 68, 7), BYTECODES(54, 32), TYPES(64, 132, 118, 177) } },
	{ VERSION(10, 1), VERSION(10, 2), 0, 0,
	  { ALL, SCRIPT_OLD, FUNCTION_OLD, SCOPE_102, CODE_OLD(128), DEOPT_OLD,
	    WASM(8, 5, 120, 0, 208, 312, 40, 7), BYTECODES(56, 32), TYPES(128, 195, 179, 256) } },
	{ VERSION(10, 7), VERSION(10, 8), 0, 0,
	  { ALL, SCRIPT_OLD, FUNCTION_OLD, SCOPE_102, CODE_OLD(128), DEOPT_OLD,
	    WASM(8, 5, 128, 0, 216, 312, 40, 7), BYTECODES(54, 32), TYPES(128, 192, 176, 253) } },
	{ VERSION(11, 3), VERSION(11, 3), 0, 0,
	  { ALL, SCRIPT_113, FUNCTION_OLD, SCOPE_102, CODE_113, DEOPT_OLD,
	    WASM(8, 5, 120, 0, 208, 200, 116, 7), BYTECODES(54, 32), TYPES(128, 191, 175, 261) } },
	{ VERSION(11, 8), VERSION(11, 8), 0, 0,
	  { ALL, SCRIPT_113, FUNCTION_118, SCOPE_102, CODE_118, DEOPT_OLD,
	    WASM(8, 5, 120, 0, 216, 200, 84, 7), BYTECODES(52, 32), TYPES(128, 191, 175, 263) } },
	{ VERSION(12, 4), VERSION(12, 4), 0, 0,
	  { ALL, SCRIPT_113, FUNCTION_118, SCOPE_102, CODE_124, DEOPT_OLD,
	    MAGLEV, WASM(8, 5, 72, 160, 32, 200, 84, 7),
	    BYTECODES(64, 24), TYPES(128, 205, 174, 272) } },
	{ VERSION(12, 9), VERSION(12, 9), 0, 0,
	  { ALL, SCRIPT_113, FUNCTION_129, SCOPE_129(5), CODE_124, DEOPT_OLD,
	    MAGLEV, WASM_129(8, 5, 152, 240, 84, 7),
	    BYTECODES(64, 24), TYPES(128, 185, 205, 279) } },
	{ VERSION(13, 0), VERSION(13, 0), 0, 0,
	  { ALL, SCRIPT_113, FUNCTION_129, SCOPE_129(5), CODE_124, DEOPT_OLD,
	    MAGLEV, WASM_129(8, 5, 152, 240, 84, 7),
	    BYTECODES(64, 24), TYPES(128, 185, 205, 278) } },
	{ VERSION(13, 5), VERSION(13, 6), 0, 4,
	  { ALL, SCRIPT_113, FUNCTION_129, GROUP, SCOPE_129(5), CODE_136(9), DEOPT_136,
	    MAGLEV, WASM_129(8, 8, 152, 240, 84, 7),
	    BYTECODES(64, 24), TYPES(128, 186, 205, 280) } },
	{ VERSION(13, 7), VERSION(13, 7), 0, 4,
	  { ALL, SCRIPT_113, FUNCTION_129, GROUP, SCOPE_129(5), CODE_136(9), DEOPT_136,
	    MAGLEV, WASM_129(8, 8, 152, 240, 84, 7),
	    BYTECODES(64, 24), TYPES(128, 184, 205, 282) } },
	{ VERSION(14, 0), VERSION(14, 1), 2, 4,
	  { ALL_141, SCRIPT_113, FUNCTION_129, GROUP, SCOPE_129(5), CODE_136(9), DEOPT_136,
	    MAGLEV, WASM_129(8, 8, 152, 240, 84, 7),
	    BYTECODES(64, 24), TYPES(128, 184, 205, 284) } },
	{ VERSION(14, 5), VERSION(14, 6), 2, 4,
	  { ALL_141, SCRIPT_113, FUNCTION_129, SCOPE_129(5), CODE_136(9), DEOPT_136,
	    MAGLEV_145, WASM_129(48, 8, 104, 232, 44, 8),
	    BYTECODES(64, 24), TYPES(128, 185, 205, 286) } },
	{ VERSION(14, 7), VERSION(14, 7), 2, 0,
	  { ALL_141, SCRIPT_113, FUNCTION_129, SCOPE_129(5), CODE_136(10), DEOPT_136,
	    WASM_129(48, 8, 104, 232, 44, 8), BYTECODES(64, 24), TYPES(128, 185, 205, 286) } },
	{ VERSION(14, 9), VERSION(14, 9), 3, 0,
	  { ALL_141, SCRIPT_149, FUNCTION_129, SCOPE_129(6), CODE_136(10), DEOPT_136,
	    .array_plain = 1, WASM_129(48, 8, 104, 232, 44, 8),
	    BYTECODES(64, 24), TYPES(128, 185, 205, 276) } },
	{ VERSION(15, 0), VERSION(15, 0), 3, 0,
	  { ALL_141, SCRIPT_149, FUNCTION_129, SCOPE_129(6), CODE_136(10), DEOPT_136,
	    .array_plain = 1, WASM_129(48, 8, 104, 232, 44, 8),
	    BYTECODES(64, 24), TYPES(128, 185, 205, 276) } },
	{ VERSION(15, 6), VERSION(15, 6), 3, 0,
	  { COMPRESSED_156, BYTECODES(36, 12), TYPES(128, 185, 205, 279) } },
	{ VERSION(15, 8), VERSION(15, 8), 3, 0,
	  { COMPRESSED_156, BYTECODES(36, 12), TYPES(128, 185, 205, 280) } },
};
/* clang-format on */

bool v8_layout(const struct v8_version *v, bool compressed, struct v8_config *ret,
	       struct v8_naming *ret_naming)
{
	const uint32_t version = VERSION(v->major, v->minor);

	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
		if (v->major < 256 && v->minor < 256 && version >= layouts[i].first &&
		    version <= layouts[i].last && layouts[i].c.compressed == compressed) {
			*ret = layouts[i].c;
			ret_naming->position_flags = layouts[i].position_flags;
			ret_naming->safepoints = layouts[i].safepoints;
			ret_naming->before_first = version >= VERSION(8, 4);
			/* One flag fewer comes before it. */
			ret_naming->kind_shift =
				layouts[i].c.scope_classless || version >= VERSION(15, 6) ? 16 : 17;
			return true;
		}
	}
	return false;
}
