/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prof-metrics serves the launcher's figures to Prometheus. It holds only a listening socket and a
 * pipe. An attacker who takes it over gets no file and no memory of other tools, and can lie only
 * to its clients.
 */
#include <errno.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "common/base/command/cmdline.h"
#include "common/base/command/exits.h"
#include "common/base/command/log.h"
#include "common/base/command/stdfds.h"
#include "common/base/system/clock.h"
#include "common/status/metrics.h"
#include "tools/prof-metrics/confine.h"
#include "tools/prof-metrics/page.h"

#define PAGE_MAX (64u << 10)
#define CLIENTS 24
/* libmicrohttpd accepts up to ten connections before it closes any. At its limit it would accept
 * only one a second, so the limit must not be reached. */
#define CLIENTS_MOST (CLIENTS + 16)
/* How long a client may take for a request, or stay without one. The server's own limit, in
 * seconds, starts anew with each byte. */
#define CLIENT_S 5
#define CLIENT_NS (CLIENT_S * 1000000000ull)
#define CLIENT_BYTES 8192 /* of a request and the headers of its answer */
#define UP_NS 5000000000ull
#define WAIT_MS 1000

static const char usage[] =
	"usage: prof-metrics --listen-fd N --life-fd N\n"
	"Serve the figures of `profpipe run --metrics`, which starts it, to Prometheus.\n"
	"\n"
	"      --listen-fd N  the listening socket\n"
	"      --life-fd N    the pipe with the figures; its end ends prof-metrics\n"
	"  -v, --verbose      log more\n"
	"  -h, --help         print this help\n"
	"      --version      print the version\n";

struct source {
	int fd;
	struct metrics_word word; /* the latest figures */
	uint64_t heard_ns;	  /* 0: no figures yet */
};

/* The connections, the oldest first. */
struct clients {
	struct client {
		struct MHD_Connection *connection;
		uint64_t since_ns; /* when it came, or when its last request was answered */
		bool evicted;
	} at[CLIENTS_MOST];
	unsigned n, evicted;
};

/* libmicrohttpd then sees the end of the connection. */
static void evict(struct clients *clients, struct client *c)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(c->connection, MHD_CONNECTION_INFO_CONNECTION_FD);

	if (c->evicted || !info)
		return;
	c->evicted = true;
	clients->evicted++;
	shutdown(info->connect_fd, SHUT_RDWR);
}

static struct client *find(struct clients *clients, const struct MHD_Connection *c)
{
	for (unsigned i = 0; i < clients->n; i++)
		if (clients->at[i].connection == c)
			return &clients->at[i];
	return NULL;
}

static void forget(struct clients *clients, struct client *c)
{
	if (!c)
		return;
	clients->evicted -= c->evicted;
	clients->n--;
	memmove(c, c + 1, (size_t)(&clients->at[clients->n] - c) * sizeof(*c));
}

/* A client came or went. Others must not keep it out, neither idle ones nor many: one too many
 * evicts the oldest. A client that asks at once has its answer long before it is the oldest. */
static void on_connection(void *ctx, struct MHD_Connection *c, void **state,
			  enum MHD_ConnectionNotificationCode what)
{
	struct clients *clients = ctx;
	unsigned i = 0;

	if (what == MHD_CONNECTION_NOTIFY_CLOSED)
		forget(clients, find(clients, c));
	if (what != MHD_CONNECTION_NOTIFY_STARTED || clients->n == CLIENTS_MOST)
		return;
	clients->at[clients->n++] = (struct client){ .connection = c, .since_ns = clock_mono_ns() };
	while (clients->n - clients->evicted > CLIENTS && i < clients->n)
		evict(clients, &clients->at[i++]);
}

/* A request was answered, or failed. */
static void on_done(void *ctx, struct MHD_Connection *c, void **state,
		    enum MHD_RequestTerminationCode how)
{
	struct client *client = find(ctx, c);

	if (client)
		client->since_ns = clock_mono_ns();
}

static void evict_slow(struct clients *clients)
{
	const uint64_t now = clock_mono_ns();

	for (unsigned i = 0; i < clients->n; i++)
		if (now - clients->at[i].since_ns > CLIENT_NS)
			evict(clients, &clients->at[i]);
}

static enum MHD_Result answer(struct MHD_Connection *c, unsigned status, struct buf *text)
{
	struct MHD_Response *r = MHD_create_response_from_buffer(text->len, text->data,
								 MHD_RESPMEM_MUST_COPY);

	if (!r)
		return MHD_NO;
	(void)MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE,
				      "text/plain; version=0.0.4; charset=utf-8");
	const enum MHD_Result queued = MHD_queue_response(c, status, r);

	MHD_destroy_response(r);
	return queued;
}

/* A client has sent a request. */
static enum MHD_Result on_request(void *ctx, struct MHD_Connection *c, const char *url,
				  const char *method, const char *version, const char *body,
				  size_t *body_len, void **state)
{
	const struct source *s = ctx;
	struct buf b = BUF_INIT(PAGE_MAX);
	unsigned status = MHD_HTTP_OK;
	int r;

	/* libmicrohttpd calls this once with the headers, then with each piece of the body, which
	 * is ignored. */
	if (!*state) {
		*state = ctx;
		return MHD_YES;
	}
	if (*body_len) {
		*body_len = 0;
		return MHD_YES;
	}
	if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0) {
		status = MHD_HTTP_METHOD_NOT_ALLOWED;
		r = buf_append_str(&b, "only GET and HEAD\n");
	} else if (strcmp(url, "/metrics") != 0) {
		status = MHD_HTTP_NOT_FOUND;
		r = buf_append_str(&b, "only /metrics\n");
	} else {
		r = page_print(&b, &s->word, s->heard_ns && clock_mono_ns() - s->heard_ns < UP_NS);
	}
	const enum MHD_Result done = r ? MHD_NO : answer(c, status, &b);

	buf_done(&b);
	return done;
}

