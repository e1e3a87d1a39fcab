/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-send/transfer/patience.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define TICK_S 1
/* The first tick may be up to a second old when the call begins. */
#define TICKS 3
#define SOCKETS 256 /* the maximum number of prof-send's descriptors; higher ones are not watched */

static volatile sig_atomic_t sockets[SOCKETS]; /* descriptor plus 1; 0: unused */
static volatile sig_atomic_t reading, ticks;

/* The connection that curl has been reading for seconds probably has more to read; others probably
 * do not. */
static void on_tick(int number)
{
	const int saved = errno;

	if (!reading || ++ticks < TICKS)
		return;
	for (int i = 0; i < SOCKETS; i++) {
		struct pollfd p = { .fd = sockets[i] - 1, .events = POLLIN };

		if (p.fd >= 0 && poll(&p, 1, 0) == 1)
			shutdown(p.fd, SHUT_RDWR);
	}
	errno = saved;
}

static void set_blocked(int how)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	pthread_sigmask(how, &set, NULL);
}

int patience_begin(void)
{
	const struct sigaction a = { .sa_handler = on_tick, .sa_flags = SA_RESTART };
	const struct itimerval often = { .it_interval.tv_sec = TICK_S, .it_value.tv_sec = TICK_S };

	/* Threads that start later inherit the blocked signal, and it never interrupts other
	 * calls. */
	set_blocked(SIG_BLOCK);
	return sigaction(SIGALRM, &a, NULL) || setitimer(ITIMER_REAL, &often, NULL) ? -errno : 0;
}

static int on_open(void *ctx, curl_socket_t fd, curlsocktype purpose)
{
	for (int i = 0; i < SOCKETS; i++) {
		if (sockets[i])
			continue;
		sockets[i] = fd + 1;
		break;
	}
	return CURL_SOCKOPT_OK;
}

static int on_close(void *ctx, curl_socket_t fd)
{
	for (int i = 0; i < SOCKETS; i++)
		if (sockets[i] == fd + 1)
			sockets[i] = 0;
	return close(fd);
}

bool patience_watch(CURL *easy)
{
	return curl_easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, on_open) == CURLE_OK &&
	       curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, on_close) == CURLE_OK;
}

void patience_start(void)
{
	ticks = 0;
	reading = 1;
	set_blocked(SIG_UNBLOCK);
}

void patience_stop(void)
{
	set_blocked(SIG_BLOCK);
	reading = 0;
}
