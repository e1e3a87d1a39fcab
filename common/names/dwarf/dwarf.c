/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "common/base/clock.h"
#include "common/names/dwarf/dwarf.h"
#include "common/names/dwarf/dwarfinfo.h"
#include "common/names/dwarf/dwarfkeeper.h"
#include "common/names/dwarf/dwarfwire.h"
#include "common/wire/scm.h"

/* A worker ends itself when a request has taken DWARFWORKER_CPU_S. This timeout is for one that is
 * stopped, waits for a file system, or does not want to end. It is shorter than the launcher waits
 * for a silent tool. By hand, larger files are allowed, with two seconds more for each 16 MiB. */
#define PATIENCE_NS 8000000000ull
#define SMALL_MAX (48ull << 20)
#define START_NS 2000000000ull
#define OPEN_FDS 2
#define MAX_ASKED 16   /* files that one lookup may get */
#define MAX_WANTS 4096 /* files that one lookup may want, with those that cannot be had */

struct dwarf {
	const struct symfile *file, *alt;
	uint64_t max, worker; /* worker: the number of the one in which it is open */
	unsigned kills;
	struct dwarfinfo *info; /* owned; set if libdw runs in this process */
	uint32_t slot;
	bool lost;
	size_t bytes;
	enum dwarfinfo_want want;
	unsigned asked; /* files wanted by the present lookup */
	bool alone;	/* wants no more files (dwarf_leave_alone) */
	uint8_t want_id[8];
	char want_name[NAMES_TEXT + 1];
};

/* The keeper and worker of this process. */
static struct {
	int control, socket; /* of the keeper, of the worker; -1: none */
	bool keeper_gone;    /* it has stopped answering */
	bool hung_up;	     /* the last exchange failed because the worker had ended */
	bool killed;	     /* the keeper reported that the previous worker had been killed */
	uint64_t worker;     /* number of the present worker */
	uint64_t life_ns, worked_ns;
	uint64_t heap; /* of the next worker */
	uint64_t (*more)(void *ctx, uint64_t heap);
	void *more_ctx;
	struct dwarf *files[DWARFWIRE_FILES];
	uint8_t answer[DWARFWIRE_MAX];
} host = { .control = -1, .socket = -1 };

void dwarf_use_keeper(int control, unsigned life_s, uint64_t heap)
{
	host.control = control;
	host.life_ns = life_s * 1000000000ull;
	host.heap = heap;
}

void dwarf_grow_with(uint64_t (*more)(void *ctx, uint64_t heap), void *ctx)
{
	host.more = more;
	host.more_ctx = ctx;
}

void dwarf_set_heap(uint64_t heap)
{
	host.heap = heap;
}

/* --- the worker --- */

static void worker_drop(void)
{
	if (host.socket >= 0)
		close(host.socket);
	host.socket = -1;
}

static int wait_for(int fd, short events, uint64_t deadline_ns)
{
	for (;;) {
		const uint64_t now_ns = clock_mono_ns();
		const uint64_t left_ns = now_ns < deadline_ns ? deadline_ns - now_ns : 0;
		struct pollfd p = { .fd = fd, .events = events };
		/* Look once even after the deadline: we may have been stopped ourselves. */
		const int n = poll(&p, 1, left_ns ? (int)(left_ns / 1000000 + 1) : 0);

		if (n > 0)
			return 0;
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n == 0 && !left_ns)
			return -ETIMEDOUT;
	}
}

/* Receives a worker's socket from the keeper. A descriptor or -errno. */
static int take_socket(void)
{
	char byte;
	int fd;

	if (scm_receive(host.control, &byte, 1, &fd, 1, MSG_DONTWAIT) <= 0)
		return -EPIPE;
	host.killed = byte == DWARFKEEPER_KILLED;
	return fd >= 0 ? fd : -EAGAIN;
}

/* Requests a worker. A descriptor; -EAGAIN: the keeper cannot start one now; another -errno: the
 * keeper is gone or stopped. */
