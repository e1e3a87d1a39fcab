/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file of the spool: a header of fixed size and one request. Numbers are little-endian. The
 * header and the request each have a checksum, which detects torn and foreign files. The file's
 * name has the endpoint's key and a serial number, which gives the order of sending. Pure.
 */
#ifndef PROF_SEND_QUEUE_SPOOLFILE_H
#define PROF_SEND_QUEUE_SPOOLFILE_H

#include <stdbool.h>
#include "tools/prof-send/queue/request.h"

#define SPOOLFILE_HEAD 64      /* bytes */
#define SPOOLFILE_NAME 40      /* bytes of a name, with its NUL: KEY-SERIAL.otlp, in hexadecimal */
#define SPOOLFILE_PART ".part" /* the ending of a file that is being written */
/* Maximum size of a compressed request: gzip adds little to incompressible data. */
#define SPOOLFILE_BYTES_MAX (REQUEST_MAX + (1u << 20))

struct spoolfile {
	uint64_t key, serial;
	struct request_facts facts;
	uint32_t len; /* bytes after the header */
	uint32_t crc; /* checksum of these bytes */
};

void spoolfile_encode(const struct spoolfile *f, uint8_t ret[static SPOOLFILE_HEAD]);
/* Returns false if the bytes are not the beginning of such a file. */
bool spoolfile_parse(struct span head, struct spoolfile *ret);
uint32_t spoolfile_crc(struct span bytes);
void spoolfile_name(uint64_t key, uint64_t serial, char ret[static SPOOLFILE_NAME]);
/* *ret_part: the name has the ending SPOOLFILE_PART. Returns false if the name is not ours. */
bool spoolfile_parse_name(const char *name, uint64_t *ret_key, uint64_t *ret_serial,
			  bool *ret_part);

#endif
