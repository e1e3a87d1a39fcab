/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/profpipe/limits.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/resource.h>
#include "common/log.h"

#define THREADS 32	   /* of a tool */
#define THREAD_STACK 65536 /* bytes */

static const struct needed {
	int limit;
	const char *name, *shell, *unit;
	rlim_t least;  /* below it is refused, */
	rlim_t enough; /* below it is warned of */
	rlim_t wanted;
} needed[] = {
	/* A host's worth of files is open at once in prof-bpf, two for each cpu for a start. */
	{ RLIMIT_NOFILE, "open files", "ulimit -Hn", "LimitNOFILE", 192, 512, 65536 },
	/* nng starts a dozen threads in each tool, and crashes where it cannot. */
	{ RLIMIT_NPROC, "processes and threads", "ulimit -Hu", "LimitNPROC", 128, 128,
	  RLIM_INFINITY },
	{ RLIMIT_STACK, "bytes of stack", "ulimit -Hs", "LimitSTACK", 1u << 20, 1u << 20,
	  8u << 20 },
};

static int raise_one(const struct needed *n)
{
	struct rlimit l;

	if (getrlimit(n->limit, &l) < 0)
		return -errno;
	if (l.rlim_max < n->least) {
		log_error(
			"the limit of %s is %lu: the tools need %lu; raise the hard one (%s, %s= of a unit)",
			n->name, (unsigned long)l.rlim_max, (unsigned long)n->least, n->shell,
			n->unit);
		return LIMITS_TOO_LOW;
	}
	if (l.rlim_max < n->enough)
		log_warning("the limit of %s is %lu (%s): %lu are needed on larger hosts", n->name,
			    (unsigned long)l.rlim_max, n->shell, (unsigned long)n->enough);
	/* More is left as it is: a larger stack is a larger one of each thread. */
	if (l.rlim_cur >= n->wanted && n->limit != RLIMIT_NOFILE)
		return 0;
	l.rlim_cur = l.rlim_max < n->wanted ? l.rlim_max : n->wanted;
	return setrlimit(n->limit, &l) < 0 ? -errno : 0;
}

int limits_raise(void)
{
	struct rlimit l;

	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++) {
		const int r = raise_one(&needed[i]);

		if (r)
			return r;
	}
	/* Where it is reached is the output's affair, and comes as an error of writing. */
	if (getrlimit(RLIMIT_FSIZE, &l) == 0) {
		l.rlim_cur = l.rlim_max;
		setrlimit(RLIMIT_FSIZE, &l);
	}
	return 0;
}

uint64_t limits_oom_kills(void)
{
	unsigned long long n = 0;
	char line[128];
	FILE *f = fopen("/proc/vmstat", "re");

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "oom_kill %llu", &n) == 1)
			break;
	if (f)
		fclose(f);
	return n;
}

static void *wait_for_end(void *ctx)
{
	pthread_mutex_t *end = ctx;

	pthread_mutex_lock(end);
	pthread_mutex_unlock(end);
	return NULL;
}

bool limits_threads_short(void)
{
	pthread_mutex_t end = PTHREAD_MUTEX_INITIALIZER;
	pthread_t threads[THREADS];
	pthread_attr_t a;
	unsigned n = 0;

	if (pthread_attr_init(&a))
		return false;
	pthread_attr_setstacksize(&a, THREAD_STACK);
	pthread_mutex_lock(&end);
	while (n < THREADS && pthread_create(&threads[n], &a, wait_for_end, &end) == 0)
		n++;
	pthread_mutex_unlock(&end);
	for (unsigned i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	pthread_attr_destroy(&a);
	return n < THREADS;
}
