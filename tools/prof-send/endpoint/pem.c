/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-send/endpoint/pem.h"

#include <errno.h>
#include <stdbool.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

static void free_info(X509_INFO *i)
{
	X509_INFO_free(i);
}

/* Called for a key with a password. Without it, OpenSSL would ask at the terminal. */
static int on_password(char *ret, int size, int writes, void *ctx)
{
	*(bool *)ctx = true;
	return -1;
}

static BIO *open_text(struct span text)
{
	return text.len && text.len < INT32_MAX ? BIO_new_mem_buf(text.data, (int)text.len) : NULL;
}

static X509 *read_certificate(struct span text)
{
	bool asked = false;
	BIO *b = open_text(text);
	X509 *ret = b ? PEM_read_bio_X509(b, NULL, on_password, &asked) : NULL;

	BIO_free(b);
	ERR_clear_error();
	return ret;
}

static EVP_PKEY *read_key(struct span text, bool *ret_asked)
{
	BIO *b = open_text(text);
	EVP_PKEY *ret = b ? PEM_read_bio_PrivateKey(b, NULL, on_password, ret_asked) : NULL;

	BIO_free(b);
	ERR_clear_error();
	return ret;
}

int pem_check_roots(struct span text)
{
	bool asked = false;
	BIO *b = open_text(text);
	STACK_OF(X509_INFO) *all = b ? PEM_X509_INFO_read_bio(b, NULL, on_password, &asked) : NULL;
	bool any = false;

	for (int i = 0; all && i < sk_X509_INFO_num(all); i++)
		any |= sk_X509_INFO_value(all, i)->x509 != NULL;
	sk_X509_INFO_pop_free(all, free_info);
	BIO_free(b);
	ERR_clear_error();
	return any ? 0 : PEM_NO_CERTIFICATE;
}

int pem_check_certificate(struct span text)
{
	X509 *x = read_certificate(text);

	X509_free(x);
	return x ? 0 : PEM_NO_CERTIFICATE;
}

int pem_check_key(struct span text)
{
	bool asked = false;
	EVP_PKEY *key = read_key(text, &asked);

	EVP_PKEY_free(key);
	return key ? 0 : asked ? PEM_ENCRYPTED : PEM_NO_KEY;
}

int pem_check_pair(struct span certificate, struct span key)
{
	bool asked = false;
	X509 *x = read_certificate(certificate);
	EVP_PKEY *k = read_key(key, &asked);
	const bool same = x && k && X509_check_private_key(x, k) == 1;

	X509_free(x);
	EVP_PKEY_free(k);
	ERR_clear_error();
	return same ? 0 : PEM_MISMATCH;
}

const char *pem_error(int verdict)
{
	switch (verdict) {
	case PEM_NO_CERTIFICATE:
		return "has no valid certificate in PEM format; name another file, or convert it "
		       "with openssl x509";
	case PEM_NO_KEY:
		return "has no valid private key in PEM format; name another file, or convert it "
		       "with openssl pkey";
	case PEM_ENCRYPTED:
		return "has a password, which nobody could enter; remove it with openssl pkey";
	case PEM_MISMATCH:
		return "is not the key of the certificate; name the two files that belong together";
	default:
		return "cannot be read; name another file";
	}
}
