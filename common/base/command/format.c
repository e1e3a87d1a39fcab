/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/command/format.h"

#include <string.h>
#include <strings.h>

#define ENDINGS_MAX 2

const char *const format_names[FORMATS] = {
	[FORMAT_HTML] = "html", [FORMAT_FOLDED] = "folded", [FORMAT_PPROF] = "pprof",
	[FORMAT_TEXT] = "text", [FORMAT_STREAM] = "stream", [FORMAT_OTLP] = "otlp",
};

static const char *const endings[FORMATS][ENDINGS_MAX] = {
	[FORMAT_HTML] = { ".html" },   [FORMAT_FOLDED] = { ".folded" },
	[FORMAT_TEXT] = { ".txt" },    [FORMAT_PPROF] = { ".pb.gz", ".pprof" },
	[FORMAT_STREAM] = { ".prof" }, [FORMAT_OTLP] = { ".otlp" },
};

const char *format_ending(enum format f)
{
	return endings[f][0];
}

static bool ends_in(const char *path, const char *ending)
{
	const size_t len = strlen(path), n = strlen(ending);

	return len > n && strcasecmp(path + len - n, ending) == 0;
}

bool format_of_path(const char *path, enum format *ret)
{
	for (int f = 0; f < FORMATS; f++)
		for (int i = 0; i < ENDINGS_MAX && endings[f][i]; i++)
			if (ends_in(path, endings[f][i])) {
				*ret = (enum format)f;
				return true;
			}
	return false;
}

bool format_is_binary(enum format f)
{
	return f == FORMAT_PPROF || f == FORMAT_STREAM || f == FORMAT_OTLP;
}

bool format_streams(enum format f)
{
	return f == FORMAT_TEXT || f == FORMAT_STREAM || f == FORMAT_OTLP;
}
