/* SPDX-License-Identifier: Apache-2.0 */
/* Deaths of the parsers, prof-deltas and prof-symd: what they died on is remembered (quarantine.h),
 * not given to them again, and logged once. */
#ifndef PROFPIPE_PARSER_DEATHS_H
#define PROFPIPE_PARSER_DEATHS_H

#include "common/base/span.h"
#include "tools/prof-bpf/peers/quarantine.h"

struct host;
struct host_file;

struct parser_deaths {
	/* Borrowed. */
	struct quarantine *quarantine;
	struct host *host;
	uint64_t refused; /* requests for what is in quarantine */
};

struct quarantine_key parser_deaths_key(const struct host_file *f);
/* True: the parser is not to have it. Counts. */
bool parser_deaths_refuse(struct parser_deaths *d, enum quarantine_parser parser,
			  const struct quarantine_key *of);
/* The same of what prof-symd asks for by the id of a process. */
bool parser_deaths_refuse_process(struct parser_deaths *d, uint64_t id);
/* prof-deltas has died: the on_death of struct rowsrv_config, whose ctx is not used. */
void parser_deaths_rows(void *ctx, struct str name, const struct quarantine_key *of,
			enum lastword_end end, enum quarantine_verdict verdict);
/* prof-symd has died: blames what it was working on. */
void parser_deaths_names(struct parser_deaths *d, const struct lastword *last);

#endif
