/* SPDX-License-Identifier: Apache-2.0 */
#include "common/names/jit/codereader.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/base/bytes/numbers.h"
#include "common/base/system/clock.h"
#include "common/base/tables/blockers.h"
#include "common/names/jit/codewire.h"
#include "common/names/jit/codeworker.h"
#include "common/names/program/filekeeper.h"
#include "common/wire/bus/scm.h"
#include "common/wire/peer/lastword.h"

/* Bytes that a file may take besides its code map: a partial record, and a line table. */
#define BESIDE (4u << 20)

struct codereader_worker {
	enum filekeeper_kind kind;
	int socket;	 /* -1: none */
	uint64_t number; /* number of the current worker */
	bool killed;	 /* the keeper reported that the previous one had been killed */
	uint64_t worked_ns, rest_ns, rest_until_ns, died_ns;
	struct codereader *files[CODEWIRE_FILES];
};

struct codereader {
	struct codefile *file;	      /* owned; set if it is read in this process */
	struct codereader_worker *at; /* otherwise the worker of its class */
	int fd;			      /* -1: it is read in this process */
	enum msg_jit_kind kind;
	uint32_t slot;
	size_t max, bytes;
	uint64_t worker; /* the number of the worker in which it is open; 0: none */
	unsigned kills;
	uint32_t uid;
	bool begun; /* some worker has read from it */
	bool lost;
};

/* The workers of this process. */
static struct {
	bool used;
	uint64_t heap;
	struct codereader_worker of_root, of_others;
	struct blockers blockers;
	struct codewire_answer answer;
	struct names names;
	uint8_t bytes[CODEWIRE_MAX];
} host = { .of_root = { .kind = FILEKEEPER_CODE_OF_ROOT, .socket = -1 },
	   .of_others = { .kind = FILEKEEPER_CODE_OF_OTHERS, .socket = -1 } };

void codereader_use_workers(uint64_t heap)
{
	host.used = true;
	host.heap = heap;
}

/* --- the workers --- */

static void worker_drop(struct codereader_worker *w)
{
	if (w->socket >= 0)
		close(w->socket);
	w->socket = -1;
}

static int worker_start(struct codereader_worker *w)
{
	worker_drop(w);
	const int r = filekeeper_worker(w->kind, host.heap, &w->killed);

	if (r < 0)
		return r;
	w->socket = r;
	w->worked_ns = 0;
	w->number++;
	return 0;
}

/* Each further death makes the wait for the next worker longer. */
static void worker_died(struct codereader_worker *w)
{
	const uint64_t now_ns = clock_mono_ns();

	if (!w->rest_ns || now_ns - w->died_ns >= CODEREADER_FORGIVE_NS)
		w->rest_ns = CODEREADER_REST_NS;
	else if (w->rest_ns < CODEREADER_REST_MAX_NS)
		w->rest_ns *= 2;
	w->died_ns = now_ns;
	w->rest_until_ns = now_ns + w->rest_ns;
}

static bool is_over(const struct codereader_worker *w)
{
	struct pollfd p = { .fd = w->socket };

	/* A worker near its limit of cpu time must not reach it during a request. */
	return w->worked_ns >= CODEWORKER_LIFE_S * 1000000000ull ||
	       (poll(&p, 1, 0) > 0 && p.revents & (POLLHUP | POLLERR));
}

/* Starts a worker if there is none. */
static int worker_ready(struct codereader_worker *w)
{
	/* A worker that ended while idle did not crash on a file. */
	if (w->socket >= 0 && is_over(w))
		worker_drop(w);
	if (clock_mono_ns() < w->rest_until_ns)
		return CODEREADER_LATER;
	if (w->socket >= 0)
		return 0;
	if (worker_start(w) == 0)
		return 0;
	w->rest_until_ns = clock_mono_ns() + CODEREADER_REST_NS;
	return CODEREADER_LATER;
}

/* Records that the worker failed at a file: it ended, or did not answer, or sent nonsense. Returns
 * CODEREADER_ANEW if it was killed from outside, which is not the file's fault. */
