/* SPDX-License-Identifier: Apache-2.0 */
/* Deaths of the parsers, prof-deltas and prof-symd: records the file that they died on
 * (quarantine.h), withholds it from them, and logs it once. */
#ifndef PROF_BPF_PEERS_PARSER_DEATHS_H
#define PROF_BPF_PEERS_PARSER_DEATHS_H

#include "common/base/bytes/str.h"
#include "tools/prof-bpf/peers/quarantine.h"

struct host;
struct host_file;
struct owner;

struct parser_deaths {
	/* Borrowed. */
	struct quarantine *quarantine;
	struct host *host;
	uint64_t refused; /* requests for quarantined files */
};

struct quarantine_key parser_deaths_key(const struct host_file *f);
/* Returns true if the parser must not get the file, and counts that. */
bool parser_deaths_refuse(struct parser_deaths *d, enum quarantine_parser parser,
			  const struct quarantine_key *of);
/* Like parser_deaths_refuse, for a process id in a request of prof-symd. */
bool parser_deaths_refuse_process(struct parser_deaths *d, uint64_t id);
/* Handles a death of prof-deltas: the on_death of struct row_server_config; ctx is not used. */
void parser_deaths_rows(void *ctx, struct str name, const struct quarantine_key *of,
			enum lastword_end end, enum quarantine_verdict verdict);
/* Files of an owner were repeatedly put aside: the on_aside of struct row_server_config; ctx is not
 * used. */
void parser_deaths_aside(void *ctx, const struct owner *owner);
/* Handles a death of prof-symd: blames the file that it was working on. */
void parser_deaths_names(struct parser_deaths *d, const struct lastword *last);

#endif
