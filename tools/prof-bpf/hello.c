/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/hello.h"

#include <elf.h>
#include <fcntl.h>
#include <mbedtls/md.h>
#include <string.h>
#include "common/base/bytes/notes.h"
#include "common/base/command/log.h"
#include "common/base/files/smallfile.h"
#include "common/base/text/hex.h"

#define ID_BYTES 16
#define SHA256_BYTES 32
#define NOTES_MAX (64u << 10)
#define MACHINE_ID "/etc/machine-id"

/* Reads an id in hex digits. Returns false if it is not one, or if all digits are zero. */
static bool take_id(const char *digits, uint8_t ret[static ID_BYTES])
{
	uint8_t any = 0;

	for (size_t i = 0; i < ID_BYTES; i++) {
		const int high = hex_lower(digits[2 * i]), low = hex_lower(digits[2 * i + 1]);

		if (high < 0 || low < 0)
			return false;
		ret[i] = (uint8_t)(high << 4 | low);
		any |= ret[i];
	}
	return any;
}

/* Source: sd_id128_get_machine_app_specific(3). */
bool hello_derive(struct str machine_id, char ret[static HELLO_DERIVED])
{
	static const char hex[] = "0123456789abcdef";
	uint8_t machine[ID_BYTES], app[ID_BYTES], sum[SHA256_BYTES];

	if (machine_id.len && machine_id.data[machine_id.len - 1] == '\n')
		machine_id.len--;
	if (machine_id.len != 2 * ID_BYTES || !take_id(machine_id.data, machine) ||
	    !take_id(HELLO_APP, app) ||
	    mbedtls_md_hmac(mbedtls_md_info_from_type(MBEDTLS_MD_SHA256), machine, sizeof(machine),
			    app, sizeof(app), sum))
		return false;
	/* Make it a version 4 UUID of the usual variant. */
	sum[6] = (sum[6] & 0x0f) | 0x40;
	sum[8] = (sum[8] & 0x3f) | 0x80;
	for (size_t i = 0; i < ID_BYTES; i++) {
		ret[2 * i] = hex[sum[i] >> 4];
		ret[2 * i + 1] = hex[sum[i] & 15];
	}
	return true;
}

static void read_kernel(struct hello *h)
{
	static char notes[NOTES_MAX + 1];
	const ssize_t n = smallfile_read(AT_FDCWD, "/sys/kernel/notes", notes, sizeof(notes));
	struct span id;

	if (n < 0)
		log_info(
			"/sys/kernel/notes: %s; the stream has no build id of the kernel; make the "
			"file readable",
			strerror(-(int)n));
	if (n <= 0 || !notes_find((struct span){ .data = (const uint8_t *)notes, .len = (size_t)n },
				  "GNU", NT_GNU_BUILD_ID, sizeof(h->kernel_build_id), &id))
		return;
	memcpy(h->kernel_build_id, id.data, id.len);
	h->kernel_build_id_len = id.len;
}

void hello_read(struct hello *h, const char *host_id)
{
	char text[2 * ID_BYTES + 3];

	*h = (struct hello){ .host_id = str_from(host_id) };
	read_kernel(h);
	if (host_id)
		return;
	const ssize_t n = smallfile_read(AT_FDCWD, MACHINE_ID, text, sizeof(text));

	if (n >= 0 && hello_derive((struct str){ .data = text, .len = (uint32_t)n }, h->derived))
		h->host_id = (struct str){ .data = h->derived, .len = sizeof(h->derived) };
	else
		log_info(MACHINE_ID
			 ": %s; profiles do not tell this host from others; give --host-id",
			 n < 0 ? strerror(-(int)n) : "has no id");
}
