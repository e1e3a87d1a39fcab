/* SPDX-License-Identifier: Apache-2.0 */
/* A file of the host (host.h), as the parts of prof-bpf see it. */
#ifndef PROF_BPF_FILES_HOST_FILE_H
#define PROF_BPF_FILES_HOST_FILE_H

#include <stdbool.h>
#include <stdint.h>

#define HOST_RECHECK_NS 1000000000ull
#define HOST_IDLE_FILE_NS 30000000000ull /* an unmapped file keeps its rows this long */
/* An open descriptor is kept this long after its last use. */
#define HOST_FD_IDLE_NS 10000000000ull
#define HOST_MAX_FDS 64
#define HOST_MAX_MAPPINGS 131072 /* per process */
#define HOST_PATH_MAX 1024

/* A mapped file. Borrowed from the host, valid until the next host_tick. */
struct host_file {
	uint32_t id;   /* from 1 on, never reused */
	uint64_t sent; /* mark for the caller, 0 in a new file */
	uint64_t dev;  /* as in struct opener_file: major << 32 | minor */
	uint64_t inode, ctime_ns, size;
	uint32_t uid, mode;
	uint32_t flags; /* enum msg_file_flags of common/wire/msg.h */
	bool roots;	/* only root could have written it: that of the host, or of a container */
	bool foreign_owner; /* uid was reported by a file server (FUSE, NFS) */
	bool described;	    /* set by the caller: prof-symd has reported its runtime */
	bool offered;	    /* set by the caller: prof-symd is or will be told to look at it */
	bool looked_at;	    /* set by the caller: the result of that is known */
	uint16_t slot;	    /* slot in the tables, from its first sample on; 0: none */
	char *path;	    /* as seen by the first process that mapped it; NUL-terminated */
	uint32_t path_len;
};

#endif