static int blame(struct codereader *c, bool ended)
{
	struct codereader_worker *w = c->at;

	worker_drop(w);
	c->bytes = 0;
	if (ended && worker_start(w) == 0 && w->killed && c->kills++ == 0)
		return CODEREADER_ANEW;
	worker_died(w);
	c->lost = true;
	return CODEREADER_LOST;
}

/* Sends a request and stores its answer in `host`. Returns a verdict of codefile.h, CODEREADER_LOST
 * or CODEREADER_ANEW; after the last two the worker is gone. */
static int exchange(struct codereader *c, const struct codewire_ask *a, int fd)
{
	struct codereader_worker *w = c->at;
	const uint64_t start_ns = clock_mono_ns();
	/* The queue only holds requests that the worker has not read. If it is full, the worker
	 * hangs. */
	const ssize_t sent = scm_send(w->socket, a, codewire_size(a), &fd, fd >= 0, MSG_DONTWAIT);
	int r = sent < 0 ? (int)sent : 0;
	ssize_t n = 0;

	if (!r)
		r = filekeeper_wait_for(w->socket, w->kind, start_ns + CODEREADER_PATIENCE_NS);
	if (r == -EDEADLK && c->uid)
		blockers_note(&host.blockers, c->uid, clock_mono_ns());
	if (!r) {
		n = recv(w->socket, host.bytes, sizeof(host.bytes), MSG_DONTWAIT | MSG_TRUNC);
		r = n > 0 ? 0 : n == 0 ? -EPIPE : -errno;
	}
	/* An upper bound of the cpu time that the request took. */
	const uint64_t worked_ns = clock_mono_ns() - start_ns;

	w->worked_ns += worked_ns;
	lastword_rest_for(worked_ns);
	if (r || (size_t)n > sizeof(host.bytes) ||
	    !codewire_take((struct span){ .data = host.bytes, .len = (size_t)n }, a, &host.answer,
			   &host.names))
		return blame(c, r == -EPIPE || r == -ECONNRESET);

	const uint64_t most = c->max + BESIDE, bytes = host.answer.head.bytes;

	/* Bounded, since it is charged to the memory of all files. */
	c->bytes = (size_t)numbers_smaller(bytes, most);
	return host.answer.head.verdict;
}

static bool is_open(const struct codereader *c)
{
	return c->at->socket >= 0 && c->worker == c->at->number;
}

/* Like is_open, but false if the worker ended while idle. */
static bool is_still_open(struct codereader *c)
{
	if (is_open(c) && is_over(c->at))
		worker_drop(c->at);
	return is_open(c);
}

/* Opens the file in the current worker, if it is not open there yet. */
static int open_there(struct codereader *c)
{
	const struct codewire_ask a = {
		.kind = CODEWIRE_OPEN, .file = c->slot, .value = c->max, .jit = c->kind
	};
	int r = worker_ready(c->at);

	if (r || is_open(c))
		return r;
	c->worker = 0;
	r = exchange(c, &a, c->fd);
	if (!r)
		c->worker = c->at->number;
	return r;
}

/* --- files --- */

/* Whether only root could have written the file: that of the host, or of a container. */
static bool is_of_root(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_uid == 0 && !(st.st_mode & (S_IWGRP | S_IWOTH));
}

static uint32_t owner_of(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 ? st.st_uid : 0;
}

int codereader_open(int fd, enum msg_jit_kind kind, bool contained, size_t max,
		    struct codereader **ret)
{
	struct codereader *c = calloc(1, sizeof(*c));
	int r = c ? 0 : -ENOMEM;

	if (c) {
		c->fd = fd;
		c->kind = kind;
		c->max = max;
	}
	if (c && !host.used) {
		c->fd = -1;
		r = codefile_open(fd, kind, max, &c->file);
		fd = -1;
	} else if (c) {
		c->uid = owner_of(fd);
		c->at = !contained && is_of_root(fd) ? &host.of_root : &host.of_others;
		while (c->slot < CODEWIRE_FILES && c->at->files[c->slot])
			c->slot++;
		r = c->slot < CODEWIRE_FILES ? 0 : -EMFILE;
	}
	if (r) {
		if (fd >= 0)
			close(fd);
		free(c);
		return r;
	}
	if (c->at)
		c->at->files[c->slot] = c;
	*ret = c;
	return 0;
}

