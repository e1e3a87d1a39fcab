/* SPDX-License-Identifier: Apache-2.0 */
/* The formats of a profile: their names on the command line and their files' endings. Pure. */
#ifndef COMMON_BASE_COMMAND_FORMAT_H
#define COMMON_BASE_COMMAND_FORMAT_H

#include <stdbool.h>

enum format {
	FORMAT_FOLDED,
	FORMAT_PPROF,
	FORMAT_HTML,
	FORMAT_TEXT,
	FORMAT_STREAM,
	FORMAT_OTLP,
	FORMATS,
};

/* For a tool's --help. */
#define FORMAT_USAGE \
	"  -f, --format FORMAT html, folded, pprof, text, stream or otlp (default: by FILE's\n" \
	"                      ending, .html, .folded, .pb.gz or .pprof, .txt, .prof, .otlp)\n"

/* The names in the order of the enum, for cmdline_word. */
extern const char *const format_names[FORMATS];

/* The ending of the format's files, with the dot; the first of several. */
const char *format_ending(enum format f);
/* Finds the format by the path's ending, in any case. False: no format has this ending. */
bool format_of_path(const char *path, enum format *ret);
/* Whether a terminal cannot show the format. */
bool format_is_binary(enum format f);
/* Whether samples are written as they come. The other formats are written at the stream's end. */
bool format_streams(enum format f);

#endif
