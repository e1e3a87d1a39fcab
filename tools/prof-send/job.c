/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-send/job.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "common/base/bytes/numbers.h"
#include "common/base/command/exits.h"
#include "common/base/command/log.h"
#include "common/base/system/clock.h"
#include "tools/prof-send/report.h"

#define COUNT_MAX 65536 /* limit for the waiting requests of one endpoint */
#define PEM_MAX (4u << 20)
#define STEP_MS 100
#define UNIT_FOLDER "/var/lib/profpipe-send" /* the unit makes it when it starts */

/* One file may serve several endpoints. */
static int add_file(struct job *j, const char *path, bool secret, unsigned *ret)
{
	size_t i = 0;

	while (i < j->file_count &&
	       (strcmp(j->files[i].path, path) != 0 || j->files[i].secret != secret))
		i++;
	if (i == LENDER_FILES)
		return -E2BIG;
	if (i == j->file_count)
		j->files[j->file_count++] = (struct lender_file){ .path = path, .secret = secret };
	*ret = (unsigned)i;
	return 0;
}

static int add_files(struct job *j, struct transfer *t, const struct options_target *from)
{
	struct credentials *c = &t->credentials;
	int r = 0;

	c->list = from->headers;
	for (int i = 0; i < CREDENTIALS_FILES; i++) {
		if (i == CREDENTIALS_HEADERS || from->endpoint.tls) {
			c->path[i] = from->path[i];
			c->option[i] = from->path[i] ? from->by[i] : NULL;
		}
	}
	credentials_begin(c);
	if (from->endpoint.tls && !c->path[CREDENTIALS_ROOTS])
		c->path[CREDENTIALS_ROOTS] = curl_version_info(CURLVERSION_NOW)->cainfo;
	if (from->endpoint.tls && !c->path[CREDENTIALS_ROOTS]) {
		log_error("%s: this libcurl has no system root certificates; give --otlp-ca",
			  from->endpoint.name);
		return -ENOENT;
	}
	for (int i = 0; !r && i < CREDENTIALS_FILES; i++) {
		const bool secret = i == CREDENTIALS_HEADERS || i == CREDENTIALS_KEY;

		if (!c->path[i])
			continue;
		c->file[i].lender = &j->lender;
		c->file[i].max = i == CREDENTIALS_HEADERS ? HEADERS_FILE_MAX : PEM_MAX;
		r = add_file(j, c->path[i], secret, &c->file[i].number);
		if (r)
			log_error("%s: too many files; use fewer", c->path[i]);
	}
	return r;
}

static int start_lender(struct job *j)
{
	const int r = j->file_count ? lender_start(&j->lender, j->files, j->file_count) : 0;

	if (r)
		log_error("the process that opens files cannot be started: %s; raise the limits of "
			  "processes and memory (pids.max, memory.max, ulimit -u)",
			  strerror(-r));
	return r;
}

/* Logs the errors of an endpoint, but not those of files that it shares with an earlier one. */
static void say_errors(struct job *j, size_t number, const struct credentials_errors *errors)
{
	for (size_t i = 0; i < errors->n; i++) {
		const struct credentials_error *e = &errors->list[i];
		struct buf b = BUF_INIT(0);
		bool said = false;

		for (size_t k = 0; k < number; k++)
			for (int f = 0; f < CREDENTIALS_FILES; f++)
				said |= j->transfers[k].credentials.path[f] &&
					strcmp(j->transfers[k].credentials.path[f], e->path) == 0;
		if (!said && credentials_print(&b, e) == 0)
			log_print(j->options->resume ? LOG_WARNING : LOG_ERROR, "%.*s%s",
				  (int)b.len, (const char *)b.data,
				  j->options->resume ? "; requests wait for it" : "");
		buf_done(&b);
	}
}

/* If a file cannot be read again later, its last contents stay in use. At the start there are
 * none, and the endpoint cannot be used. After a restart it waits, since others must not suffer. */
static int read_files(struct job *j)
{
	struct credentials_errors errors;
	int ret = 0;

	for (size_t i = 0; i < j->transfer_count; i++) {
		struct transfer *t = &j->transfers[i];

		(void)credentials_refresh(&t->credentials, &errors);
		credentials_check_pair(&t->credentials, &errors);
		if (!errors.n && t->credentials.headers.n && !t->endpoint.tls &&
		    !t->endpoint.local && !j->options->check)
			log_warning("%s: the headers go over the network unencrypted; use https://",
				    t->endpoint.name);
		if (!errors.n)
			continue;
		say_errors(j, i, &errors);
		t->said_credentials = true;
		ret = j->options->resume ? 0 : -EINVAL;
	}
	return ret;
}