static int ask_keeper(void)
{
	const uint64_t deadline_ns = clock_mono_ns() + START_NS;

	if (send(host.control, &host.heap, sizeof(host.heap), MSG_NOSIGNAL | MSG_DONTWAIT) !=
	    sizeof(host.heap))
		return -EPIPE;
	const int r = wait_for(host.control, POLLIN, deadline_ns);

	return r ? r : take_socket();
}

/* Kills the worker and starts a new one. */
static int worker_start(void)
{
	worker_drop();
	host.killed = false;
	if (host.keeper_gone)
		return -EPIPE;
	const int r = ask_keeper();

	/* Never wait for a silent keeper twice: that would hold up all naming. */
	host.keeper_gone = r < 0 && r != -EAGAIN;
	if (r < 0)
		return r;
	host.socket = r;
	host.worked_ns = 0;
	host.worker++;
	return 0;
}

static int send_ask(const struct dwarfwire_ask *a, const int *fds, size_t fd_count)
{
	/* The queue holds at most requests without an answer. If it is full, the worker hangs. */
	const ssize_t n = scm_send(host.socket, a, sizeof(*a), fds, fd_count, MSG_DONTWAIT);

	return n < 0 ? (int)n : 0;
}

static uint64_t patience_ns(const struct dwarf *d)
{
	return PATIENCE_NS + (d->max > SMALL_MAX ? ((d->max - SMALL_MAX) >> 23) * 1000000000 : 0);
}

/* Sends a request, and returns the verdict of its answer. After DWARF_LOST there is no worker. */
static int exchange(struct dwarf *d, const struct dwarfwire_ask *a, const int *fds, size_t fd_count,
		    struct names *ret)
{
	const uint64_t start_ns = clock_mono_ns();
	int verdict, r = send_ask(a, fds, fd_count);
	uint64_t bytes;
	ssize_t n = 0;

	if (!r)
		r = wait_for(host.socket, POLLIN, start_ns + patience_ns(d));
	if (!r) {
		n = recv(host.socket, host.answer, sizeof(host.answer), MSG_DONTWAIT | MSG_TRUNC);
		r = n > 0 ? 0 : n == 0 ? -EPIPE : -errno;
	}
	/* An upper bound of the cpu time that it took. */
	host.worked_ns += clock_mono_ns() - start_ns;
	host.hung_up = r == -EPIPE || r == -ECONNRESET;
	if (r || (size_t)n > sizeof(host.answer) ||
	    !dwarfwire_take((struct span){ .data = host.answer, .len = (size_t)n }, &verdict,
			    &bytes, ret)) {
		worker_drop();
		d->bytes = 0;
		return DWARF_LOST;
	}
	if (verdict == -ENOMEM) {
		/* The worker is full, also for other files. */
		worker_drop();
		return SYMFILE_TOO_LARGE;
	}
	/* Bounded, since it is charged to the budget of all files. */
	d->bytes = bytes < 4 * d->max ? (size_t)bytes : (size_t)(4 * d->max);
	return verdict;
}

/* Opens d in the present worker if it is not open there yet. */
static int open_there(struct dwarf *d)
{
	const int fds[OPEN_FDS] = { symfile_fd(d->file), d->alt ? symfile_fd(d->alt) : -1 };
	const struct dwarfwire_ask a = { .kind = DWARFWIRE_OPEN, .file = d->slot, .value = d->max };
	struct pollfd p = { .fd = host.socket };

	/* A worker that ended while idle did not die of this file. A worker near its limit of cpu
	 * time must not reach it during this request, or this file would be blamed. */
	if (host.socket >= 0 && (host.worked_ns >= host.life_ns ||
				 (poll(&p, 1, 0) > 0 && p.revents & (POLLHUP | POLLERR))))
		worker_drop();
	int r = host.socket >= 0 ? 0 : worker_start();

	if (r)
		return r;
	if (d->worker == host.worker)
		return 0;
	r = exchange(d, &a, fds, fds[1] >= 0 ? 2 : 1, NULL);
	if (!r)
		d->worker = host.worker;
	return r;
}

/* --- files --- */

