/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/profpipe/run/rights/limits.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include "common/base/command/log.h"

#define THREADS 32	   /* threads that a tool may start */
#define THREAD_STACK 65536 /* bytes of a thread's stack */

static const struct needed {
	int limit;
	const char *name, *shell, *unit;
	rlim_t least;  /* the run fails with less than this */
	rlim_t enough; /* with less than this, `lost` does not work */
	rlim_t wanted;
	rlim_t unit_bytes; /* unit of the value in the shell's ulimit */
	const char *lost;
} needed[] = {
	/* prof-bpf keeps many of the host's files open at once, and at least two for each cpu. */
	{ RLIMIT_NOFILE, "open files", "ulimit -Hn", "LimitNOFILE", 192, 512, 65536, 1,
	  "files of larger hosts, of which 512 are open at once" },
	/* nng starts a dozen threads in each tool, and crashes if it cannot. */
	{ RLIMIT_NPROC, "processes and threads", "ulimit -Hu", "LimitNPROC", 128, 128,
	  RLIM_INFINITY, 1, "" },
	{ RLIMIT_STACK, "bytes of stack", "ulimit -Hs", "LimitSTACK", 1u << 20, 1u << 20, 8u << 20,
	  1024, "" },
	/* For one tool. The kernel's types alone take some 10 MiB while programs are loaded. No
	 * tool's share exceeds the run's default limit (budget.h). */
	{ RLIMIT_DATA, "bytes of data", "ulimit -Hd", "LimitDATA", 32u << 20, 128u << 20,
	  RLIM_INFINITY, 1024, "stacks and names of larger hosts, which take more" },
	/* prof-symd maps the files that it reads, and lowers its own limit to 2 GiB. */
	{ RLIMIT_AS, "bytes of address space", "ulimit -Hv", "LimitAS", 128u << 20, 2u << 30,
	  RLIM_INFINITY, 1024, "names and unwind rows of large files" },
	/* The tools also exchange files in memory, of at least a page. */
	{ RLIMIT_FSIZE, "bytes of a file", "ulimit -Hf", "LimitFSIZE", 4096, 64u << 20,
	  RLIM_INFINITY, 1024, "the end of outputs that are larger" },
};

bool limits_check(size_t i, struct check *ret)
{
	const struct needed *n = &needed[i];
	char why[CHECK_TEXT], remedy[CHECK_TEXT];
	struct rlimit l;

	if (i >= sizeof(needed) / sizeof(needed[0]))
		return false;
	check_init(ret, n->name);
	if (getrlimit(n->limit, &l) < 0) {
		check_found(ret, "not known: %s", strerror(errno));
		return true;
	}
	if (l.rlim_max == RLIM_INFINITY)
		check_found(ret, "unlimited");
	else
		check_found(ret, "%lu", (unsigned long)l.rlim_max);
	snprintf(remedy, sizeof(remedy), "raise the hard limit (%s %lu, %s= of a unit)", n->shell,
		 (unsigned long)n->enough / n->unit_bytes, n->unit);
	if (l.rlim_max < n->least) {
		snprintf(why, sizeof(why), "the tools need %lu", (unsigned long)n->least);
		check_fail(ret, why, remedy);
	} else if (l.rlim_max < n->enough) {
		check_degrade(ret, n->lost, remedy);
	}
	return true;
}

static int say(const struct check *c)
{
	if (c->verdict == CHECK_FATAL) {
		log_error("the limit of %s is %s: %s; %s", c->name, c->found, c->lost, c->remedy);
		return LIMITS_TOO_LOW;
	}
	if (c->verdict == CHECK_DEGRADED)
		log_warning("the limit of %s is %s; lost: %s; %s", c->name, c->found, c->lost,
			    c->remedy);
	return 0;
}

static int raise_one(const struct needed *n)
{
	struct rlimit l;

	if (getrlimit(n->limit, &l) < 0)
		return -errno;
	/* Keep a higher limit, except that of open files. */
	if (l.rlim_cur >= n->wanted && n->limit != RLIMIT_NOFILE)
		return 0;
	l.rlim_cur = l.rlim_max < n->wanted ? l.rlim_max : n->wanted;
	return setrlimit(n->limit, &l) < 0 ? -errno : 0;
}

int limits_lift(void)
{
	int r = 0;

	for (size_t i = 0; !r && i < sizeof(needed) / sizeof(needed[0]); i++)
		r = raise_one(&needed[i]);
	return r;
}

int limits_raise(void)
{
	struct check c;
	int r = 0;

	for (size_t i = 0; !r && limits_check(i, &c); i++)
		r = say(&c);
	return r ? r : limits_lift();
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
