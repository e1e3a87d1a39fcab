/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/run/wakeups.h"

#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include "common/base/system/clock.h"

#define DRAIN_MS_AT_99_HZ 50 /* less at higher rates, since deferred samples are large */
#define DRAIN_MS_MIN 10
#define DRAIN_MS_MAX 250

unsigned wakeups_drain_ms(unsigned hz)
{
	const unsigned ms = DRAIN_MS_AT_99_HZ * 100 / hz;

	return ms > DRAIN_MS_MAX ? DRAIN_MS_MAX : ms < DRAIN_MS_MIN ? DRAIN_MS_MIN : ms;
}

/* --- descriptors --- */

static int control(struct wakeups *w, int op, int fd, enum wakeups_source from, uint32_t events)
{
	struct epoll_event e = { .events = events, .data.u32 = from };

	return epoll_ctl(w->epoll, op, fd, &e) < 0 ? -errno : 0;
}

static uint32_t events_of(enum wakeups_how how)
{
	return how == WAKEUPS_ONCE   ? EPOLLIN | EPOLLONESHOT
	       : how == WAKEUPS_EDGE ? EPOLLIN | EPOLLET
				     : EPOLLIN;
}

int wakeups_add(struct wakeups *w, int fd, enum wakeups_source from, enum wakeups_how how)
{
	return fd < 0 ? 0 : control(w, EPOLL_CTL_ADD, fd, from, events_of(how));
}

void wakeups_listen(struct wakeups *w, int fd, enum wakeups_source from, bool hears)
{
	(void)control(w, EPOLL_CTL_MOD, fd, from, hears ? events_of(WAKEUPS_ALWAYS) : 0);
}

void wakeups_listen_again(struct wakeups *w, int fd, enum wakeups_source from)
{
	(void)control(w, EPOLL_CTL_MOD, fd, from, events_of(WAKEUPS_ONCE));
}

int wakeups_open(struct wakeups *w, unsigned hz)
{
	w->drain_ms = wakeups_drain_ms(hz);
	const struct timespec interval = { .tv_nsec = w->drain_ms * 1000000l };
	const struct itimerspec every = { .it_interval = interval, .it_value = interval };
	sigset_t set;

	w->epoll = epoll_create1(EPOLL_CLOEXEC);
	w->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	w->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (w->epoll < 0 || w->timer < 0 || w->signals < 0 ||
	    timerfd_settime(w->timer, 0, &every, NULL) < 0)
		return -errno;
	const int r = wakeups_add(w, w->timer, WAKEUPS_TIMER, WAKEUPS_ALWAYS);

	return r ? r : wakeups_add(w, w->signals, WAKEUPS_SIGNAL, WAKEUPS_ALWAYS);
}

/* --- the timer and signals --- */

bool wakeups_ticked(struct wakeups *w)
{
	uint64_t expirations;

	return read(w->timer, &expirations, sizeof(expirations)) >= 0;
}

uint64_t wakeups_next_ns(const struct wakeups *w)
{
	struct itimerspec next;

	return timerfd_gettime(w->timer, &next) < 0 ? 0 : clock_timespec_ns(next.it_value);
}

void wakeups_tick_after(struct wakeups *w, uint64_t ns)
{
	const struct itimerspec next = { .it_interval.tv_nsec = w->drain_ms * 1000000l,
					 .it_value = clock_timespec(ns) };

	(void)timerfd_settime(w->timer, 0, &next, NULL);
}

bool wakeups_signalled(struct wakeups *w)
{
	struct signalfd_siginfo si;

	return read(w->signals, &si, sizeof(si)) == sizeof(si);
}