void codereader_free(struct codereader *c)
{
	if (!c)
		return;
	if (c->at) {
		const struct codewire_ask a = { .kind = CODEWIRE_CLOSE, .file = c->slot };

		if (is_open(c) &&
		    scm_send(c->at->socket, &a, codewire_size(&a), NULL, 0, MSG_DONTWAIT) < 0)
			worker_drop(c->at);
		c->at->files[c->slot] = NULL;
		close(c->fd);
	}
	codefile_free(c->file);
	free(c);
}

uint64_t codereader_file_size(const struct codereader *c)
{
	struct stat st;

	if (c->file)
		return codefile_size(c->file);
	return fstat(c->fd, &st) == 0 ? (uint64_t)st.st_size : UINT64_MAX;
}

size_t codereader_bytes(const struct codereader *c)
{
	return sizeof(*c) + (c->file ? codefile_bytes(c->file) : is_open(c) ? c->bytes : 0);
}

int codereader_read(struct codereader *c, uint64_t most, struct codefile_progress *ret)
{
	const struct codewire_ask a = { .kind = CODEWIRE_READ, .file = c->slot, .value = most };

	*ret = (struct codefile_progress){ 0 };
	if (c->file)
		return codefile_read(c->file, most, 0, ret);
	if (c->lost)
		return CODEREADER_LOST;
	if (c->uid && blockers_has(&host.blockers, c->uid, clock_mono_ns()))
		return CODEREADER_LATER;
	const bool was_open = is_still_open(c);
	int r = open_there(c);

	ret->reopened = !r && !was_open && c->begun;
	c->begun |= !r;
	if (!r)
		r = exchange(c, &a, -1);
	ret->behind = r && r != CODEREADER_LOST;
	if (r > 0 || !is_open(c))
		return r;

	const struct codewire_head *h = &host.answer.head;

	ret->read = h->read;
	ret->behind |= (h->flags & CODEWIRE_BEHIND) != 0;
	ret->anew = h->flags & CODEWIRE_ANEW;
	ret->full = h->flags & CODEWIRE_FULL;
	ret->malformed = h->flags & CODEWIRE_MALFORMED;
	return r;
}

int codereader_flush(struct codereader *c)
{
	const struct codewire_ask a = { .kind = CODEWIRE_FLUSH, .file = c->slot };

	if (c->file)
		return codefile_flush(c->file);
	return c->lost ? CODEREADER_LOST : is_still_open(c) ? exchange(c, &a, -1) : CODEREADER_ANEW;
}

static int find_here(struct codereader *c, const uint64_t *addresses, unsigned count,
		     uint64_t time_ns, struct codefile_answer *ret)
{
	int r = 0;

	names_reset(&host.names);
	for (unsigned i = 0; i < count && r == 0; i++)
		r = codefile_find(c->file, addresses[i], time_ns, &host.names, &ret[i]);
	return r;
}

int codereader_find(struct codereader *c, const uint64_t *addresses, unsigned count,
		    uint64_t time_ns, struct codefile_answer ret[static CODEREADER_BATCH],
		    const struct names **ret_names)
{
	struct codewire_ask a = {
		.kind = CODEWIRE_FIND, .file = c->slot, .count = count, .time_ns = time_ns
	};

	*ret_names = &host.names;
	if (c->file)
		return find_here(c, addresses, count, time_ns, ret);
	if (c->lost)
		return CODEREADER_LOST;
	if (!is_still_open(c))
		return CODEREADER_ANEW;
	memcpy(a.addresses, addresses, count * sizeof(*addresses));
	const int r = exchange(c, &a, -1);

	if (r == 0)
		memcpy(ret, host.answer.results, count * sizeof(*ret));
	return r;
}
