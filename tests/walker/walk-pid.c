/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walker in user space, on a live process: `walk-pid PID` stops its threads, makes rows of the files it maps, and prints each thread's stack by the text that BPF
 * runs: `thread TID`, a line `0xADDRESS` a frame, and `end REASON`. What gdb says of the same process is the test's oracle.
 */
#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>
#include "bpf/walk.h"
#include "common/msg.h"
#include "tools/prof-bpf/tables.h"
#include "tools/prof-deltas/extract.h"

#define MAX_FILES 1024
#define MAX_MAPPINGS 16384

const struct env *env_current;

static struct {
	dev_t dev;
	ino_t ino;
	uint16_t slot;
} files[MAX_FILES];
static size_t file_count;
static struct tables_mapping mappings[MAX_MAPPINGS];
static size_t mapping_count;
static pid_t pid;

static long read_process(void *ctx, void *dst, uint32_t size, uint64_t addr)
{
	struct iovec to = { dst, size }, from = { (void *)addr, size };

	return process_vm_readv(pid, &to, 1, &from, 1, 0) == (ssize_t)size ? 0 : -1;
}

static uint16_t load(struct tables *t, int fd)
{
	struct rows rows;
	struct extract how;
	struct rows_cursor c;
	struct unwind_row_wire row;
	uint16_t slot;

	if (tables_file_new(t, &slot))
		errx(1, "no slot");
	rows_init(&rows);
	if (extract_rows(fd, &rows, &how) || !rows.count ||
	    tables_rows_begin(t, slot, rows.base, rows.span, rows.count, rows.rules.n) ||
	    tables_rows_rules(t, slot, rows.rules.rule, rows.rules.n)) {
		tables_file_none(t, slot);
	} else {
		rows_cursor_init(&c, &rows);
		while (rows_next(&c, &row)) {
			int r = tables_rows_chunk(t, slot, &row, 1);

			if (r)
				errx(1, "row at %#x refused: %d", row.offset, r);
		}
		if (tables_rows_end(t, slot))
			errx(1, "rows refused at their end");
	}
	rows_done(&rows);
	return slot;
}

/* The vDSO is in no file: its bytes are read from the process. */
static int vdso_file(uint64_t start, uint64_t end)
{
	int fd = memfd_create("vdso", MFD_CLOEXEC);
	char page[4096];

	for (uint64_t a = start; a < end; a += sizeof(page)) {
		if (read_process(NULL, page, sizeof(page), a) || write(fd, page, sizeof(page)) != sizeof(page))
			break;
	}
	return fd;
}

static void read_maps(struct tables *t)
{
	char path[64], *line = NULL;
	size_t cap = 0;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	FILE *f = fopen(path, "re");
	if (!f)
		err(1, "%s", path);
	while (getline(&line, &cap, f) > 0) {
		uint64_t start, end, offset;
		unsigned major, minor;
		unsigned long inode;
		char perms[8], name[256] = "";

		if (sscanf(line, "%lx-%lx %7s %lx %x:%x %lu %255[^\n]", &start, &end, perms, &offset, &major, &minor, &inode, name) < 7)
			continue;
		if (perms[2] != 'x' || mapping_count == MAX_MAPPINGS)
			continue;
		struct tables_mapping *m = &mappings[mapping_count++];
		*m = (struct tables_mapping){ .start = start, .end = end, .offset = offset };
		bool vdso = strstr(name, "[vdso]") != NULL;
		if (!inode && !vdso)
			continue;
		snprintf(path, sizeof(path), "/proc/%d/map_files/%lx-%lx", pid, start, end);
		int fd = vdso ? vdso_file(start, end) : open(path, O_RDONLY | O_CLOEXEC);
		struct stat st;
		if (fd < 0 || fstat(fd, &st) < 0)
			err(1, "%s", path);
		size_t i = 0;
		while (i < file_count && (files[i].dev != st.st_dev || files[i].ino != st.st_ino))
			i++;
		if (i == file_count) {
			if (i == MAX_FILES)
				errx(1, "too many files");
			files[i].dev = st.st_dev;
			files[i].ino = st.st_ino;
			files[i].slot = load(t, fd);
			file_count++;
		}
		m->slot = files[i].slot;
		close(fd);
	}
	free(line);
	fclose(f);
}

static void walk_thread(const struct process_entry *p, pid_t tid)
{
	static struct walk w;
	struct user_regs_struct r;

	if (ptrace(PTRACE_GETREGS, tid, NULL, &r) < 0)
		err(1, "registers of %d", tid);
	walk_begin(&w, p, 0, (long)r.orig_rax < 0);
	const uint64_t regs[16] = { r.rax, r.rdx, r.rcx, r.rbx, r.rsi, r.rdi, r.rbp, r.rsp, r.r8, r.r9, r.r10, r.r11, r.r12, r.r13, r.r14, r.r15 };
	memcpy(w.regs, regs, sizeof(regs));
	w.pc = r.rip;
	w.sp = r.rsp;
	w.fp = r.rbp;
	printf("thread %d\n", tid);
	for (;;) {
		uint64_t pc = w.pc;
		uint32_t before = w.count;
		int stop = walk_step(&w);

		if (w.count > before)
			printf("%#lx%s\n", pc, w.frames[before] & SAMPLE_FRAME_FP ? " fp" : "");
		if (stop)
			break;
	}
	printf("end %s\n", walk_reason_word(w.reason));
}

int main(int argc, char **argv)
{
	const struct tables_config c = { .slabs_fd = -1, .files_fd = -1, .rules_fd = -1, .processes_fd = -1, .max_bytes = 256 * SLAB_BYTES };
	struct tables *t;
	struct process_entry p;
	struct env env = { .read_user = read_process };
	uint32_t generation;
	char path[64];

	if (argc != 2 || (pid = atoi(argv[1])) <= 0)
		errx(2, "usage: walk-pid PID");
	if (tables_new(&c, &t))
		errx(1, "no memory");
	read_maps(t);
	if (tables_process_set(t, (uint32_t)pid, 0, mappings, mapping_count, true, &generation) ||
	    !tables_process_entry(t, (uint32_t)pid, &p))
		errx(1, "mappings refused");
	tables_env(t, &env);
	env_current = &env;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	DIR *d = opendir(path);
	if (!d)
		err(1, "%s", path);
	for (struct dirent *e = readdir(d); e; e = readdir(d)) {
		pid_t tid = atoi(e->d_name);
		int status;

		if (tid <= 0 || ptrace(PTRACE_SEIZE, tid, NULL, NULL) < 0)
			continue;
		if (ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) < 0 || waitpid(tid, &status, __WALL) < 0)
			err(1, "stopping %d", tid);
		walk_thread(&p, tid);
		ptrace(PTRACE_DETACH, tid, NULL, NULL);
	}
	closedir(d);
	tables_free(t);
	return 0;
}
