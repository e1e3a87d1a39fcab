/* SPDX-License-Identifier: Apache-2.0 */
#include "common/status/check.h"

#include <stdarg.h>
#include <string.h>
#include "common/base/bytes/buf.h"
#include "common/base/command/log.h"

void check_init(struct check *c, const char *name)
{
	*c = (struct check){ .magic = CHECK_MAGIC, .verdict = CHECK_FINE };
	snprintf(c->name, sizeof(c->name), "%s", name);
}

void check_found(struct check *c, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(c->found, sizeof(c->found), fmt, args);
	va_end(args);
}

static void worsen(struct check *c, enum check_verdict verdict, const char *lost,
		   const char *remedy)
{
	if (c->verdict >= verdict)
		return;
	c->verdict = verdict;
	snprintf(c->lost, sizeof(c->lost), "%s", lost);
	snprintf(c->remedy, sizeof(c->remedy), "%s", remedy);
}

void check_degrade(struct check *c, const char *lost, const char *remedy)
{
	worsen(c, CHECK_DEGRADED, lost, remedy);
}

void check_fail(struct check *c, const char *why, const char *remedy)
{
	worsen(c, CHECK_FATAL, why, remedy);
}

int check_valid(const struct check *c)
{
	return c->magic == CHECK_MAGIC && c->verdict < CHECK_VERDICTS &&
	       memchr(c->name, 0, sizeof(c->name)) && memchr(c->found, 0, sizeof(c->found)) &&
	       memchr(c->lost, 0, sizeof(c->lost)) && memchr(c->remedy, 0, sizeof(c->remedy));
}

const char *check_word(uint32_t verdict)
{
	static const char *const words[CHECK_VERDICTS] = { "fine", "degraded", "fatal" };

	return verdict < CHECK_VERDICTS ? words[verdict] : "?";
}

static void print_text(FILE *out, const char *before, const char *text)
{
	struct buf b = BUF_INIT(0);

	if (*text && log_escape(&b, str_from(text), CHECK_TEXT) == 0)
		fprintf(out, "%s%.*s", before, (int)b.len, (const char *)b.data);
	buf_done(&b);
}

void check_print(FILE *out, const struct check *c)
{
	fprintf(out, "%-26s%-10s", c->name, check_word(c->verdict));
	print_text(out, "", c->found);
	print_text(out, c->verdict == CHECK_FATAL ? "; " : "; lost: ", c->lost);
	print_text(out, "; remedy: ", c->remedy);
	fputc('\n', out);
}
