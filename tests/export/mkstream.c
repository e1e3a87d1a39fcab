/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes a stream from lines, one for each message, in the form of msg_print: `sample stack=3
 * thread=1 time_ns=5`. Fields that are not named are zero. A string is "…" with \xNN for any byte,
 * a binary is hex, a list [1,2,3]. The hello's schema is ours unless it is named. Other lines:
 *
 *   epoch N      the next batch begins epoch N
 *   gap N        N messages are missing here
 *   flush        the batch ends here
 *   bytes HEX    these bytes, as they are
 *   # …          nothing
 *
 * Writes to standard output; with a folder as its argument, to prof-export over the bus, like
 * prof-symd below a run's folder. `drop` then ends the pipe at once.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/base/system/clock.h"
#include "common/base/text/hex.h"
#include "common/wire/bus/bus.h"
#include "common/wire/stream.h"

static uint8_t *arena; /* the strings and lists of one message */
static size_t arena_len;
#define ARENA (4u << 20)

static void fail(const char *line, const char *why)
{
	fprintf(stderr, "mkstream: %s: %.200s\n", why, line);
	exit(1);
}

static uint8_t *room(const char *line, size_t n)
{
	if (n > ARENA - arena_len)
		fail(line, "too long");
	uint8_t *at = arena + arena_len;

	arena_len += (n + 7) & ~(size_t)7;
	return at;
}

static uint64_t parse_u64(const char *s)
{
	return s ? strtoull(s, NULL, 0) : 0;
}

static struct str parse_str(const char *s)
{
	if (!s)
		return (struct str){ 0 };
	const size_t len = strlen(s);

	if (len < 2 || s[0] != '"')
		fail(s, "no string");
	char *to = (char *)room(s, len);
	struct str r = { .data = to };

	for (size_t i = 1; i + 1 < len; i++) {
		char c = s[i];

		if (c == '\\' && s[i + 1] == 'x' && hex_byte(s + i + 2) >= 0) {
			c = (char)hex_byte(s + i + 2);
			i += 3;
		}
		to[r.len++] = c;
	}
	return r;
}

static struct span parse_bin(const char *s)
{
	const size_t n = s ? strlen(s) / 2 : 0;
	uint8_t *to = n ? room(s, n) : NULL;

	for (size_t i = 0; i < n; i++) {
		const int byte = hex_byte(s + 2 * i);

		if (byte < 0)
			fail(s, "no hex");
		to[i] = (uint8_t)byte;
	}
	return (struct span){ .data = to, .len = n };
}

static struct msg_list parse_list(const char *s)
{
	if (!s)
		return (struct msg_list){ 0 };
	uint64_t *to = (uint64_t *)(void *)room(s, strlen(s) * sizeof(*to));
	struct msg_list r = { .data = to };

	for (s++; *s && *s != ']'; s += *s == ',') {
		char *end;

		to[r.len++] = strtoull(s, &end, 0);
		if (end == s)
			fail(s, "no list");
		s = end;
	}
	return r;
}

/* --- lines --- */

#define FIELDS 32
static struct {
	const char *name, *value;
} fields[FIELDS];
static size_t field_count;

/* Takes the line apart, in place. Returns the first word. */
static const char *split(char *line)
{
	char *p = line;

	field_count = 0;
	while (*p && *p != ' ')
		p++;
	while (*p) {
		*p++ = '\0';
		char *name = p;

		while (*p && *p != '=')
			p++;
		if (!*p || field_count == FIELDS)
			fail(name, "no field=value");
		*p++ = '\0';
		fields[field_count].name = name;
		fields[field_count++].value = p;
		if (*p == '"') {
			p = strchr(p + 1, '"');
			if (!p)
				fail(name, "no end of the string");
			p++;
		}
		while (*p && *p != ' ')
			p++;
	}
	return line;
}

