/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/open/closing.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Several, since one device can block at most one of them. */
#define THREADS 3
#define THREAD_STACK (64u << 10)

struct entry {
	int fd;
	uint64_t dev;
};

/* The caller must not wait for the threads: it is more urgent, and a busy host may take the cpu
 * from a thread at any time. So they share no lock with it. */
static struct {
	struct entry ring[CLOSING_MAX];
	unsigned given;	 /* entries that the caller put into the ring */
	unsigned passed; /* those that it may overwrite */
	sem_t work;
	pthread_mutex_t lock;		   /* of the threads, for all below and `passed` */
	struct entry waiting[CLOSING_MAX]; /* oldest first */
	unsigned count;
	struct {
		uint64_t dev;
		bool closes;
	} threads[THREADS];
	bool started;
} closing = { .lock = PTHREAD_MUTEX_INITIALIZER };

static struct entry *entry_at(unsigned n)
{
	return &closing.ring[n % CLOSING_MAX];
}

static bool is_being_closed(uint64_t dev)
{
	for (unsigned i = 0; i < THREADS; i++)
		if (closing.threads[i].closes && closing.threads[i].dev == dev)
			return true;
	return false;
}

/* Takes entries out of the ring, so that those of a device that hangs do not fill it. */
static void empty_ring(void)
{
	const unsigned given = __atomic_load_n(&closing.given, __ATOMIC_ACQUIRE);
	unsigned n = closing.passed;

	while (n != given && closing.count < CLOSING_MAX)
		closing.waiting[closing.count++] = *entry_at(n++);
	__atomic_store_n(&closing.passed, n, __ATOMIC_RELEASE);
}

/* Takes the oldest descriptor of a device that occupies no thread. Call it under the lock. Returns
 * false if there is none. */
static bool take_next(struct entry *ret)
{
	empty_ring();
	for (unsigned i = 0; i < closing.count; i++) {
		if (is_being_closed(closing.waiting[i].dev))
			continue;
		*ret = closing.waiting[i];
		closing.count--;
		memmove(&closing.waiting[i], &closing.waiting[i + 1],
			(closing.count - i) * sizeof(closing.waiting[0]));
		return true;
	}
	return false;
}

static void *close_them(void *arg)
{
	const size_t self = (size_t)arg;
	struct entry e = { .fd = -1 };

	pthread_mutex_lock(&closing.lock);
	for (;;) {
		const bool any = take_next(&e);

		closing.threads[self].dev = e.dev;
		closing.threads[self].closes = any;
		pthread_mutex_unlock(&closing.lock);
		if (any)
			close(e.fd);
		else
			sem_wait(&closing.work);
		pthread_mutex_lock(&closing.lock);
		closing.threads[self].closes = false;
	}
	return NULL;
}

int closing_start(void)
{
	pthread_attr_t attr;
	sigset_t all, old;
	int r = sem_init(&closing.work, 0, 0) ? -errno : 0;

	/* Block signals: the main thread handles them. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, THREAD_STACK);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	for (size_t i = 0; i < THREADS && !r; i++) {
		pthread_t thread;

		r = -pthread_create(&thread, &attr, close_them, (void *)i);
		/* A failure does not matter, since fewer threads are enough. */
		closing.started |= !r;
	}
	pthread_attr_destroy(&attr);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return closing.started ? 0 : r;
}

void closing_give(int fd)
{
	struct statx x = { 0 };

	if (fd < 0)
		return;
	/* Use only what the kernel already knows, so that no server is asked. */
	(void)statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &x);
	if (!closing.started ||
	    closing.given - __atomic_load_n(&closing.passed, __ATOMIC_ACQUIRE) == CLOSING_MAX) {
		close(fd);
		return;
	}
	*entry_at(closing.given) = (struct entry){
		.fd = fd, .dev = (uint64_t)x.stx_dev_major << 32 | x.stx_dev_minor
	};
	__atomic_store_n(&closing.given, closing.given + 1, __ATOMIC_RELEASE);
	sem_post(&closing.work);
}
