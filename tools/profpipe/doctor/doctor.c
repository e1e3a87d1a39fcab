/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/profpipe/doctor/doctor.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/base/bytes/buf.h"
#include "common/base/command/exits.h"
#include "common/base/command/log.h"
#include "common/base/command/stdfds.h"
#include "common/base/system/clock.h"
#include "common/cell/confine/namespace.h"
#include "common/status/check.h"
#include "tools/profpipe/doctor/selftest.h"
#include "tools/profpipe/run/children/child.h"
#include "tools/profpipe/run/rights/identity.h"
#include "tools/profpipe/run/rights/limits.h"
#include "tools/profpipe/run/rights/rights.h"

#define CHECKS_MAX 64u
#define CHECKS_MS 30000
#define COMPLETE_LEAST 90 /* percent of complete stacks; with fewer, the check is degraded */

struct doctor {
	const struct options *o;
	struct check checks[CHECKS_MAX];
	size_t count;
	unsigned verdicts[CHECK_VERDICTS];
	struct selftest test;
	bool tested;
};

static void take(struct doctor *d, const struct check *c)
{
	if (d->count == CHECKS_MAX)
		return;
	d->checks[d->count++] = *c;
	d->verdicts[c->verdict]++;
	if (!d->o->json) {
		check_print(stdout, c);
		fflush(stdout);
	}
}

static void say(void *ctx, const struct child *c, const char *line)
{
	fprintf(stderr, "%s\n", line);
}

/* --- checks of prof-bpf --- */

static int start(struct doctor *d, const struct identity *who, struct child *ret)
{
	char ids[80];
	const char *argv[10];
	size_t n = 0;

	snprintf(ids, sizeof(ids), "%u:%u:%u:%u:%u", who->gid, who->uid[0], who->uid[1],
		 who->uid[2], who->uid[3]);
	argv[n++] = "prof-bpf";
	argv[n++] = "--check";
	argv[n++] = "--status-fd";
	argv[n++] = CHILD_STATUS_FD;
	if (who->separate) {
		argv[n++] = "--ids";
		argv[n++] = ids;
	}
	if (d->o->sampling.ignore_unsafe_kernel)
		argv[n++] = "--ignore-unsafe-kernel";
	argv[n] = NULL;
	const struct child_start how = { .argv = argv };

	return child_start(ret, &how);
}

/* Takes the results of checks until the pipe ends or the time is over. */
static void listen_to(struct doctor *d, struct child *c, int words)
{
	const uint64_t since = clock_mono_ns();
	struct pollfd p[] = { { .fd = words, .events = POLLIN },
			      { .fd = c->log, .events = POLLIN } };
	struct check word;
	ssize_t n = -1;

	while (n != 0 && clock_mono_ns() - since < CHECKS_MS * 1000000ull) {
		poll(p, 2, 250);
		child_read(c, say, NULL);
		p[1].fd = c->log;
		for (n = read(words, &word, sizeof(word)); n > 0;
		     n = read(words, &word, sizeof(word)))
			if (n == sizeof(word) && check_valid(&word))
				take(d, &word);
	}
}

/* Reports the users of the tools. If the tools cannot have users of their own, the other checks run
 * as the caller. */
static void take_users(struct doctor *d, int r, const struct identity *who)
{
	struct check c;

	check_init(&c, "users of the tools");
	if (r) {
		check_found(&c, "none available: %s", identity_reason(r));
		check_fail(&c, "root cannot begin a run without them", identity_remedy(r));
	} else if (who->separate) {
		check_found(&c, "one for each tool, from %u on", who->uid[0]);
	} else {
		check_found(&c, "the caller, for all tools");
	}
	take(d, &c);
}

static int ask_prof_bpf(struct doctor *d)
{
	struct identity who = { .lock = -1 };
	struct child c = CHILD_NONE("prof-bpf");
	/* In a user namespace, the ids of a run may not exist. */
	const bool first = namespace_is_first(NAMESPACE_USER) == NAMESPACE_FIRST;

	take_users(d, first ? identity_take(&who) : 0, &who);

	const size_t before = d->count;
	const int r = start(d, &who, &c);

	if (r) {
		log_error("prof-bpf cannot be started: %s", child_trouble(r));
		identity_release(&who);
		return r;
	}
	/* child.c would read the words on this pipe as status words, so take it over. */
	const int words = c.status;

	c.status = -1;
	listen_to(d, &c, words);
	close(words);
	/* prof-bpf ends by itself, but freeing BPF maps takes a moment. */
	for (int i = 0; i < 100 && !child_reap(&c); i++)
		usleep(10000);
	if (c.pid) {
		child_kill(&c);
		while (!child_reap(&c))
			usleep(1000);
	}
	child_read(&c, say, NULL);
	child_show_pending(&c, UINT64_MAX, say, NULL);
	child_close(&c);
	identity_release(&who);
	if (d->count == before)
		log_error("prof-bpf --check reported nothing: %s; see its messages, or report this "
			  "line",
			  child_how(c.wait_status));
	return d->count > before ? 0 : -EPROTO;
}

/* --- the self-test --- */

