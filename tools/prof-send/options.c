/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-send/options.h"

#include <stdlib.h>
#include <string.h>
#include "common/base/command/cmdline.h"
#include "common/base/command/exits.h"
#include "tools/prof-send/endpoint/environment.h"

#define MEMORY_LEAST (1ull << 20)
#define MEMORY_MOST (16ull << 30)
#define SPOOL_LEAST (1ull << 20)
#define SPOOL_MOST (1ull << 50)
#define SPOOL_DEFAULT (256ull << 20)
#define TIMEOUT_MS 10000
#define SECONDS_MOST 3600.0

static const char usage[] =
	"usage: prof-send --otlp ENDPOINT [OPTION]... <REQUESTS\n"
	"Deliver OTLP profiles to receivers.\n"
	"\n"
	"      --otlp ENDPOINT      deliver to this URL, http://HOST:PORT or https://HOST:PORT;\n"
	"                           may be repeated\n"
	"      --otlp-protocol grpc|http/protobuf\n"
	"                           the protocol (default grpc)\n"
	"      --otlp-header-file FILE\n"
	"                           add the headers in FILE, such as a token, in lines\n"
	"                           `Name: value`; nobody else may be able to read FILE\n"
	"      --otlp-ca FILE       trust the roots in FILE instead of those of the system\n"
	"      --otlp-cert FILE     present this client certificate\n"
	"      --otlp-key FILE      the certificate's key; nobody else may be able to read FILE\n"
	"      --otlp-compression gzip|none\n"
	"                           compress requests (default gzip)\n"
	"      --otlp-timeout SECONDS\n"
	"                           time limit of an attempt (default 10)\n"
	"      --otlp-spool DIR     keep requests in DIR until they are delivered; they survive\n"
	"                           the end of prof-send\n"
	"      --otlp-spool-size SIZE\n"
	"                           keep at most this much there (default 256M)\n"
	"      --otlp-drain SECONDS at the end, give up if no receiver takes a request for this\n"
	"                           time (default 15); in a deployment, exit after this time\n"
	"                           (default 5)\n"
	"      --check              only check these options and the files that they name,\n"
	"                           report every error, and deliver nothing\n"
	"  -m, --memory SIZE        keep at most this much in memory (default 64M)\n"
	"  -v, --verbose            log more\n"
	"  -h, --help               print this help\n"
	"      --version            print the version\n"
	"\n"
	"An option after an --otlp applies to that endpoint, one before the first --otlp to all.\n"
	"The variables OTEL_EXPORTER_OTLP_* replace options that are not given.\n"
	"\n"
	"In a deployment (see prof-send(1)):\n"
	"  --run-dir DIR --ids GID:B:D:S:E:N --memory-limit SIZE --status-fd N --life-fd N\n"
	"    [--with-metrics] [--resume]\n" DEPLOY_USAGE
	"    --resume: a restart; endpoints whose files cannot be used now have to wait\n"
	"\n"
	"Exit status: 0 all was delivered; 1 some was not; 2 bad usage.\n";

enum {
	OPTION_OTLP = 256,
	OPTION_PROTOCOL,
	OPTION_HEADERS,
	OPTION_ROOTS,
	OPTION_CERTIFICATE,
	OPTION_KEY,
	OPTION_COMPRESSION,
	OPTION_TIMEOUT,
	OPTION_SPOOL,
	OPTION_SPOOL_SIZE,
	OPTION_DRAIN,
	OPTION_CHECK,
	OPTION_RESUME,
};

/* The endpoint that an option applies to: the last one, or all of them. */
static struct options_target *current(struct options *o)
{
	return o->target_count ? &o->targets[o->target_count - 1] : &o->all;
}

static int add_target(struct options *o, const struct cmdline *c)
{
	if (o->target_count == OPTIONS_ENDPOINTS)
		return cmdline_refuse(c, "too many endpoints; give 16 at most");
	o->targets[o->target_count++] =
		(struct options_target){ .text = c->value, .protocol = -1, .compress = -1 };
	return EXITS_GO_ON;
}