static int open_spool(struct job *j)
{
	const struct options *o = j->options;
	const struct deploy *d = &o->deploy;

	if (!o->spool)
		return 0;
	/* Each run of the launcher has other users, so the spool may belong to an earlier one. */
	const bool by_launcher = d->ids_given && geteuid() == 0;
	const struct spool_owners owners = { .user = d->uid[DEPLOY_SEND],
					     .first = by_launcher ? DEPLOY_IDS_BASE : 0,
					     .last = by_launcher ? DEPLOY_IDS_LAST : 0 };
	int r = spool_open(&j->spool, o->spool, &owners, true);

	if (!r && by_launcher)
		r = spool_may_take(&j->spool, o->spool, &owners);
	if (r) {
		log_print(o->resume ? LOG_WARNING : LOG_ERROR, "--otlp-spool: %s: %s%s", o->spool,
			  spool_error(r), o->resume ? "; requests wait in memory" : "");
		spool_close(&j->spool);
		return o->resume ? 0 : r;
	}
	if (by_launcher)
		r = spool_hand_over(&j->spool, d->uid[DEPLOY_SEND], d->gid);
	if (r)
		log_error("--otlp-spool: %s: cannot be given to user %u: %s; run as root with "
			  "CAP_CHOWN, and name a local folder",
			  o->spool, (unsigned)d->uid[DEPLOY_SEND], strerror(-r));
	return r;
}

/* Checks the folder as a run will need it. */
static int check_spool(const struct options *o)
{
	const struct spool_owners owners = { .user = geteuid(),
					     .first = geteuid() ? 0 : DEPLOY_IDS_BASE,
					     .last = geteuid() ? 0 : DEPLOY_IDS_LAST };
	struct spool s = SPOOL_NONE;

	if (!o->spool)
		return 0;
	int r = spool_open(&s, o->spool, &owners, false);

	if (r == -ENOENT && strcmp(o->spool, UNIT_FOLDER) == 0)
		r = 0;
	else if (!r && !geteuid())
		r = spool_may_take(&s, o->spool, &owners);
	if (r)
		log_error("--otlp-spool: %s: %s", o->spool, spool_error(r));
	spool_close(&s);
	return r;
}

static int open_transfers(struct job *j, uint64_t memory_max)
{
	const struct options *o = j->options;
	const size_t n = o->target_count;
	const struct queue_limits limits = { .memory_max = memory_max / n,
					     .count_max = COUNT_MAX,
					     .spool_max = o->spool_max / n };
	int r = transfer_setup();

	for (size_t i = 0; i < n; i++) {
		struct transfer *t = &j->transfers[j->transfer_count++];

		t->endpoint = o->targets[i].endpoint;
		t->compress = o->targets[i].compress;
		t->timeout_ms = o->targets[i].timeout_ms;
		queue_init(&t->queue, &limits, &j->spool, t->endpoint.key);
		transfer_open(t);
	}
	if (!r)
		r = sender_init(&j->sender, j->transfers, n);
	if (r)
		log_error("libcurl cannot be set up: %s; free memory on this host", strerror(-r));
	return r;
}

int job_check(const struct options *o)
{
	static struct job j;
	int r = 0;

	j = (struct job){ .options = o, .spool = SPOOL_NONE, .lender = LENDER_NONE };
	const int spool = check_spool(o);

	for (size_t i = 0; !r && i < o->target_count; i++) {
		if (o->targets[i].bad)
			continue;
		j.transfers[j.transfer_count].endpoint = o->targets[i].endpoint;
		r = add_files(&j, &j.transfers[j.transfer_count++], &o->targets[i]);
	}
	if (!r)
		r = start_lender(&j);
	if (!r)
		r = read_files(&j);
	lender_end(&j.lender);
	return r || spool || o->refused ? EXITS_USAGE : EXITS_DONE;
}

int job_open(struct job *j, const struct options *o, uint64_t memory_max)
{
	*j = (struct job){ .options = o, .spool = SPOOL_NONE, .lender = LENDER_NONE };
	int r = open_spool(j);

	if (!r)
		r = open_transfers(j, memory_max);
	for (size_t i = 0; !r && i < j->transfer_count; i++)
		r = add_files(j, &j->transfers[i], &o->targets[i]);
	if (!r)
		r = start_lender(j);
	if (!r)
		r = read_files(j);
	return r ? EXITS_FAILED : EXITS_GO_ON;
}

static int resume(struct job *j, struct transfer *t, struct spool_found *found)
{
	const int r = queue_resume(&t->queue, found);

	if (r) {
		log_error(
			"--otlp-spool: %s: cannot be read: %s; free memory, or name another folder",
			j->options->spool, strerror(-r));
		return EXITS_FAILED;
	}
	if (found->n)
		log_info("%s: %zu requests wait in the spool", t->endpoint.name, found->n);
	if (found->damaged)
		log_warning("%s: %u requests in the spool were torn or damaged and are lost",
			    t->endpoint.name, found->damaged);
	return EXITS_GO_ON;
}