/* Returns false if the launcher is gone. */
static bool hear(struct source *s)
{
	struct metrics_word w;
	ssize_t n;

	for (n = read(s->fd, &w, sizeof(w)); n == sizeof(w); n = read(s->fd, &w, sizeof(w))) {
		if (w.magic != METRICS_MAGIC)
			return false;
		s->word = w;
		s->heard_ns = clock_mono_ns();
	}
	return n < 0 && (errno == EAGAIN || errno == EINTR);
}

/* The server may have pending work that no descriptor signals. */
static int wait_ms(struct MHD_Daemon *d)
{
	MHD_UNSIGNED_LONG_LONG ms;

	return MHD_get_timeout(d, &ms) == MHD_YES && ms < WAIT_MS ? (int)ms : WAIT_MS;
}

static int serve(struct MHD_Daemon *d, struct source *s, struct clients *clients)
{
	const union MHD_DaemonInfo *info = MHD_get_daemon_info(d, MHD_DAEMON_INFO_EPOLL_FD);

	if (!info) {
		log_error("the server cannot be watched; this is a bug: report this line");
		return EXITS_FAILED;
	}
	struct pollfd p[] = { { .fd = s->fd, .events = POLLIN },
			      { .fd = info->epoll_fd, .events = POLLIN } };

	while (hear(s)) {
		evict_slow(clients);
		if (MHD_run(d) != MHD_YES) {
			log_error("the server failed; see the limits of open files and memory");
			return EXITS_FAILED;
		}
		poll(p, 2, wait_ms(d));
	}
	return EXITS_DONE;
}

static int parse(int argc, char **argv, int *listen_fd, int *life_fd)
{
	enum { LISTEN = 1, LIFE };
	static const struct option longs[] = {
		{ "listen-fd", required_argument, NULL, LISTEN },
		{ "life-fd", required_argument, NULL, LIFE },
		CMDLINE_OPTIONS,
		{ 0 },
	};
	struct cmdline c = { .tool = "prof-metrics",
			     .usage = usage,
			     .shorts = ":vh",
			     .longs = longs,
			     .argc = argc,
			     .argv = argv };
	int r = EXITS_GO_ON;

	while (r == EXITS_GO_ON) {
		const int val = cmdline_next(&c);

		if (val == CMDLINE_END)
			break;
		r = val == CMDLINE_EXIT ? c.status
					: cmdline_fd(&c, val == LISTEN ? listen_fd : life_fd);
	}
	if (r != EXITS_GO_ON)
		return r;
	if (optind < argc)
		return cmdline_refuse_all("%s: not an option; see `prof-metrics --help`",
					  argv[optind]);
	if (*listen_fd < 0 || *life_fd < 0)
		return cmdline_refuse_all("--%s: missing; `profpipe run --metrics` gives it",
					  *listen_fd < 0 ? "listen-fd" : "life-fd");
	return r;
}

int main(int argc, char **argv)
{
	static struct source s = { .fd = -1 };
	static struct clients clients;
	int listen_fd = -1;

	stdfds_hold();
	log_init("prof-metrics", LOG_WARNING);
	const int r = parse(argc, argv, &listen_fd, &s.fd);

	if (r != EXITS_GO_ON)
		return r;
	signal(SIGPIPE, SIG_IGN);
	const int flags = fcntl(s.fd, F_GETFL);

	if (flags < 0 || fcntl(s.fd, F_SETFL, flags | O_NONBLOCK) < 0 ||
	    fcntl(listen_fd, F_GETFL) < 0) {
		log_error("--%s: the descriptor is not open; the launcher has to pass it",
			  fcntl(listen_fd, F_GETFL) < 0 ? "listen-fd" : "life-fd");
		return EXITS_FAILED;
	}
	struct MHD_Daemon *d = MHD_start_daemon(
		MHD_USE_EPOLL, 0, NULL, NULL, on_request, &s, MHD_OPTION_LISTEN_SOCKET, listen_fd,
		MHD_OPTION_CONNECTION_LIMIT, (unsigned)CLIENTS_MOST, MHD_OPTION_CONNECTION_TIMEOUT,
		(unsigned)CLIENT_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CLIENT_BYTES,
		MHD_OPTION_NOTIFY_CONNECTION, on_connection, &clients, MHD_OPTION_NOTIFY_COMPLETED,
		on_done, &clients, MHD_OPTION_END);

	if (!d) {
		log_error(
			"the HTTP server cannot be started: %s; raise the limits of open files and "
			"memory (ulimit -n, memory.max)",
			strerror(errno));
		return EXITS_FAILED;
	}
	const int status = confine_seal() ? EXITS_FAILED : serve(d, &s, &clients);

	MHD_stop_daemon(d);
	return status;
}
