/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Escaping for a terminal. Source: the Unicode Standard 15, table 3-7 (well-formed UTF-8), and the
 * general categories Cc and Cf. Of Cf, only the format characters that move, hide or reverse text
 * are escaped.
 */
#include "common/base/command/log.h"

#include <errno.h>
#include <stdarg.h>
#include <unistd.h>
#include "common/base/bytes/buf.h"
#include "common/base/text/utf8.h"

#define LOG_LINE 2048 /* bytes of one message before escaping */
/* Of these: bytes kept from the end of a longer message, which has the reason. */
#define LOG_END 512
#define LOG_MOST 16384

static const char *log_tool = "profpipe";
static enum log_level log_most = LOG_WARNING;

static bool is_printable(uint32_t c)
{
	static const struct {
		uint32_t from, to;
	} hidden[] = {
		{ 0x00, 0x1f },
		{ 0x7f, 0x9f },
		{ 0xad, 0xad },
		{ 0x61c, 0x61c },
		{ 0x180e, 0x180e },
		{ 0x200b, 0x200f }, /* zero width, left-to-right and right-to-left marks */
		{ 0x2028, 0x202e }, /* line and paragraph separators, bidirectional embeddings and
				       overrides */
		{ 0x2060, 0x206f }, /* joiners, isolates */
		{ 0xfeff, 0xfeff },
		{ 0xfff9, 0xfffb },
		{ 0x1d173, 0x1d17a },
		{ 0xe0000, 0xe0fff }, /* tags and variation selectors */
	};

	if ((c & 0xfffe) == 0xfffe || (c >= 0xfdd0 && c <= 0xfdef))
		return false;
	for (size_t i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++)
		if (c >= hidden[i].from && c <= hidden[i].to)
			return false;
	return true;
}

static int escape(struct buf *b, struct str s, size_t max, bool backslash)
{
	static const char digits[] = "0123456789abcdef";
	const uint8_t *p = (const uint8_t *)s.data;
	struct str kept = str_cut(s, max);

	for (size_t i = 0; i < kept.len;) {
		uint32_t code = 0;
		size_t n = utf8_decode(p + i, kept.len - i, &code);
		int r;

		if (n && code == '\\' && backslash) {
			r = buf_append(b, "\\\\", 2);
		} else if (n && is_printable(code)) {
			r = buf_append(b, p + i, n);
		} else {
			char hex[4] = { '\\', 'x', digits[p[i] >> 4], digits[p[i] & 15] };

			n = 1;
			r = buf_append(b, hex, sizeof(hex));
		}
		if (r)
			return r;
		i += n;
	}
	return kept.len < s.len ? buf_append_str(b, "…") : 0;
}

int log_escape(struct buf *b, struct str s, size_t max)
{
	return escape(b, s, max, true);
}

int log_escape_again(struct buf *b, struct str s, size_t max)
{
	return escape(b, s, max, false);
}

/* Shortens a long message in the middle, where a long name usually is. */
static int escape_ends(struct buf *b, struct str s)
{
	if (s.len <= LOG_LINE)
		return escape(b, s, LOG_LINE, false);
	struct str end = { .data = s.data + s.len - LOG_END, .len = LOG_END };

	while (end.len && ((uint8_t)end.data[0] & 0xc0) == 0x80) {
		end.data++;
		end.len--;
	}
	const int r = escape(b, s, LOG_LINE - LOG_END, false);

	return r ? r : escape(b, end, LOG_END, false);
}

void log_init(const char *tool, enum log_level level)
{
	log_tool = tool;
	log_most = level;
}

void log_print(enum log_level level, const char *fmt, ...)
{
	static const char *const word[] = {
		[LOG_ERROR] = "error",
		[LOG_WARNING] = "warning",
		[LOG_INFO] = "info",
	};

	if (level > log_most)
		return;
	int saved = errno;
	char text[LOG_MOST];
	va_list args;

	va_start(args, fmt);
	int n = vsnprintf(text, sizeof(text), fmt, args);

	va_end(args);
	if (n < 0)
		n = snprintf(text, sizeof(text), "a log message could not be formatted: %s", fmt);
	if ((size_t)n >= sizeof(text))
		n = sizeof(text) - 1;
	/* Names in the text may be escaped already, so leave backslashes alone. Write only once:
	 * several tools share the terminal. */
	struct buf line = BUF_INIT(0);

	if (!buf_printf(&line, "%s: %s: ", log_tool, word[level]) &&
	    !escape_ends(&line, (struct str){ .data = text, .len = (uint32_t)n }) &&
	    !buf_append(&line, "\n", 1)) {
		ssize_t written = write(STDERR_FILENO, line.data, line.len);

		(void)written; /* there is no other place to report this */
	}
	buf_done(&line);
	errno = saved;
}