static int take_seconds(const struct cmdline *c, uint64_t *ret_ms)
{
	double seconds = 0;
	const int r = cmdline_seconds(c, &seconds);

	if (r != EXITS_GO_ON)
		return r;
	if (seconds > SECONDS_MOST)
		return cmdline_refuse(c, "out of range; give 3600 seconds at most");
	*ret_ms = (uint64_t)(seconds * 1000.0);
	if (!*ret_ms)
		*ret_ms = 1;
	return r;
}

static int take_option(struct options *o, const struct cmdline *c, int val)
{
	static const char *const compressions[] = { "none", "gzip" };
	struct options_target *t = current(o);
	size_t word = 0;
	uint64_t ms = 0;
	int r = EXITS_GO_ON;

	switch (val) {
	case OPTION_OTLP:
		return add_target(o, c);
	case OPTION_PROTOCOL:
		r = cmdline_word(c, endpoint_protocols, ENDPOINT_PROTOCOLS, &word);
		t->protocol = (int)word;
		return r;
	case OPTION_HEADERS:
		return cmdline_path(c, &t->path[CREDENTIALS_HEADERS]);
	case OPTION_ROOTS:
		return cmdline_path(c, &t->path[CREDENTIALS_ROOTS]);
	case OPTION_CERTIFICATE:
		return cmdline_path(c, &t->path[CREDENTIALS_CERTIFICATE]);
	case OPTION_KEY:
		return cmdline_path(c, &t->path[CREDENTIALS_KEY]);
	case OPTION_COMPRESSION:
		r = cmdline_word(c, compressions, 2, &word);
		t->compress = (int)word;
		return r;
	case OPTION_TIMEOUT:
		r = take_seconds(c, &ms);
		t->timeout_ms = (unsigned)ms;
		return r;
	case OPTION_SPOOL:
		return cmdline_path(c, &o->spool);
	case OPTION_SPOOL_SIZE:
		return cmdline_size(c, SPOOL_LEAST, SPOOL_MOST, &o->spool_max);
	case OPTION_DRAIN:
		return take_seconds(c, &o->drain_ms);
	case OPTION_RESUME:
		o->resume = true;
		return r;
	case 'm':
		return cmdline_size(c, MEMORY_LEAST, MEMORY_MOST, &o->memory_max);
	default:
		return deploy_option(&o->deploy, c, val);
	}
}

/* --- completing --- */

static const char *get(const char *name)
{
	return getenv(name);
}

/* Fills in what the endpoint does not set itself: from the options for all endpoints, then from the
 * environment. */
static void complete(struct options_target *t, const struct options_target *all,
		     const struct environment *e)
{
	static const char *const options[CREDENTIALS_FILES] = {
		[CREDENTIALS_HEADERS] = "--otlp-header-file",
		[CREDENTIALS_ROOTS] = "--otlp-ca",
		[CREDENTIALS_CERTIFICATE] = "--otlp-cert",
		[CREDENTIALS_KEY] = "--otlp-key",
	};
	static const char *const variables[CREDENTIALS_FILES] = {
		[CREDENTIALS_ROOTS] = "OTEL_EXPORTER_OTLP_CERTIFICATE",
		[CREDENTIALS_CERTIFICATE] = "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE",
		[CREDENTIALS_KEY] = "OTEL_EXPORTER_OTLP_CLIENT_KEY",
	};
	const char *const paths[CREDENTIALS_FILES] = { [CREDENTIALS_ROOTS] = e->roots,
						       [CREDENTIALS_CERTIFICATE] = e->certificate,
						       [CREDENTIALS_KEY] = e->key };

	/* A certificate and its key must come from the same place. */
	const bool own = t->path[CREDENTIALS_CERTIFICATE] || t->path[CREDENTIALS_KEY];

	for (int i = 0; i < CREDENTIALS_FILES; i++) {
		t->by[i] = options[i];
		if (t->path[i] || (own && (i == CREDENTIALS_CERTIFICATE || i == CREDENTIALS_KEY)))
			continue;
		t->path[i] = all->path[i] ? all->path[i] : paths[i];
		if (!all->path[i])
			t->by[i] = variables[i];
	}
	if (!t->path[CREDENTIALS_HEADERS])
		t->headers = e->headers;
	if (t->protocol < 0)
		t->protocol = all->protocol >= 0 ? all->protocol
			      : e->has_protocol	 ? (int)e->protocol
						 : (int)ENDPOINT_GRPC;
	if (t->compress < 0)
		t->compress = all->compress >= 0   ? all->compress
			      : e->has_compression ? e->compress
						   : 1;
	if (!t->timeout_ms)
		t->timeout_ms = all->timeout_ms ? all->timeout_ms
				: e->timeout_ms ? e->timeout_ms
						: TIMEOUT_MS;
}

