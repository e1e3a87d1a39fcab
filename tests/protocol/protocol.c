/* SPDX-License-Identifier: Apache-2.0 */
/* Prints docs/protocol.md: the introduction below, the messages with the comments that stand before
 * them in messages.def, and the reasons of errors.def. The tables come from the compiler's view;
 * only the comments are read from the file, which is given as the argument. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/msg.h"

static const char introduction[] =
	"# The protocol\n"
	"\n"
	"The tools of profpipe speak to each other in messages, which are the same over a bus between two tools, over a shell pipe and in a recording\n"
	"(`.prof`). This page is printed from the table in `common/messages.def`, from which the encoder and the decoder are made, too.\n"
	"\n"
	"## On the wire\n"
	"\n"
	"A message is the [msgpack](https://github.com/msgpack/msgpack/blob/master/spec.md) array `[id, [field, ...]]`, with the fields in the order of the\n"
	"tables below. Messages follow each other without anything between them. Integers are unsigned.\n"
	"\n"
	"| type | msgpack | |\n"
	"|---|---|---|\n"
	"| number | positive fixint, uint 8 to 64 | |\n"
	"| string | str | bytes chosen by whoever runs a program, UTF-8 or not: escape them before they are shown |\n"
	"| binary | bin | |\n"
	"| list | array of numbers | |\n"
	"\n"
	"A limit is in bytes, or in members of a list. A value over its limit, of another type, or nested deeper makes the message malformed, and a malformed message ends\n"
	"the pipe it came over. Fields are only ever added at the end: missing ones are zero or empty, further ones are skipped, and so is a message with an id that is not\n"
	"known. No message is longer than 1,052,672 bytes.\n"
	"\n"
	"## A stream\n"
	"\n"
	"A stream is a sequence of batches. Each begins with `batch`; the first message after the first of them is `hello`, whose `schema` must be that of the reader, and the last\n"
	"message of all is `end`: a stream without it was cut short. `batch.seq` says how many messages (batch heads not counted) came before in the same epoch, so a\n"
	"reader knows how many it has missed. Over a bus one batch is one nng message (pair, version 0).\n"
	"\n"
	"Processes, threads, files, functions, frames and stacks are defined once, before their first use, and named by id afterwards. An id holds within its epoch; 0 is none.\n";

static const char *type_name(const char *type)
{
	return !strcmp(type, "U64")   ? "number"
	       : !strcmp(type, "STR") ? "string"
	       : !strcmp(type, "BIN") ? "binary"
				      : "list";
}

static char *read_whole(const char *path)
{
	FILE *f = fopen(path, "r");
	char *text = NULL;
	size_t cap = 0;

	if (!f || getdelim(&text, &cap, 0, f) < 0) {
		fprintf(stderr, "protocol: %s: %s\n", path, strerror(errno));
		exit(1);
	}
	fclose(f);
	return text;
}

/* Markdown gives a meaning to angle brackets only outside of code; names with an underscore stand
 * as they are. */
static void print_text(const char *from, const char *to)
{
	bool line_start = true;

	for (; from < to; from++) {
		if (line_start && (isspace((unsigned char)*from) || *from == '*'))
			continue;
		line_start = *from == '\n';
		if (*from == '<' || *from == '>' || (*from == '*'))
			putchar('\\');
		putchar(*from);
	}
}

/* The comment that ends right before the message's MSG_BEGIN. */
static void print_comment(const char *text, const char *name)
{
	char begin[80];

	snprintf(begin, sizeof(begin), "\nMSG_BEGIN(%s,", name);
	const char *at = strstr(text, begin);

	if (!at || at - text < 2 || strncmp(at - 2, "*/", 2) != 0) {
		fprintf(stderr, "protocol: no comment before %s\n", name);
		exit(1);
	}
	const char *start = at - 2;

	while (start > text && strncmp(start, "/*", 2) != 0)
		start--;
	const char *end = at - 2;

	while (end > start && isspace((unsigned char)end[-1]))
		end--;
	print_text(start + 2, end);
	printf("\n\n");
}

static void print_begin(const char *text, const char *NAME, const char *name, unsigned id)
{
	printf("\n### %u `%s`\n\n", id, name);
	print_comment(text, NAME);
	printf("| field | type | limit |\n|---|---|---|\n");
}

static void print_field(const char *type, const char *field, unsigned max)
{
	if (max)
		printf("| `%s` | %s | %u |\n", field, type_name(type), max);
	else
		printf("| `%s` | %s | |\n", field, type_name(type));
}

static void print_reason(unsigned n, const char *word, const char *text)
{
	printf("| %u | `%s` | %s |\n", n, word, text);
}

int main(int argc, char **argv)
{
	char *text = read_whole(argc > 1 ? argv[1] : "common/messages.def");

	fputs(introduction, stdout);
	printf("\n## The messages\n\nSchema %016" PRIx64 ".\n", msg_schema_hash());
	/* clang-format off */
#define MSG_BEGIN(NAME, name, id) print_begin(text, #NAME, #name, id);
#define U64(field) print_field("U64", #field, 0);
#define STR(field, max) print_field("STR", #field, max);
#define BIN(field, max) print_field("BIN", #field, max);
#define LIST(field, max) print_field("LIST", #field, max);
#define MSG_END(name)
#include "common/messages.def"
	printf("\n## Why a stack ends (`stack.reason`)\n\n| | word | |\n|---|---|---|\n");
#define WALK_REASON(n, NAME, word, text) print_reason(n, word, text);
#include "bpf/errors.def"
	printf("\n## What was lost (`lost.reason`)\n\n| | word | |\n|---|---|---|\n");
#define LOST_REASON(n, NAME, word, text) print_reason(n, word, text);
#include "bpf/errors.def"
	/* clang-format on */
	free(text);
	return 0;
}