static int new_slot(struct dwarf *d)
{
	for (uint32_t i = 0; i < DWARFWIRE_FILES; i++) {
		if (host.files[i])
			continue;
		host.files[i] = d;
		d->slot = i;
		return 0;
	}
	return -EMFILE;
}

/* Whether the worker ran out of memory and is gone. Other files may have filled it; in the next
 * worker this file is alone. */
static bool filled(int r)
{
	return r == SYMFILE_TOO_LARGE && host.socket < 0;
}

/* Whether somebody else killed the worker while it read this file. The kernel does so if memory is
 * short, which is not the file's fault. Starts the next worker to find out. */
static bool was_killed(struct dwarf *d)
{
	if (host.hung_up)
		worker_start();
	if (!host.hung_up || !host.killed)
		return false;
	d->kills++;
	return true;
}

/* Requests more heap for d, and drops the worker so that the next one gets it. False: there is no
 * more. */
static bool grow(struct dwarf *d)
{
	if (!host.more)
		return false;
	const uint64_t had = host.heap;

	host.heap = host.more(host.more_ctx, 2 * had);
	if (host.heap < had + had / 8)
		return false;
	/* libdw's own data takes nearly as much again as the sections. */
	d->max = host.heap / 5 * 3;
	worker_drop();
	return true;
}

/* Opens d, and sends request a unless it is NULL. Tries again in a new worker if that may help. */
static int ask(struct dwarf *d, const struct dwarfwire_ask *a, struct names *ret)
{
	for (bool was_filled = false;;) {
		int r = open_there(d);

		if (!r && a)
			r = exchange(d, a, NULL, 0, ret);
		if (filled(r) && !was_filled)
			was_filled = true;
		else if (r == SYMFILE_TOO_LARGE && grow(d))
			was_filled = false;
		else if (r != DWARF_LOST || !was_killed(d) || d->kills > 1)
			return r;
		if (ret)
			names_reset(ret);
	}
}

int dwarf_open(const struct symfile *f, const struct symfile *alt, uint64_t max, struct dwarf **ret)
{
	struct dwarf *d = calloc(1, sizeof(*d));
	int r;

	if (!d)
		return -ENOMEM;
	d->file = f;
	d->alt = alt;
	d->max = max;
	if (host.control < 0 || symfile_fd(f) < 0) {
		r = dwarfinfo_open(f, alt, max, &d->info);
		if (r)
			free(d);
		else
			*ret = d;
		return r;
	}
	r = new_slot(d);
	if (r) {
		free(d);
		return r;
	}
	r = ask(d, NULL, NULL);
	if (r) {
		if (r == DWARF_LOST && d->kills > 1)
			r = DWARF_KILLED;
		dwarf_free(d);
		return r;
	}
	*ret = d;
	return 0;
}

void dwarf_free(struct dwarf *d)
{
	if (!d)
		return;
	if (d->info) {
		dwarfinfo_free(d->info);
	} else {
		const struct dwarfwire_ask a = { .kind = DWARFWIRE_CLOSE, .file = d->slot };

		if (host.socket >= 0 && d->worker == host.worker && send_ask(&a, NULL, 0))
			worker_drop();
		host.files[d->slot] = NULL;
	}
	free(d);
}

/* Stores what the lookup wants. False: an invalid answer. */
static bool note_want(struct dwarf *d, const struct names *n)
{
	const struct call *c = &n->calls[0];

	if (n->count != 1 || c->line < DWARFINFO_WANTS_PACKAGE ||
	    c->line > DWARFINFO_WANTS_BESIDE || c->name.len != 2 * sizeof(d->want_id) ||
	    !c->source.len || c->source.len > NAMES_TEXT)
		return false;
	for (size_t i = 0; i < sizeof(d->want_id); i++) {
		const char digits[] = { c->name.data[2 * i], c->name.data[2 * i + 1], 0 };

		d->want_id[i] = (uint8_t)strtoul(digits, NULL, 16);
	}
	memcpy(d->want_name, c->source.data, c->source.len);
	d->want_name[c->source.len] = '\0';
	d->want = (enum dwarfinfo_want)c->line;
	return true;
}

