/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which file systems may keep their users waiting, because their server or a user makes them: FUSE,
 * network file systems, and all unknown ones. Such a file system is *foreign*.
 *
 * Other file systems are *pseudo*: their files are made by the kernel, such as those of proc. No
 * program, no debug file and no map of a program is on one. But a user can mount one of their files
 * anywhere in their own namespace, and to open or read it may take a lock that the user holds:
 * /proc/PID/maps waits for the memory of that process. So nothing there is ever opened.
 *
 * A file's mount is identified by its number in fdinfo, and the mount's type by mountinfo. Reading
 * these asks no file system anything. An overlay counts as foreign unless the host's own mount
 * namespace shows it: any user can mount one, in their own namespace, over their own FUSE file
 * system.
 *
 * Local are: file systems that only root can mount, on block devices; those in memory; and the ones
 * that profpipe itself runs from.
 */
#ifndef PROF_BPF_OPEN_OPENING_MOUNTS_H
#define PROF_BPF_OPEN_OPENING_MOUNTS_H

#include <stdbool.h>
#include <stdint.h>

/* Bytes that are read of the host's table of mounts, and of that of a process in another namespace,
 * which any user may fill with bind mounts. A mount beyond counts as foreign. The kernel writes a
 * MiB in some ten milliseconds. */
#define MOUNTS_OF_HOST (16u << 20)
#define MOUNTS_OF_USER (1u << 20)
#define MOUNTS_KEPT 32		     /* answers that are remembered */
#define MOUNTS_KEPT_NS 2000000000ull /* how long they are kept: numbers are reused */
#define MOUNTS_TYPE 24		     /* bytes of a type's name that are compared */

/* One line of mountinfo. */
struct mounts_line {
	uint64_t id, dev; /* dev: major << 32 | minor */
	char type[MOUNTS_TYPE];
};

/* A parser of mountinfo (proc(5)), byte by byte, since lines are not limited in length. Zeroed at
 * first. Pure. */
struct mounts_parser {
	struct mounts_line line;
	unsigned field, len;
	uint64_t number, first;
	bool dash, typed, bad;
	char last;
};
/* Takes a character. Returns true if a line ends here; it is then in p->line. Skips invalid
 * lines. */
bool mounts_feed(struct mounts_parser *p, char c);

enum mounts_trust { MOUNTS_LOCAL, MOUNTS_LAYERED, MOUNTS_FOREIGN, MOUNTS_PSEUDO };
/* Returns how far a file system can be trusted, by the name of its type. MOUNTS_LAYERED: as far as
 * the file systems below it. Pure. */
enum mounts_trust mounts_trust(const char *type);

struct mounts {
	int proc; /* an O_PATH descriptor of a mounted proc; borrowed */
	uint64_t memory[2], base[2];
	struct mounts_answer {
		uint64_t id, dev, since_ns;
		enum mounts_trust trust; /* not MOUNTS_LAYERED */
	} kept[MOUNTS_KEPT];
	unsigned next;
};

void mounts_init(struct mounts *m, int proc);
/* Returns what the file system of an open file (also O_PATH) is: MOUNTS_LOCAL, MOUNTS_FOREIGN or
 * MOUNTS_PSEUDO. pid: a process that uses it; 0: none. *ret_dev: its device, or 0. Asks no file
 * system except proc, where it opens its own files. */
enum mounts_trust mounts_of(struct mounts *m, int fd, uint32_t pid, uint64_t *ret_dev);

#endif