/* number: of the endpoint, from 1 on. */
static int parse_target(struct options_target *t, size_t number,
			const struct endpoint_how *variable)
{
	struct endpoint_how how = { .protocol = (enum endpoint_protocol)t->protocol };

	if (variable) {
		how = *variable;
		how.protocol = (enum endpoint_protocol)t->protocol;
	}
	const int r = endpoint_parse(t->text, &how, &t->endpoint);

	/* Do not log the text, which may contain a password. */
	if (r == ENDPOINT_CREDENTIALS || r == ENDPOINT_QUERY)
		return cmdline_refuse_all("--otlp: endpoint %zu: the URL %s", number,
					  endpoint_error(r));
	if (r)
		return cmdline_refuse_all("--otlp: %s: %s", t->text, endpoint_error(r));
	return EXITS_GO_ON;
}

/* The first option that needs TLS; NULL: none was given. Without TLS it would have no effect. */
static const char *tls_option(const struct options_target *t)
{
	return t->path[CREDENTIALS_ROOTS]	  ? "ca"
	       : t->path[CREDENTIALS_CERTIFICATE] ? "cert"
	       : t->path[CREDENTIALS_KEY]	  ? "key"
						  : NULL;
}

static int check_pair(const struct options_target *t)
{
	const char *const *path = t->path;
	const bool key = path[CREDENTIALS_KEY];

	if (key == !!path[CREDENTIALS_CERTIFICATE])
		return EXITS_GO_ON;
	return cmdline_refuse_all("--otlp-%s: %s: needs --otlp-%s; give both", key ? "key" : "cert",
				  path[key ? CREDENTIALS_KEY : CREDENTIALS_CERTIFICATE],
				  key ? "cert" : "key");
}

/* Refuses an endpoint that is given twice. */
static int check_two(const struct options *o, const struct options_target *t)
{
	for (const struct options_target *i = o->targets; i < t; i++)
		if (!i->bad && i->endpoint.key == t->endpoint.key)
			return cmdline_refuse_all("--otlp: %s: is given twice; give it once",
						  t->endpoint.name);
	return EXITS_GO_ON;
}

/* Completes one endpoint.  */
static int complete_one(struct options *o, struct options_target *t, const struct environment *e,
			const struct endpoint_how *variable)
{
	const char *own = tls_option(t);

	complete(t, &o->all, e);
	int r = t->bad ? EXITS_USAGE : parse_target(t, (size_t)(t - o->targets) + 1, variable);

	if (r != EXITS_GO_ON)
		return r;
	if (own && !t->endpoint.tls)
		return cmdline_refuse_all("--otlp-%s: %s uses no TLS; write https://", own,
					  t->endpoint.name);
	r = t->endpoint.tls ? check_pair(t) : EXITS_GO_ON;
	return r == EXITS_GO_ON ? check_two(o, t) : r;
}

static int complete_all(struct options *o)
{
	struct environment e;
	struct environment_error error;
	struct endpoint_how how = { .no_scheme = true };
	const bool by_variable = !o->target_count;

	if (environment_read(get, &e, &error))
		return cmdline_refuse_all("%s: %s", error.name, error.text);
	if (by_variable && !e.endpoint)
		return cmdline_refuse_all("--otlp: missing; name a receiver, such as "
					  "http://localhost:4317");
	if (by_variable) {
		o->targets[o->target_count++] = (struct options_target){ .text = e.endpoint,
									 .protocol = -1,
									 .compress = -1 };
		how.base = e.endpoint_of_all;
		how.insecure = e.insecure;
	}
	const char *option = tls_option(&o->all);
	bool tls = false;
	int ret = EXITS_GO_ON;

	for (size_t i = 0; i < o->target_count; i++) {
		struct options_target *t = &o->targets[i];
		const int r = complete_one(o, t, &e, by_variable ? &how : NULL);

		if (r != EXITS_GO_ON) {
			t->bad = true;
			ret = r;
			if (!o->check)
				return r;
		}
		/* The scheme of a bad endpoint is unknown. */
		tls |= t->endpoint.tls || t->bad;
	}
	if (option && !tls)
		return cmdline_refuse_all("--otlp-%s: no endpoint uses TLS; write https://",
					  option);
	return ret;
}

