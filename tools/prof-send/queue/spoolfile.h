/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file of the spool: one request, behind a head of fixed width. Numbers are little-endian. The
 * head and the bytes each have a checksum, so a torn or foreign file is noticed. The file's name
 * has the endpoint's key and a serial number, by which files are sent in order. Pure.
 */
#ifndef PROF_SEND_QUEUE_SPOOLFILE_H
#define PROF_SEND_QUEUE_SPOOLFILE_H

#include <stdbool.h>
#include "tools/prof-send/queue/request.h"

#define SPOOLFILE_HEAD 64      /* bytes */
#define SPOOLFILE_NAME 40      /* bytes of a name, with its NUL: KEY-SERIAL.otlp, in hexadecimal */
#define SPOOLFILE_PART ".part" /* the ending of one that is being written */
/* Bytes of a compressed request: gzip adds little to what it cannot compress. */
#define SPOOLFILE_BYTES_MAX (REQUEST_MAX + (1u << 20))

struct spoolfile {
	uint64_t key, serial;
	struct request_facts facts;
	uint32_t len; /* bytes behind the head */
	uint32_t crc; /* of these */
};

void spoolfile_encode(const struct spoolfile *f, uint8_t ret[static SPOOLFILE_HEAD]);
/* False: this is not the beginning of such a file. */
bool spoolfile_parse(struct span head, struct spoolfile *ret);
uint32_t spoolfile_crc(struct span bytes);
void spoolfile_name(uint64_t key, uint64_t serial, char ret[static SPOOLFILE_NAME]);
/* *ret_part: it has the ending SPOOLFILE_PART. False: no name of ours. */
bool spoolfile_parse_name(const char *name, uint64_t *ret_key, uint64_t *ret_serial,
			  bool *ret_part);

#endif
