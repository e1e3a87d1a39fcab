/* SPDX-License-Identifier: Apache-2.0 */
/* Sections of either kind: their encodings, false values in them, and the cost of one bad entry. */
#include "tests/unit/cfi_fixture.h"

TestSuite(cfi_sections, .init = setup, .fini = teardown);

Test(cfi_sections, every_usual_pointer_encoding)
{
	/* pcrel sdata4 */
	size_t of = cie_full(1, "zR", (const uint8_t[]){ DW_EH_PE_pcrel | DW_EH_PE_sdata4 }, 1, 16);

	fde_head(of);
	u32((uint32_t)(TEXT - (SECTION + s.n)));
	u32(0x10);
	u8(0);
	end();
	/* absolute udata4, with a personality and an LSDA encoding before it */
	of = cie_full(3, "zPLR",
		      (const uint8_t[]){ DW_EH_PE_indirect | DW_EH_PE_pcrel | DW_EH_PE_sdata4, 1, 2,
					 3, 4, DW_EH_PE_udata4, DW_EH_PE_udata4 },
		      7, 16);
	fde_head(of);
	u32(TEXT + 0x100);
	u32(0x10);
	BYTES(4, 0, 0, 0, 0);
	end();
	/* uleb128 */
	of = cie_full(4, "zR", (const uint8_t[]){ DW_EH_PE_uleb128 }, 1, 16);
	fde_head(of);
	BYTES(0x80, 0xa4, 0x80, 0x02, 0x10, 0);
	end();
	run(SIZE_MAX / 2);
	gives("0x401000 rsp+8 same cfa-8\n0x401010 end undefined undefined\n"
	      "0x401100 rsp+8 same cfa-8\n0x401110 end undefined undefined\n"
	      "0x401200 rsp+8 same cfa-8\n"
	      "0x401210 end undefined undefined\n");
}

Test(cfi_sections, indirect_and_unknown_bases_are_counted)
{
	size_t of = cie_full(1, "zR", (const uint8_t[]){ DW_EH_PE_indirect | DW_EH_PE_absptr }, 1,
			     16);

	fde(of, 0, 0x10);
	end();
	of = cie_full(1, "zR", (const uint8_t[]){ DW_EH_PE_datarel | DW_EH_PE_sdata4 }, 1, 16);
	fde(of, 0, 0x10);
	end();
	run(SIZE_MAX / 2);
	gives("");
	cr_assert_eq(rows.skipped[ROWS_SKIP_ENCODING], 2);
}

Test(cfi_sections, old_gcc_augmentation_eh)
{
	size_t of = cie_full(1, "eh", NULL, 0, 16);

	fde(of, 0, 0x10);
	end();
	run(SIZE_MAX / 2);
	gives("0x401000 rsp+8 same cfa-8\n0x401010 end undefined undefined\n");
}

Test(cfi_sections, lengths_of_64_bits_in_both_sections)
{
	size_t of;

	s.wide = true;
	of = cie();
	fde(of, 0, 0x10);
	end();
	run(3);
	gives("0x401000 rsp+8 same cfa-8\n0x401010 end undefined undefined\n");

	teardown();
	setup();
	s.wide = true;
	eh = false;
	of = cie();
	fde(of, 0, 0x10);
	end();
	run(3);
	gives("0x401000 rsp+8 same cfa-8\n0x401010 end undefined undefined\n");
}

Test(cfi_sections, debug_frame_of_version_4)
{
	size_t of;

	eh = false;
	of = cie_full(4, "", NULL, 0, 16);
	fde(of, 0x20, 0x10);
	BYTES(DW_CFA_set_loc);
	u64(TEXT + 0x28);
	BYTES(DW_CFA_def_cfa_offset, 32);
	end();
	run(SIZE_MAX / 2);
	gives("0x401020 rsp+8 same cfa-8\n0x401028 rsp+32 same cfa-8\n"
	      "0x401030 end undefined undefined\n");
}

Test(cfi_sections, location_that_goes_back_is_refused)
{
	size_t of = cie();

	fde(of, 0x20, 0x10);
	u8(DW_CFA_set_loc);
	u64(TEXT + 0x10);
	end();
	run(SIZE_MAX / 2);
	gives("0x401020 end undefined undefined\n");
	cr_assert_eq(rows.skipped[ROWS_SKIP_INSTRUCTIONS], 1);
}

