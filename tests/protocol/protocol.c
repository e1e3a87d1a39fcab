/* SPDX-License-Identifier: Apache-2.0 */
/* Prints docs/protocol.md: the introduction below, the messages with the comments that stand before
 * them in messages.def, and the reasons of errors.def. The tables come from the compiler's view;
 * only the comments are read from the file, which is given as the argument. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/wire/msg.h"

static const char introduction[] =
	"# The protocol\n"
	"\n"
	"The tools of profpipe exchange messages. A message looks the same on a bus between two\n"
	"tools, in a shell pipe and in a recording (`.prof`). This page is printed from the\n"
	"table in `common/wire/messages.def`. The encoder and the decoder are made of the same\n"
	"table.\n"
	"\n"
	"## On the wire\n"
	"\n"
	"A message is the [msgpack](https://github.com/msgpack/msgpack/blob/master/spec.md)\n"
	"array `[id, [field, ...]]`. The fields have the order of the tables below. Nothing\n"
	"separates one message from the next. Integers are unsigned.\n"
	"\n"
	"| type | msgpack | |\n"
	"|---|---|---|\n"
	"| number | positive fixint, uint 8 to 64 | |\n"
	"| string | str | bytes that a program's user chose, UTF-8 or not: escape to show |\n"
	"| binary | bin | |\n"
	"| list | array of numbers | |\n"
	"\n"
	"- A limit counts bytes, or members of a list.\n"
	"- A message is malformed if a value exceeds its limit, has another type, or is nested\n"
	"  deeper. The receiver then closes the connection.\n"
	"- New fields are added only at the end. The decoder takes missing fields as zero or\n"
	"  empty. It skips and counts additional fields, and messages with an unknown id.\n"
	"- An additional field may be any value of msgpack, such as nil, a float or a map. In\n"
	"  it, lists and maps nest at most 16 deep.\n"
	"- No message is longer than 1,052,672 bytes, or has more than 64 fields.\n"
	"\n"
	"## A stream\n"
	"\n"
	"A stream is a sequence of batches. Each batch begins with a `batch` message. The first\n"
	"batch continues with `hello`. The last message of the stream is `end`; a stream\n"
	"without it was cut short. Readers of files and shell pipes ignore bytes behind it, and\n"
	"log that.\n"
	"\n"
	"`hello.schema` is a number. It grows only when an older reader would misunderstand a\n"
	"stream, and readers refuse any other number. New messages and fields do not change it.\n"
	"So a reader understands older recordings. In a newer recording it skips what is new.\n"
	"It logs once how much it skipped, and outputs say so. In early versions `hello.schema`\n"
	"was a hash of the message table. Readers still accept those hashes.\n"
	"\n"
	"`hello.build` is a hash of the version and of the whole message table: ids, names,\n"
	"types and limits. A tool refuses a peer with another hash, because the two also\n"
	"exchange raw structs. Readers of files and shell pipes ignore it.\n"
	"\n"
	"`batch.seq` says how many messages, without batch heads, came before in the same\n"
	"epoch. So a reader knows how many it has missed. On a bus, one batch is one nng\n"
	"message (pair protocol, version 0).\n"
	"\n"
	"Processes, threads, files, functions, frames and stacks are defined once, before their\n"
	"first use. After that, messages name them by id. An id holds within its epoch; 0 means\n"
	"none.\n"
	"\n"
	"## Who sends what\n"
	"\n"
	"Each message below says who sends it to whom. On a bus, a tool refuses other messages:\n"
	"they are malformed. A file or a shell pipe holds a raw or a named stream.\n";

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

/* Markdown interprets angle brackets only outside of code; names with an underscore remain
 * unchanged. */
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

static const char *way_text(enum msg_way way)
{
	switch ((int)way) {
	case MSG_BPF_TO_DELTAS:
		return "From prof-bpf to prof-deltas.";
	case MSG_DELTAS_TO_BPF:
		return "From prof-deltas to prof-bpf.";
	case MSG_BPF_TO_SYMD:
		return "From prof-bpf to prof-symd, beside the raw stream.";
	case MSG_SYMD_TO_BPF:
		return "From prof-symd to prof-bpf.";
	case MSG_RAW_STREAM:
		return "In a raw stream, from prof-bpf to prof-symd.";
	case MSG_STREAMS:
		return "In a raw stream, from prof-bpf to prof-symd, and in a named one, from\n"
		       "prof-symd to prof-export.";
	case MSG_ENDINGS:
		return "In a raw stream, from prof-bpf to prof-symd, in a named one, from\n"
		       "prof-symd to prof-export, and from prof-export to prof-send.";
	case MSG_EXPORT_TO_SEND:
		return "From prof-export to prof-send.";
	case MSG_EVERY_WAY:
		return "From each tool to its peer, and in both streams.";
	default:
		fprintf(stderr, "protocol: no text for way %d\n", (int)way);
		exit(1);
	}
}

static void print_begin(const char *text, const char *NAME, const char *name, unsigned id,
			enum msg_way way)
{
	printf("\n### %u `%s`\n\n%s\n\n", id, name, way_text(way));
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

/* An item of a list, wrapped at 100 columns. */
static void print_reason(unsigned n, const char *word, const char *text)
{
	int column = printf("- %u `%s`:", n, word);

	while (*text) {
		int len = (int)strcspn(text, " ");

		if (column + 1 + len > 100)
			column = printf("\n ") - 1;
		column += printf(" %.*s", len, text);
		text += len;
		text += strspn(text, " ");
	}
	putchar('\n');
}

int main(int argc, char **argv)
{
	char *text = read_whole(argc > 1 ? argv[1] : "common/wire/messages.def");

	fputs(introduction, stdout);
	printf("\n## The messages\n\nSchema %u.\n", MSG_SCHEMA);
	/* clang-format off */
#define MSG_BEGIN(NAME, name, id, way) print_begin(text, #NAME, #name, id, MSG_##way);
#define U64(field) print_field("U64", #field, 0);
#define STR(field, max) print_field("STR", #field, max);
#define BIN(field, max) print_field("BIN", #field, max);
#define LIST(field, max) print_field("LIST", #field, max);
#define MSG_END(name)
#include "common/wire/messages.def"
	printf("\n## Why a stack ends (`stack.reason`)\n\n");
#define WALK_REASON(n, NAME, word, text) print_reason(n, word, text);
#include "bpf/errors.def"
	printf("\n## What was lost (`lost.reason`)\n\n");
#define LOST_REASON(n, NAME, word, text) print_reason(n, word, text);
#include "bpf/errors.def"
	/* clang-format on */
	free(text);
	return 0;
}