static const char *value_of(const char *name)
{
	for (size_t i = 0; i < field_count; i++)
		if (!strcmp(fields[i].name, name))
			return fields[i].value;
	return NULL;
}

static struct msg parse(const char *word)
{
	struct msg m = { 0 };

#define MSG_BEGIN(NAME, lower, number, way) \
	if (!strcmp(word, #lower)) { \
		__typeof__(&m.lower) at = &m.lower; \
		m.id = MSG_##NAME;
#define U64(field) at->field = parse_u64(value_of(#field));
#define STR(field, max) at->field = parse_str(value_of(#field));
#define BIN(field, max) at->field = parse_bin(value_of(#field));
#define LIST(field, max) at->field = parse_list(value_of(#field));
#define MSG_END(lower) }
#include "common/wire/messages.def"
	if (!m.id)
		fail(word, "no message");
	if (m.id == MSG_HELLO && !value_of("schema"))
		m.hello.schema = MSG_SCHEMA;
	return m;
}

static struct bus *bus;
static bool dropped;

static int write_out(void *ctx, struct span bytes)
{
	if (bus)
		return bus_send_wait(bus, bytes, 10000);
	return fwrite(bytes.data, 1, bytes.len, ctx) == bytes.len ? 0 : -EIO;
}

static int run_line(struct stream_out *out, char *line)
{
	if (!*line || *line == '#')
		return 0;
	if (!strncmp(line, "epoch ", 6)) {
		int r = stream_flush(out);

		if (!r)
			stream_out_epoch(out, parse_u64(line + 6));
		return r;
	}
	if (!strncmp(line, "gap ", 4)) {
		int r = stream_flush(out);

		out->seq += parse_u64(line + 4);
		return r;
	}
	if (!strcmp(line, "drop")) {
		dropped = true;
		/* Everything that was sent has to arrive, but bus_free drops messages that wait. */
		int r = stream_flush(out);

		usleep(200000);
		return r;
	}
	if (!strcmp(line, "flush"))
		return stream_flush(out);
	if (!strncmp(line, "bytes ", 6)) {
		int r = stream_flush(out);

		return r ? r : out->flush(out->ctx, parse_bin(line + 6));
	}
	const struct msg m = parse(split(line));

	return stream_put(out, &m);
}

/* The receiver closes its end after the last message; bus_free would drop messages that have not
 * left. */
static int await_end(void)
{
	const uint64_t until = clock_mono_ns() + 10000000000ull;
	struct buf ignored = BUF_INIT(0);
	int r = BUS_EMPTY;

	while (r >= 0 && r != BUS_PEER_WENT && clock_mono_ns() < until) {
		struct pollfd p = { .fd = bus_fd(bus), .events = POLLIN };

		poll(&p, 1, 100);
		r = bus_recv(bus, &ignored);
	}
	buf_done(&ignored);
	return r == BUS_PEER_WENT ? 0 : r < 0 ? r : -ETIMEDOUT;
}

int main(int argc, char **argv)
{
	struct stream_out out;
	char *line = NULL;
	size_t cap = 0;
	int r = 0;

	arena = malloc(ARENA);
	if (!arena)
		return 1;
	if (argc > 1)
		r = bus_dial(BUSROUTE_NAMED, argv[1], getuid(), 10000, &bus);
	stream_out_init(&out, 4096, write_out, stdout);
	for (ssize_t n; !r && !dropped && (n = getline(&line, &cap, stdin)) >= 0;) {
		arena_len = 0;
		if (n && line[n - 1] == '\n')
			line[n - 1] = '\0';
		r = run_line(&out, line);
	}
	if (!r)
		r = stream_flush(&out);
	if (!r && bus && !dropped)
		r = await_end();
	bus_free(bus);
	stream_out_done(&out);
	free(line);
	free(arena);
	if (r || fflush(stdout)) {
		fprintf(stderr, "mkstream: %s\n", strerror(r ? -r : errno));
		return 1;
	}
	return 0;
}