Test(cfi_sections, bad_cies_cost_their_functions_only)
{
	size_t bad = cie_full(2, "", NULL, 0, 16),
	       letters = cie_full(1, "zXR", (const uint8_t[]){ 0, 0 }, 2, 16), good = cie();

	fde(bad, 0, 0x10);
	end();
	fde(letters, 0x40, 0x10);
	end();
	fde(good, 0x80, 0x10);
	end();
	fde(good + 4, 0xc0, 0x10); /* not the start of a CIE */
	end();
	run(SIZE_MAX / 2);
	gives("0x401080 rsp+8 same cfa-8\n0x401090 end undefined undefined\n");
	cr_assert_eq(rows.skipped[ROWS_SKIP_CIE_VERSION], 1);
	cr_assert_eq(rows.skipped[ROWS_SKIP_CIE_AUGMENTATION], 1);
	cr_assert_eq(rows.skipped[ROWS_SKIP_NO_CIE], 3);
}

Test(cfi_sections, cie_that_moves_the_location_is_refused)
{
	size_t of;

	begin();
	u32(0);
	BYTES(1, 0, 1, 0x78, 16, DW_CFA_def_cfa, 7, 8, DW_CFA_set_loc);
	u64(TEXT);
	of = s.open;
	end();
	fde(of, 0, 0x10);
	end();
	run(SIZE_MAX / 2);
	gives("");
	cr_assert_eq(rows.skipped[ROWS_SKIP_CIE], 1);
	cr_assert_eq(rows.skipped[ROWS_SKIP_NO_CIE], 1);
}

Test(cfi_sections, functions_elsewhere_are_dropped_and_counted)
{
	size_t of = cie();

	fde_head(of), u64(0), u64(0x10), end();
	fde_head(of), u64(0x1000), u64(0x10), end();
	fde(of, 0, 0), end();
	fde(of, 0xfff0, 0x1000), end();
	run(SIZE_MAX / 2);
	gives("0x410ff0 rsp+8 same cfa-8\n0x411000 end undefined undefined\n");
	cr_assert_eq(rows.skipped[ROWS_SKIP_DISCARDED], 2);
	cr_assert_eq(rows.skipped[ROWS_SKIP_OUTSIDE], 1);
}

Test(cfi_sections, section_cut_short_at_any_byte_is_survived)
{
	size_t of = cie(), first = s.n, whole;

	fde(of, 0, 0x40);
	BYTES(DW_CFA_advance_loc | 1, DW_CFA_def_cfa_offset, 16, DW_CFA_expression, 6, 2,
	      DW_OP_breg6, 0);
	end();
	whole = s.n;
	for (size_t n = 0; n < whole; n++) {
		struct section keep = s;

		s.n = n;
		run(SIZE_MAX / 2);
		cr_assert_eq(rows.count, 0);
		cr_assert_eq(rows.skipped[ROWS_SKIP_ENTRY] != 0, n != 0 && n != first);
		teardown();
		setup();
		s = keep;
	}
}

Test(cfi_sections, length_that_lies_is_counted)
{
	size_t of = cie();

	fde(of, 0, 0x40);
	end();
	memset(s.byte + s.open, 0xfe, 4);
	run(SIZE_MAX / 2);
	gives("");
	cr_assert_eq(rows.skipped[ROWS_SKIP_ENTRY], 1);
}

Test(cfi_sections, zero_length_inside_a_section_is_passed_over)
{
	size_t of = cie();

	u32(0);
	u32(0);
	fde(of, 0, 0x10);
	end();
	run(SIZE_MAX / 2);
	gives("0x401000 rsp+8 same cfa-8\n0x401010 end undefined undefined\n");
}

Test(cfi_sections, augmentations_that_are_known_or_have_a_length)
{
	size_t old = cie_full(1, "armcc+", NULL, 0, 16),
	       behind = cie_full(1, "zRX", (const uint8_t[]){ DW_EH_PE_udata4, 9 }, 2, 16),
	       before = cie_full(1, "zXR", (const uint8_t[]){ 9, DW_EH_PE_udata4 }, 2, 16),
	       arm = cie_full(1, "zRSB", (const uint8_t[]){ DW_EH_PE_absptr }, 1, 16);

	fde(old, 0, 0x10);
	end();
	fde_head(behind), u32(TEXT + 0x10), u32(0x10), u8(0), end();
	fde_head(before), u32(TEXT + 0x20), u32(0x10), u8(0), end();
	fde(arm, 0x30, 0x10), u8(0), end();
	run(SIZE_MAX / 2);
	gives("0x401000 rsp+8 same cfa-8\n0x401020 end undefined undefined\n"
	      "0x401030 rsp+8 same cfa-8\n0x401040 end undefined undefined\n");
	cr_assert_eq(rows.skipped[ROWS_SKIP_CIE_AUGMENTATION], 1);
}