enum dwarfinfo_want dwarf_wants(const struct dwarf *d, struct span *ret_id, const char **ret_name)
{
	*ret_id = (struct span){ .data = d->want_id, .len = sizeof(d->want_id) };
	*ret_name = d->want_name;
	return d->want;
}

/* Opens an offered file, which is taken. NULL: it is not a .dwo file or a package. This is checked
 * because a libdw that was taken over may have chosen the path. */
static struct symfile *open_offer(int fd)
{
	const struct symfile_section *s;
	struct symfile *f;

	if (fd < 0)
		return NULL;
	if (symfile_open(fd, &f) != 0) {
		close(fd);
		return NULL;
	}
	if (symfile_last_section(f, ".debug_info.dwo", &s) == 0)
		return f;
	symfile_free(f);
	return NULL;
}

bool dwarf_offer(struct dwarf *d, int fd)
{
	const struct dwarfwire_ask a = { .kind = DWARFWIRE_OFFER, .file = d->slot };
	struct symfile *f = open_offer(fd);
	const bool fits = f;

	d->want = DWARFINFO_WANTS_NOTHING;
	if (d->info) {
		dwarfinfo_offer(d->info, f);
		return fits;
	}
	if (host.socket >= 0 && d->worker == host.worker) {
		const int own = f ? symfile_fd(f) : -1;

		if (exchange(d, &a, &own, f ? 1 : 0, NULL) == DWARF_LOST && !was_killed(d))
			d->lost = true;
	}
	symfile_free(f);
	return fits;
}

static int lookup(struct dwarf *d, uint64_t address, struct names *ret)
{
	const struct dwarfwire_ask a = { .kind = DWARFWIRE_LOOKUP,
					 .file = d->slot,
					 .value = address };

	if (d->lost)
		return SYMFILE_NONE;
	if (d->info)
		return dwarfinfo_lookup(d->info, address, ret);
	const int r = ask(d, &a, ret);

	if (r == DWARF_LOST)
		d->lost = true;
	if (r == SYMFILE_TOO_LARGE || r == DWARFINFO_AGAIN)
		return r;
	return r || !ret->count ? SYMFILE_NONE : 0;
}

int dwarf_lookup(struct dwarf *d, uint64_t address, struct names *ret)
{
	int r = DWARFINFO_AGAIN;

	for (unsigned n = 0; r == DWARFINFO_AGAIN; n++) {
		names_reset(ret);
		d->want = DWARFINFO_WANTS_NOTHING;
		r = lookup(d, address, ret);
		if (r != DWARFINFO_AGAIN)
			break;
		if (n == MAX_WANTS || !note_want(d, ret)) {
			d->lost = true;
			r = SYMFILE_NONE;
		} else if (d->alone || d->asked == MAX_ASKED) {
			dwarf_offer(d, -1);
		} else {
			d->asked++;
			break;
		}
	}
	if (r != DWARFINFO_AGAIN)
		d->asked = 0;
	if (r)
		names_reset(ret);
	return r;
}

void dwarf_leave_alone(struct dwarf *d)
{
	d->alone = true;
}

bool dwarf_keeper_gone(void)
{
	return host.keeper_gone;
}

bool dwarf_lost(const struct dwarf *d)
{
	return d->lost;
}

unsigned dwarf_kills(const struct dwarf *d)
{
	return d->kills;
}

bool dwarf_rest(struct dwarf *d, bool packed)
{
	const struct dwarfwire_ask a = { .kind = DWARFWIRE_REST, .file = d->slot, .value = packed };

	if (d->info)
		return dwarfinfo_rest(d->info, packed);
	if (host.socket < 0 || d->worker != host.worker)
		return false;
	const int r = exchange(d, &a, NULL, 0, NULL);

	if (r == DWARF_LOST && was_killed(d) && d->kills == 1)
		return true;
	if (r == DWARF_LOST)
		d->lost = true;
	return r == 1;
}

size_t dwarf_bytes(const struct dwarf *d)
{
	return sizeof(*d) + (d->info			? dwarfinfo_bytes(d->info)
			     : d->worker == host.worker ? d->bytes
							: 0);
}
