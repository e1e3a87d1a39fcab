/* SPDX-License-Identifier: Apache-2.0 */
#include "common/names/elf/filecrc.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include "common/base/bytes/numbers.h"
#include "common/base/system/clock.h"

#define CHUNK (64u << 10)
#define FILES 128
#define OWNERS 64

struct identity {
	uint64_t dev, inode, ctime_ns, size;
};

struct known {
	struct identity of;
	uint32_t crc;
	bool valid, too_large;
};

/* Bytes that may still be read for an owner. */
struct allowance {
	uint64_t owner;
	uint64_t left, since_ns; /* since_ns 0: unused */
};

static struct {
	struct known files[FILES]; /* a ring buffer */
	unsigned next;
	struct allowance owners[OWNERS];
} store;

static const struct known *find_known(const struct identity *i)
{
	for (unsigned k = 0; k < FILES; k++)
		if (store.files[k].valid && !memcmp(&store.files[k].of, i, sizeof(*i)))
			return &store.files[k];
	return NULL;
}

/* Returns the allowance of an owner. If there are too many owners, it replaces the one that was
 * unused for longest. */
static struct allowance *allowance_of(uint64_t owner)
{
	const uint64_t now_ns = clock_mono_ns();
	struct allowance *a = NULL, *oldest = &store.owners[0];

	for (unsigned k = 0; k < OWNERS && !a; k++) {
		struct allowance *o = &store.owners[k];

		if (o->since_ns && o->owner == owner)
			a = o;
		else if (o->since_ns < oldest->since_ns)
			oldest = o;
	}
	if (!a) {
		a = oldest;
		*a = (struct allowance){ .owner = owner, .left = FILECRC_BURST };
	} else {
		const uint64_t ms = (now_ns - a->since_ns) / 1000000;
		const uint64_t earned = ms < 1000000 ? ms * FILECRC_RATE / 1000 : FILECRC_BURST;

		a->left = numbers_smaller(a->left + earned, FILECRC_BURST);
	}
	a->since_ns = now_ns;
	return a;
}

/* Adds the first `size` bytes to *crc. */
static int add_data(const struct symfile *f, uint64_t size, struct allowance *a, uLong *crc)
{
	uint8_t chunk[CHUNK];

	for (uint64_t at = 0; at < size;) {
		const size_t n = (size_t)numbers_smaller(size - at, sizeof(chunk));

		if (n > a->left)
			return SYMFILE_TOO_LARGE;
		a->left -= n;
		const int r = symfile_read(f, at, chunk, n);

		if (r)
			return r;
		*crc = crc32(*crc, chunk, (uInt)n);
		at += n;
	}
	return 0;
}

/* Holes are read like data: to find them, lseek takes the file's lock, which its owner can hold for
 * ever. */
static int compute(const struct symfile *f, struct allowance *a, uint32_t *ret)
{
	uLong crc = crc32(0, NULL, 0);
	const int r = add_data(f, symfile_size(f), a, &crc);

	*ret = (uint32_t)crc;
	return r;
}

int filecrc_of(const struct symfile *f, uint64_t owner, uint32_t *ret)
{
	struct identity i;
	struct stat st;

	memset(&i, 0, sizeof(i));
	if (symfile_fd(f) < 0)
		return compute(f, allowance_of(owner), ret);
	if (fstat(symfile_fd(f), &st) < 0)
		return -errno;
	i.dev = st.st_dev;
	i.inode = st.st_ino;
	i.ctime_ns = clock_timespec_ns(st.st_ctim);
	i.size = symfile_size(f);
	const struct known *known = find_known(&i);

	if (known) {
		*ret = known->crc;
		return known->too_large ? SYMFILE_TOO_LARGE : 0;
	}
	struct allowance *a = allowance_of(owner);
	const int r = i.size > FILECRC_SIZE ? SYMFILE_TOO_LARGE : compute(f, a, ret);

	/* Do not cache a refusal that is due to the owner's limit: the file may be read later. */
	if (r && (r != SYMFILE_TOO_LARGE || a->left < CHUNK))
		return r;
	store.files[store.next] =
		(struct known){ .of = i, .crc = *ret, .valid = true, .too_large = r != 0 };
	store.next = (store.next + 1) % FILES;
	return r;
}