static void judge_samples(struct doctor *d)
{
	const struct selftest *t = &d->test;
	struct check c;

	check_init(&c, "self-test: samples");
	check_found(&c, "%lu of a program that spun for %g s, at %d Hz%s%s", t->seen.samples,
		    t->seconds, SELFTEST_HZ, t->trouble[0] ? "; " : "", t->trouble);
	if (!t->seen.samples)
		check_fail(&c, "a profile would be empty",
			   "profpipe record -v -d 1 shows what the tools log");
	else if (t->trouble[0])
		check_degrade(&c, "a part of the run", "see the message of the run");
	take(d, &c);
}

static void judge_rest(struct doctor *d)
{
	const struct selftest *t = &d->test;
	struct check c;

	check_init(&c, "self-test: stacks");
	check_found(&c, "%lu of %lu complete", t->seen.complete, t->seen.samples);
	if (t->seen.complete * 100 < t->seen.samples * COMPLETE_LEAST)
		check_degrade(&c, "callers", "profpipe record -v -d 1 shows what the tools log");
	take(d, &c);

	check_init(&c, "self-test: kernel");
	check_found(&c, "%lu stacks with kernel frames, %lu with names of them", t->seen.kernel,
		    t->seen.kernel_named);
	if (!t->seen.kernel)
		check_degrade(&c, "kernel parts of stacks", "");
	else if (!t->seen.kernel_named)
		check_degrade(&c, "names of kernel functions",
			      "sysctl kernel.kptr_restrict=1, and CAP_SYSLOG");
	take(d, &c);

	check_init(&c, "self-test: names");
	check_found(&c, "%lu stacks with names of user functions", t->seen.user_named);
	if (!t->seen.user_named)
		check_degrade(&c, "names of user functions", "grant CAP_DAC_READ_SEARCH");
	take(d, &c);
}

static void prove(struct doctor *d)
{
	struct check c;
	int r;

	if (d->verdicts[CHECK_FATAL]) {
		check_init(&c, "self-test");
		check_found(&c, "not run, because a check above is fatal");
		take(d, &c);
		return;
	}
	r = selftest_run(d->o->sampling.ignore_unsafe_kernel, &d->test);
	if (r) {
		check_init(&c, "self-test");
		check_found(&c, "no process can be started: %s", strerror(-r));
		check_fail(&c, "a run needs five processes", "ulimit -u unlimited");
		take(d, &c);
		return;
	}
	d->tested = true;
	judge_samples(d);
	if (d->test.seen.samples)
		judge_rest(d);
}

/* --- the report --- */

static void add_text(cJSON *to, const char *key, const char *text)
{
	struct buf b = BUF_INIT(0);

	if (log_escape(&b, str_from(text), CHECK_TEXT) == 0 && buf_append(&b, "", 1) == 0)
		cJSON_AddStringToObject(to, key, (const char *)b.data);
	buf_done(&b);
}

static int print_json(const struct doctor *d, uint32_t worst)
{
	cJSON *all = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(all, "checks");

	cJSON_AddStringToObject(all, "verdict", check_word(worst));
	for (size_t i = 0; i < d->count; i++) {
		const struct check *c = &d->checks[i];
		cJSON *one = cJSON_CreateObject();

		add_text(one, "name", c->name);
		cJSON_AddStringToObject(one, "verdict", check_word(c->verdict));
		add_text(one, "found", c->found);
		add_text(one, c->verdict == CHECK_FATAL ? "reason" : "lost", c->lost);
		add_text(one, "remedy", c->remedy);
		cJSON_AddItemToArray(list, one);
	}
	if (d->tested) {
		const struct selftest *t = &d->test;
		cJSON *test = cJSON_AddObjectToObject(all, "self_test");

		cJSON_AddNumberToObject(test, "samples", (double)t->seen.samples);
		cJSON_AddNumberToObject(test, "complete", (double)t->seen.complete);
		cJSON_AddNumberToObject(test, "kernel", (double)t->seen.kernel);
		cJSON_AddNumberToObject(test, "kernel_named", (double)t->seen.kernel_named);
		cJSON_AddNumberToObject(test, "user_named", (double)t->seen.user_named);
	}
	char *text = cJSON_Print(all);
	int r = text ? 0 : -ENOMEM;

	if (text && puts(text) < 0)
		r = -errno;
	free(text);
	cJSON_Delete(all);
	return r;
}

int doctor_run(const struct options *o)
{
	static struct doctor d;

	d = (struct doctor){ .o = o };
	if (namespace_is_first(NAMESPACE_USER) < 0) {
		/* Without /proc, no tool is found and no check works. */
		log_error("%s", rights_place());
		return EXITS_FAILED;
	}
	signal(SIGPIPE, SIG_IGN);
	struct check limit;

	for (size_t i = 0; limits_check(i, &limit); i++)
		take(&d, &limit);
	/* With lower limits prof-bpf may not start, or may not find out why a check fails. */
	if (!d.verdicts[CHECK_FATAL] && (limits_lift() || ask_prof_bpf(&d)))
		return EXITS_FAILED;
	prove(&d);
	const uint32_t worst = d.verdicts[CHECK_FATAL]	    ? CHECK_FATAL
			       : d.verdicts[CHECK_DEGRADED] ? CHECK_DEGRADED
							    : CHECK_FINE;
	const int r = o->json ? print_json(&d, worst) : 0;

	if (r)
		stdfds_say(-r);
	if (r || stdfds_flush() != EXITS_DONE)
		return EXITS_FAILED;
	return worst == CHECK_FATAL ? EXITS_FAILED : EXITS_DONE;
}