/* Makes room in the folder for the requests of this run. */
static void drop_leftovers(struct job *j)
{
	const bool said = j->leftovers.dropped > 0;
	uint64_t used = 0;

	for (size_t i = 0; i < j->transfer_count; i++)
		used += j->transfers[i].queue.spooled;
	const uint64_t room = numbers_less(j->options->spool_max, used);

	if (leftovers_keep(&j->leftovers, &j->spool, room) && !said)
		log_warning("--otlp-spool: %s: is full; its oldest requests for endpoints that are "
			    "not given are dropped",
			    j->options->spool);
}

static int find_leftovers(struct job *j)
{
	uint64_t keys[OPTIONS_ENDPOINTS];

	for (size_t i = 0; i < j->transfer_count; i++)
		keys[i] = j->transfers[i].endpoint.key;
	const int r = leftovers_find(&j->spool, keys, j->transfer_count, &j->leftovers);

	if (r) {
		log_error(
			"--otlp-spool: %s: cannot be read: %s; free memory, or name another folder",
			j->options->spool, strerror(-r));
		return EXITS_FAILED;
	}
	if (j->leftovers.n)
		log_warning("%s: %zu requests in it are for endpoints that are not given; give "
			    "these endpoints again, or remove the files",
			    j->options->spool, j->leftovers.n);
	drop_leftovers(j);
	return EXITS_GO_ON;
}

int job_begin(struct job *j)
{
	struct spool_found found = { .entries = NULL };
	unsigned unreadable = 0;
	int r = EXITS_GO_ON;

	if (j->spool.folder < 0)
		return r;
	for (size_t i = 0; r == EXITS_GO_ON && i < j->transfer_count; i++) {
		r = resume(j, &j->transfers[i], &found);
		unreadable += found.unreadable;
	}
	if (r != EXITS_GO_ON)
		return r;
	if (found.foreign)
		log_warning(
			"%s: %u files do not belong to prof-send and are left alone; keep other "
			"files elsewhere",
			j->options->spool, found.foreign);
	if (unreadable)
		log_warning("%s: %u requests in it cannot be read and are skipped; give the files "
			    "to the owner of the folder, or remove them",
			    j->options->spool, unreadable);
	return find_leftovers(j);
}

void job_put(struct job *j, struct request *r)
{
	sender_put(&j->sender, r);
	if (j->leftovers.bytes)
		drop_leftovers(j);
}

uint64_t job_answers(const struct job *j)
{
	uint64_t n = 0;

	for (size_t i = 0; i < j->transfer_count; i++)
		n += j->transfers[i].queue.counts.delivered +
		     j->transfers[i].queue.counts.lost[QUEUE_REFUSED];
	return n;
}

void job_drain(struct job *j, uint64_t ms, bool anew, job_stop *stop, void *ctx)
{
	uint64_t until = clock_mono_ns() + ms * 1000000u, answered = job_answers(j);

	for (;;) {
		sender_work(&j->sender);
		if (anew && job_answers(j) != answered) {
			answered = job_answers(j);
			until = clock_mono_ns() + ms * 1000000u;
		}
		if (sender_is_empty(&j->sender) || stop(ctx))
			return;
		const uint64_t now = clock_mono_ns();

		if (now >= until)
			return;
		const uint64_t left = (until - now) / 1000000u + 1;

		sender_wait(&j->sender, NULL, 0, left < STEP_MS ? (int)left : STEP_MS);
	}
}

void job_end(struct job *j)
{
	sender_done(&j->sender);
	for (size_t i = 0; i < j->transfer_count; i++)
		queue_end(&j->transfers[i].queue);
	if (j->leftovers.dropped)
		log_warning(
			"--otlp-spool: %s: %zu of %zu requests for endpoints that are not given "
			"were dropped",
			j->options->spool, j->leftovers.dropped, j->leftovers.n);
}

bool job_report(const struct job *j)
{
	bool good = true;

	for (size_t i = 0; i < j->transfer_count; i++) {
		const struct transfer *t = &j->transfers[i];
		struct buf b = BUF_INIT(0);

		good &= report_is_good(&t->queue.counts);
		if (report_print(&b, t->endpoint.name, &t->queue.counts) == 0)
			printf("%.*s\n", (int)b.len, (const char *)b.data);
		buf_done(&b);
	}
	return good;
}

bool job_warn(const struct job *j)
{
	bool good = true;

	for (size_t i = 0; i < j->transfer_count; i++) {
		const struct transfer *t = &j->transfers[i];
		struct buf b = BUF_INIT(0);
		const bool well = report_is_good(&t->queue.counts);

		good &= well;
		if (report_print(&b, t->endpoint.name, &t->queue.counts) == 0)
			log_print(well ? LOG_INFO : LOG_WARNING, "%.*s", (int)b.len,
				  (const char *)b.data);
		buf_done(&b);
	}
	return good;
}

void job_done(struct job *j)
{
	for (size_t i = 0; i < j->transfer_count; i++)
		transfer_close(&j->transfers[i]);
	lender_end(&j->lender);
	leftovers_done(&j->leftovers);
	spool_close(&j->spool);
}
