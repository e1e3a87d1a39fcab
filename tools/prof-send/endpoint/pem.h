/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks certificates and keys in PEM format as libcurl will read them. libcurl reads them only
 * when it connects, and its errors name no file. Pure.
 */
#ifndef PROF_SEND_ENDPOINT_PEM_H
#define PROF_SEND_ENDPOINT_PEM_H

#include "common/base/bytes/span.h"

enum pem_verdict {
	PEM_NO_CERTIFICATE = 1, /* no certificate, or a damaged one */
	PEM_NO_KEY = 2,		/* no private key, or a damaged one */
	PEM_ENCRYPTED = 3,	/* the key has a password */
	PEM_MISMATCH = 4,	/* the key is not the certificate's */
};

/* Each returns 0 or enum pem_verdict. */
int pem_check_roots(struct span text);
int pem_check_certificate(struct span text);
int pem_check_key(struct span text);
int pem_check_pair(struct span certificate, struct span key);
/* A "reason; remedy". Static storage. */
const char *pem_error(int verdict);

#endif
