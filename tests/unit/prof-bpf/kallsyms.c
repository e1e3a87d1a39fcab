/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/base/system/clock.h"
#include "tools/prof-bpf/kernel/kallsyms.h"
#include "tools/prof-bpf/kernel/sideband.h"

static char path[64], modules[64];

/* The number of calls that find no memory. */
static unsigned starved;

void *__real_malloc(size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_malloc(size_t n)
{
	if (!starved)
		return __real_malloc(n);
	starved--;
	return NULL;
}

static void write_text(const char *where, const char *text)
{
	FILE *f = fopen(where, "we");

	cr_assert_not_null(f);
	fputs(text, f);
	fclose(f);
}

static struct kallsyms *from_text(const char *text)
{
	struct kallsyms_config c = { .path = path, .modules = modules, .no_iterator = true };
	struct kallsyms *k = NULL;

	snprintf(path, sizeof(path), "/tmp/kallsyms-%d", getpid());
	snprintf(modules, sizeof(modules), "/tmp/modules-%d", getpid());
	write_text(path, text);
	write_text(modules, "");
	cr_assert_eq(kallsyms_new(&c, &k), 0);
	return k;
}

static void done(struct kallsyms *k)
{
	kallsyms_free(k);
	unlink(path);
	unlink(modules);
}

static void expect(struct kallsyms *k, uint64_t addr, const char *name, const char *module,
		   uint64_t start)
{
	struct str got_name, got_module;
	uint64_t got_start;
	bool found = kallsyms_lookup(k, addr, &got_name, &got_module, &got_start);

	if (!name) {
		cr_assert(!found, "%" PRIx64 " is %.*s", addr, (int)got_name.len, got_name.data);
		return;
	}
	cr_assert(found, "%" PRIx64, addr);
	cr_assert(str_eq(got_name, str_from(name)), "%" PRIx64 " is %.*s", addr, (int)got_name.len,
		  got_name.data);
	cr_assert(str_eq(got_module, str_from(module)));
	cr_assert_eq(got_start, start);
}

#define TEXT \
	"ffffffff81000000 T _text\n" \
	"ffffffff81000100 t __pi_one\n" \
	"ffffffff81000100 T one\n" \
	"ffffffff81000200 D data\n" \
	"ffffffff81000300 W two\n" \
	"ffffffff81000400 T _etext\n" \
	"ffffffffc0001000 t three\t[mod]\n" \
	"ffffffffc0000000 T four\t[mod]\n" \
	"ffffffffc0800000 t bpf_prog_1_a\t[bpf]\n" \
	"rubbish\n" \
	"ffffffff81000500 T late_unfinished"

Test(kallsyms, address_is_found_in_the_function_that_covers_it)
{
	struct kallsyms *k = from_text(TEXT);

	cr_assert(kallsyms_available(k));
	expect(k, 0xffffffff80ffffff, NULL, NULL, 0);
	expect(k, 0xffffffff81000000, "_text", "", 0xffffffff81000000);
	expect(k, 0xffffffff810000ff, "_text", "", 0xffffffff81000000);
	expect(k, 0xffffffff81000100, "one", "", 0xffffffff81000100);
	expect(k, 0xffffffff81000250, "one", "", 0xffffffff81000100);
	expect(k, 0xffffffff81000300, "two", "", 0xffffffff81000300);
	expect(k, 0xffffffffc0000010, "four", "mod", 0xffffffffc0000000);
	expect(k, 0xffffffffc0001010, "three", "mod", 0xffffffffc0001000);
	expect(k, 0, NULL, NULL, 0);
	done(k);
}

Test(kallsyms, padding_belongs_to_the_function_after_it)
{
	struct kallsyms *k = from_text("ffffffff80ffffe0 t __pfx_first\n"
				       "ffffffff81000000 T first\n"
				       "ffffffff81000fe0 t __pfx_second\n"
				       "ffffffff81000ff0 T second\n"
				       "ffffffff81002000 t __pfx_alone\n"
				       "ffffffff81002100 T third\n"
				       "ffffffff81002200 T _etext\n"
				       "ffffffffa0000000 t __pfx_of\t[mod]\n"
				       "ffffffffa0000010 t of\t[mod]\n");

	expect(k, 0xffffffff81000000, "first", "", 0xffffffff81000000);
	expect(k, 0xffffffff81000fdf, "first", "", 0xffffffff81000000);
	expect(k, 0xffffffff81000fe0, "second", "", 0xffffffff81000ff0);
	expect(k, 0xffffffff81000fef, "second", "", 0xffffffff81000ff0);
	expect(k, 0xffffffff81000ff0, "second", "", 0xffffffff81000ff0);
	expect(k, 0xffffffff81002010, "second", "", 0xffffffff81000ff0);
	expect(k, 0xffffffff81002100, "third", "", 0xffffffff81002100);
	expect(k, 0xffffffffa0000000, "__pfx_of", "mod", 0xffffffffa0000000);
	expect(k, 0xffffffffa0000010, "of", "mod", 0xffffffffa0000010);
	done(k);
}

Test(kallsyms, nothing_is_stretched_over_the_end_of_text)
{
	struct kallsyms *k = from_text(TEXT);

	expect(k, 0xffffffff81000400, NULL, NULL, 0);
	expect(k, 0xffffffff81000480, NULL, NULL, 0);
	expect(k, 0xffffffffa0000000, NULL, NULL, 0);
	expect(k, 0xffffffffffffffff, NULL, NULL, 0);
	done(k);
}

Test(kallsyms, base_moves_when_the_lowest_symbol_comes_late)
{
	struct kallsyms *k =
		from_text("ffffffff81000000 T b\nffffffff80000000 T a\nffffffff82000000 T c\n");

	expect(k, 0xffffffff80000001, "a", "", 0xffffffff80000000);
	expect(k, 0xffffffff81000001, "b", "", 0xffffffff81000000);
	expect(k, 0xffffffff82000001, "c", "", 0xffffffff82000000);
	done(k);
}

Test(kallsyms, hidden_addresses_are_no_error)
{
	struct kallsyms *k = from_text("0000000000000000 T a\n0000000000000000 T b\n");

	cr_assert(!kallsyms_available(k));
	expect(k, 0xffffffff81000000, NULL, NULL, 0);
	done(k);
}

Test(kallsyms, missing_file_is_an_error)
{
	struct kallsyms_config c = { .path = "/nonexistent/kallsyms", .no_iterator = true };
	struct kallsyms *k;

	cr_assert_eq(kallsyms_new(&c, &k), -ENOENT);
}

Test(kallsyms, bpf_programs_come_and_go)
{
	struct kallsyms *k = from_text(TEXT);
	struct sideband_event e = { .type = SIDEBAND_KSYMBOL,
				    .addr = 0xffffffffc0900000,
				    .length = 0x80,
				    .name = STR_LIT("bpf_prog_2_b") };

	expect(k, 0xffffffffc0800010, "bpf_prog_1_a", "bpf", 0xffffffffc0800000);
	kallsyms_event(k, &e);
	expect(k, 0xffffffffc090007f, "bpf_prog_2_b", "bpf", 0xffffffffc0900000);
	expect(k, 0xffffffffc0900080, NULL, NULL, 0);
	/* Another module takes its place. */
	e.name = STR_LIT("bpf_trampoline_9");
	kallsyms_event(k, &e);
	expect(k, 0xffffffffc0900000, "bpf_trampoline_9", "bpf", 0xffffffffc0900000);
	e.unregister = true;
	kallsyms_event(k, &e);
	kallsyms_event(k, &e);
	expect(k, 0xffffffffc0900000, NULL, NULL, 0);
	expect(k, 0xffffffffc0800010, "bpf_prog_1_a", "bpf", 0xffffffffc0800000);
	done(k);
}

Test(kallsyms, module_load_has_all_read_again)
{
	struct kallsyms *k = from_text(TEXT);
	struct kallsyms_figures f;

	write_text(path, TEXT "\nffffffffc1000000 t five\t[new]\n");
	cr_assert_eq(kallsyms_tick(k, KALLSYMS_CHECK_NS), 0);
	expect(k, 0xffffffffc1000000, NULL, NULL, 0);
	/* Only its use count changes the second time. */
	write_text(modules, "new 16384 0 - Live 0xffffffffc1000000\n");
	cr_assert_eq(kallsyms_tick(k, KALLSYMS_CHECK_NS + 1), 0);
	expect(k, 0xffffffffc1000000, NULL, NULL, 0);
	cr_assert_eq(kallsyms_tick(k, 2 * KALLSYMS_CHECK_NS), 0);
	expect(k, 0xffffffffc1000000, "five", "new", 0xffffffffc1000000);
	write_text(modules, "new 16384 7 a,b Live 0xffffffffc1000000\n");
	cr_assert_eq(kallsyms_tick(k, 3 * KALLSYMS_CHECK_NS), 0);
	kallsyms_figures(k, &f);
	cr_assert_eq(f.reads, 2);
	done(k);
}

Test(kallsyms, without_memory_the_names_stay_and_are_read_later)
{
	struct kallsyms *k = from_text(TEXT);
	struct kallsyms_figures f;

	write_text(path, TEXT "\nffffffffc1000000 t five\t[new]\n");
	write_text(modules, "new 16384 0 - Live 0xffffffffc1000000\n");
	starved = 1;
	cr_assert_eq(kallsyms_tick(k, 2 * KALLSYMS_CHECK_NS), -ENOMEM);
	expect(k, 0xffffffffc0001000, "three", "mod", 0xffffffffc0001000);
	expect(k, 0xffffffffc1000000, NULL, NULL, 0);
	cr_assert_eq(kallsyms_tick(k, 3 * KALLSYMS_CHECK_NS - 1), 0);
	expect(k, 0xffffffffc1000000, NULL, NULL, 0);
	cr_assert_eq(kallsyms_tick(k, 4 * KALLSYMS_CHECK_NS), 0);
	expect(k, 0xffffffffc1000000, "five", "new", 0xffffffffc1000000);
	kallsyms_figures(k, &f);
	cr_assert(f.reads == 2 && f.failures == 1);
	done(k);
}

Test(kallsyms, names_that_could_not_be_read_at_the_start_are_read_later)
{
	struct kallsyms *k = from_text(TEXT);

	kallsyms_free(k);

	const struct kallsyms_config c = { .path = path, .modules = modules, .no_iterator = true };

	cr_assert_eq(kallsyms_open(&c, &k), 0);
	starved = 1;
	cr_assert_eq(kallsyms_read(k), -ENOMEM);
	expect(k, 0xffffffffc0001000, NULL, NULL, 0);
	for (uint64_t i = 1; i <= 3; i++)
		cr_assert_eq(kallsyms_tick(k, i * KALLSYMS_CHECK_NS), 0);
	expect(k, 0xffffffffc0001000, "three", "mod", 0xffffffffc0001000);
	done(k);
}

/* --- this kernel --- */

/* Every text symbol of /proc/kallsyms whose address no other shares is found by name. */
static size_t compare_with_file(struct kallsyms *k)
{
	FILE *f = fopen("/proc/kallsyms", "re");
	char line[2048], name[1024], last[1024] = "", module[64];
	uint64_t addr, last_addr = 0;
	char type;
	size_t wrong = 0;
	size_t checked = 0;
	bool last_fit = false;

	cr_assert_not_null(f);
	while (fgets(line, sizeof(line), f)) {
		int n = sscanf(line, "%" SCNx64 " %c %1023s %63s", &addr, &type, name, module);

		if (n != 3 || !strchr("tTwW", type) || strncmp(name, "__pfx_", 6) == 0)
			continue;
		if (addr == last_addr) {
			last_fit = false;
			continue;
		}
		if (last_fit && last_addr) {
			struct str got, got_module;
			uint64_t start;

			checked++;
			if (!kallsyms_lookup(k, last_addr + (addr - last_addr > 1), &got,
					     &got_module, &start) ||
			    !str_eq(got, str_from(last)) || start != last_addr)
				wrong += strcmp(last, "_etext") != 0 &&
					 strcmp(last, "_einittext") != 0;
		}
		strcpy(last, name);
		last_addr = addr;
		last_fit = true;
	}
	fclose(f);
	cr_assert_eq(wrong, 0, "%zu of %zu", wrong, checked);
	return checked;
}

Test(kallsyms, every_symbol_of_this_kernel_is_found)
{
	struct kallsyms_config c = { .no_iterator = true };
	struct kallsyms_figures f;
	struct kallsyms *k;
	uint64_t before = clock_mono_ns();

	cr_assert_eq(kallsyms_new(&c, &k), 0);
	uint64_t took = clock_mono_ns() - before;
	cr_assert(kallsyms_available(k));
	kallsyms_figures(k, &f);
	fprintf(stderr, "%zu symbols, %zu dynamic, %zu bytes, %" PRIu64 " us\n", f.symbols,
		f.dynamic, f.bytes, took / 1000);
	cr_assert_gt(f.symbols, 10000);
	cr_assert_lt(f.bytes, 24 * f.symbols);
	cr_assert_gt(compare_with_file(k), 10000);
	kallsyms_free(k);
}

/* Names as long as a table keeps them, and bytes that no name of a kernel has. */
Test(kallsyms, unusual_names_are_found)
{
	char text[4096], name[1200];

	memset(name, 'a', sizeof(name));
	name[sizeof(name) - 1] = 0;
	snprintf(text, sizeof(text),
		 "ffffffff81000000 T %s\nffffffff81000100 T k\303\244se\nffffffff81000200 T x\n",
		 name);

	struct kallsyms *k = from_text(text);

	name[1023] = 0;
	expect(k, 0xffffffff81000001, name, "", 0xffffffff81000000);
	expect(k, 0xffffffff81000101, "k??se", "", 0xffffffff81000100);
	expect(k, 0xffffffff81000201, "x", "", 0xffffffff81000200);
	done(k);
}

/* Modules that follow one another, and more symbols than share the position of a name. */
Test(kallsyms, each_symbol_has_its_name_and_module)
{
	char *text = malloc(1 << 20), name[64], module[16];
	size_t len = 0;

	for (unsigned i = 0; i < 5000; i++)
		len += (size_t)sprintf(text + len, "%lx t function_%u\t[m%u]\n",
				       0xffffffffc0000000 + i * 16ul, i * 7919, i / 50);

	struct kallsyms *k = from_text(text);

	for (unsigned i = 0; i < 5000; i++) {
		sprintf(name, "function_%u", i * 7919);
		sprintf(module, "m%u", i / 50);
		expect(k, 0xffffffffc0000000 + i * 16ul + i % 16, name, module,
		       0xffffffffc0000000 + i * 16ul);
	}
	done(k);
	free(text);
}

Test(kallsyms, iterator_gives_what_the_file_gives)
{
	struct kallsyms_config c = { .only_iterator = true };
	struct kallsyms_figures f;
	struct kallsyms *k;
	uint64_t before = clock_mono_ns();

	cr_assert_eq(kallsyms_new(&c, &k), 0);
	uint64_t took = clock_mono_ns() - before;
	kallsyms_figures(k, &f);
	fprintf(stderr, "%zu symbols, %zu dynamic, %zu bytes, %" PRIu64 " us by iterator\n",
		f.symbols, f.dynamic, f.bytes, took / 1000);
	cr_assert(f.by_iterator);
	cr_assert_gt(compare_with_file(k), 10000);
	kallsyms_free(k);
}
