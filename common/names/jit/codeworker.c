/* SPDX-License-Identifier: Apache-2.0 */
#include "common/names/jit/codeworker.h"

#include <errno.h>
#include <malloc.h>
#include <sys/socket.h>
#include <unistd.h>
#include "common/base/command/exits.h"
#include "common/names/jit/codewire.h"
#include "common/names/program/workercell.h"
#include "common/wire/bus/scm.h"

#define LIFE_SPARE_S 60

static const struct seccomp_rule worker_calls[] = {
	CALL("recvmsg"),
	CALL("sendto"),
	CALL("pread64"), /* reads the files that it is handed */
	SECCOMP_END,
};

struct codeworker {
	int socket;
	struct codefile *files[CODEWIRE_FILES]; /* NULL: this place is empty */
	struct names names;
	struct codewire_answer answer;
	uint8_t bytes[CODEWIRE_MAX];
};

static int read_on(struct codefile *f, uint64_t most, struct codewire_head *h)
{
	struct codefile_progress p;
	const int r = codefile_read(f, most, CODEWORKER_READ_NS, &p);

	h->read = p.read;
	h->flags = (p.behind ? CODEWIRE_BEHIND : 0) | (p.anew ? CODEWIRE_ANEW : 0) |
		   (p.full ? CODEWIRE_FULL : 0) | (p.malformed ? CODEWIRE_MALFORMED : 0);
	return r;
}

static int find(struct codeworker *w, struct codefile *f, const struct codewire_ask *a)
{
	int r = 0;

	for (uint32_t i = 0; i < a->count && r == 0; i++)
		r = codefile_find(f, a->addresses[i], a->time_ns, &w->names, &w->answer.results[i]);
	if (r)
		names_reset(&w->names);
	else
		w->answer.head.count = a->count;
	return r;
}

/* Serves a request. Sets *fd to -1 if it keeps the descriptor. Returns false if the request has no
 * answer. */
static bool serve(struct codeworker *w, const struct codewire_ask *a, int *fd)
{
	struct codewire_head *h = &w->answer.head;
	struct codefile **f = &w->files[a->file];

	names_reset(&w->names);
	*h = (struct codewire_head){ 0 };
	if (a->kind == CODEWIRE_OPEN || a->kind == CODEWIRE_CLOSE) {
		codefile_free(*f);
		*f = NULL;
		malloc_trim(0);
	}
	if (a->kind == CODEWIRE_CLOSE)
		return false;
	if (a->kind == CODEWIRE_OPEN && *fd >= 0) {
		h->verdict = codefile_open(*fd, (enum msg_jit_kind)a->jit, a->value, f);
		*fd = -1;
	}
	if (*f && a->kind == CODEWIRE_READ)
		h->verdict = read_on(*f, a->value, h);
	else if (*f && a->kind == CODEWIRE_FIND)
		h->verdict = find(w, *f, a);
	else if (*f && a->kind == CODEWIRE_FLUSH)
		h->verdict = codefile_flush(*f);
	h->bytes = *f ? codefile_bytes(*f) : 0;
	return true;
}

static void work(struct codeworker *w)
{
	for (;;) {
		struct codewire_ask a;
		int fd;
		const ssize_t n = scm_receive(w->socket, &a, sizeof(a), &fd, 1, 0);

		if (n <= 0)
			return;
		workercell_begin(CODEWORKER_CPU_S);
		const bool go_on = codewire_is_ask(&a, (size_t)n) && serve(w, &a, &fd);

		workercell_end();
		if (fd >= 0)
			close(fd);
		if (!go_on)
			continue;
		const size_t size = codewire_put(&w->answer, &w->names, w->bytes);

		if (send(w->socket, w->bytes, size, MSG_NOSIGNAL) < 0)
			return;
	}
}

static _Noreturn void run(int socket, uint64_t heap)
{
	static struct codeworker w;

	workercell_enter(worker_calls, heap, CODEWORKER_LIFE_S + LIFE_SPARE_S + CODEWORKER_CPU_S);
	w.socket = socket;
	work(&w);
	_exit(EXITS_DONE);
}

const struct filekeeper_class codeworker_class = {
	.name = "prof-symd-code",
	.run = run,
	.calls = worker_calls,
};
