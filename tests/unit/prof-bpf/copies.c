/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of files, given in place of the files themselves. */
#include "tests/unit/opener_fixture.h"

TestSuite(copies, .init = set_up, .fini = clean_up);

Test(copies, holes_of_a_memfd_take_no_memory_in_its_copy)
{
	uint64_t at;
	struct stat st;
	char c;
	int fd = memfd_create("sparse", MFD_CLOEXEC);

	cr_assert_eq(write(fd, "\177ELF", 4), 4);
	cr_assert_eq(ftruncate(fd, 63 << 20), 0);
	cr_assert_eq(pwrite(fd, "end", 3, (40 << 20) + 4094), 3);
	pid_t pid = start_mapper(fd, &at);
	struct opener_result r = open_mapped(pid, at);
	cr_assert_eq(r.status, 0);
	cr_assert_eq(fstat(r.fd, &st), 0);
	cr_assert_eq(st.st_size, 63 << 20);
	cr_assert_leq(st.st_blocks * 512, 3 * 4096);
	cr_assert(pread(r.fd, &c, 1, (40 << 20) + 4096) == 1 && c == 'd');
	cr_assert(pread(r.fd, &c, 1, 50 << 20) == 1 && c == 0);
	stop(pid);
}

Test(copies, copies_end_with_their_last_descriptor_and_stay_within_their_bound)
{
	static char bytes[300u << 10];
	struct opener_figures f;
	struct opener_result r[4];
	uint64_t at[4];
	pid_t pid[4];

	memset(bytes, 1, sizeof(bytes));
	memcpy(bytes, "\177ELF", 4);
	start();
	for (unsigned i = 0; i < 4; i++) {
		int fd = memfd_create("code", MFD_CLOEXEC);

		cr_assert_eq(write(fd, bytes, sizeof(bytes)), sizeof(bytes));
		pid[i] = start_mapper(fd, &at[i]);
		close(fd);
	}
	for (unsigned i = 0; i < 4; i++) {
		struct opener_request q = { .kind = OPENER_MAPPING,
					    .pid = (uint32_t)pid[i],
					    .start = at[i],
					    .end = at[i] + 4096 };
		r[i] = ask(&q, 3000);
	}
	/* All copies together have one MiB. */
	for (unsigned i = 0; i < 3; i++)
		cr_assert_eq(r[i].status, 0);
	cr_assert_eq(r[3].status, OPENER_NO_ROOM);
	opener_figures(opener, &f);
	cr_assert(f.copies == 3 && f.copy_bytes == 3 * sizeof(bytes) && f.no_room >= 1);
	/* Duplicates also count, even in another process. */
	int twin = dup(r[0].fd);
	pid_t holder = fork();
	if (holder == 0) {
		for (;;)
			pause();
	}
	for (unsigned i = 0; i < 3; i++)
		close(r[i].fd);
	close(twin);
	opener_tick(opener, clock_mono_ns());
	opener_figures(opener, &f);
	cr_assert_eq(f.copies, 3);
	stop(holder);
	opener_tick(opener, clock_mono_ns() + 1000000000);
	opener_figures(opener, &f);
	cr_assert(f.copies == 0 && f.copy_bytes == 0);
	for (unsigned i = 0; i < 4; i++)
		stop(pid[i]);
	finish();
}