/* Whether --check is given, before the options are parsed. */
static bool is_check(int argc, char **argv)
{
	bool is = false;

	for (int i = 1; i < argc; i++)
		is |= strcmp(argv[i], "--check") == 0;
	return is;
}

int options_parse(int argc, char **argv, struct options *o)
{
	static const struct option longs[] = {
		{ "otlp", required_argument, NULL, OPTION_OTLP },
		{ "otlp-protocol", required_argument, NULL, OPTION_PROTOCOL },
		{ "otlp-header-file", required_argument, NULL, OPTION_HEADERS },
		{ "otlp-ca", required_argument, NULL, OPTION_ROOTS },
		{ "otlp-cert", required_argument, NULL, OPTION_CERTIFICATE },
		{ "otlp-key", required_argument, NULL, OPTION_KEY },
		{ "otlp-compression", required_argument, NULL, OPTION_COMPRESSION },
		{ "otlp-timeout", required_argument, NULL, OPTION_TIMEOUT },
		{ "otlp-spool", required_argument, NULL, OPTION_SPOOL },
		{ "otlp-spool-size", required_argument, NULL, OPTION_SPOOL_SIZE },
		{ "otlp-drain", required_argument, NULL, OPTION_DRAIN },
		{ "check", no_argument, NULL, OPTION_CHECK },
		{ "resume", no_argument, NULL, OPTION_RESUME },
		{ "memory", required_argument, NULL, 'm' },
		DEPLOY_OPTIONS,
		CMDLINE_OPTIONS,
		{ 0 },
	};
	struct cmdline c = { .tool = "prof-send",
			     .usage = usage,
			     .shorts = ":m:vh",
			     .longs = longs,
			     .argc = argc,
			     .argv = argv };
	*o = (struct options){ .check = is_check(argc, argv),
			       .all = { .protocol = -1, .compress = -1 } };
	deploy_init(&o->deploy);
	for (int val = cmdline_next(&c); val != CMDLINE_END; val = cmdline_next(&c)) {
		const int r = val == CMDLINE_EXIT   ? c.status
			      : val == OPTION_CHECK ? EXITS_GO_ON
						    : take_option(o, &c, val);

		if (r == EXITS_GO_ON)
			continue;
		if (r != EXITS_USAGE || val == CMDLINE_EXIT || !o->check)
			return r;
		o->refused = current(o)->bad = true;
	}
	if (optind < argc)
		return cmdline_refuse_all("%s: not an option; requests come on standard input, "
					  "and --otlp names the receiver",
					  argv[optind]);
	if (deploy_check_options(&o->deploy, DEPLOY_SEND) != EXITS_GO_ON)
		return EXITS_USAGE;
	if (o->deploy.run_dir && o->memory_max)
		return cmdline_refuse_all("--memory: not together with --run-dir; give "
					  "--memory-limit, the limit of the whole run");
	if (o->deploy.run_dir && o->deploy.ids_given && !o->deploy.send_given)
		return cmdline_refuse_all("--ids: has no user of prof-send; give "
					  "GID:BPF:DELTAS:SYMD:EXPORT:SEND");
	if (o->spool_max && !o->spool) {
		(void)cmdline_refuse_all("--otlp-spool-size: needs --otlp-spool, the folder");
		if (!o->check)
			return EXITS_USAGE;
		o->refused = true;
	}
	if (!o->spool_max)
		o->spool_max = SPOOL_DEFAULT;
	const int r = complete_all(o);

	if (r != EXITS_USAGE || !o->check)
		return r;
	o->refused = true;
	return EXITS_GO_ON;
}
