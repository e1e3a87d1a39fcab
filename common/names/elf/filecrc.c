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
#define MAX_PIECES 65536 /* pieces of data between holes; a file server may report any number */

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

/* Computes the CRC-32 of n zeros, from those of powers of two. */
static uLong crc_of_zeros(uint64_t n)
{
	static const uint8_t zero;
	uLong all = crc32(0, NULL, 0), power = crc32(all, &zero, 1);

	for (uint64_t size = 1; n; n >>= 1, size <<= 1) {
		if (n & 1)
			all = crc32_combine(all, power, (z_off_t)size);
		if (n > 1)
			power = crc32_combine(power, power, (z_off_t)size);
	}
	return all;
}

/* Finds the start and the end of the next data at or after `at`. A file system without holes
 * reports that the whole file is data. */
static void next_data(const struct symfile *f, uint64_t at, uint64_t *ret_start, uint64_t *ret_end)
{
	const uint64_t size = symfile_size(f);
	const int fd = symfile_fd(f);
	off_t start = fd < 0 ? (off_t)at : lseek(fd, (off_t)at, SEEK_DATA);

	if (start < 0)
		start = errno == ENXIO ? (off_t)size : (off_t)at;
	off_t end = fd < 0 ? (off_t)size : lseek(fd, start, SEEK_HOLE);

	*ret_start = (uint64_t)start < size ? (uint64_t)start : size;
	*ret_end = end <= start || (uint64_t)end > size ? size : (uint64_t)end;
}

/* Adds the bytes [at, end) to *crc. *data: bytes of the file that may still be read. */
static int add_data(const struct symfile *f, uint64_t at, uint64_t end, struct allowance *a,
		    uint64_t *data, uLong *crc)
{
	uint8_t chunk[CHUNK];

	while (at < end) {
		const size_t n = end - at < sizeof(chunk) ? (size_t)(end - at) : sizeof(chunk);

		if (n > a->left || n > *data)
			return SYMFILE_TOO_LARGE;
		a->left -= n;
		*data -= n;
		const int r = symfile_read(f, at, chunk, n);

		if (r)
			return r;
		*crc = crc32(*crc, chunk, (uInt)n);
		at += n;
	}
	return 0;
}

static int compute(const struct symfile *f, struct allowance *a, uint32_t *ret)
{
	const uint64_t size = symfile_size(f);
	uLong crc = crc32(0, NULL, 0);
	uint64_t data = FILECRC_DATA, end;
	unsigned pieces = 0;

	for (uint64_t at = 0; at < size; at = end) {
		uint64_t start;

		if (pieces++ == MAX_PIECES)
			return SYMFILE_TOO_LARGE;
		next_data(f, at, &start, &end);
		if (start > at)
			crc = crc32_combine(crc, crc_of_zeros(start - at), (z_off_t)(start - at));
		const int r = add_data(f, start, end, a, &data, &crc);

		if (r)
			return r;
	}
	*ret = (uint32_t)crc;
	return 0;
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
	const int r = (uint64_t)st.st_blocks > FILECRC_DATA / 512 ? SYMFILE_TOO_LARGE
								  : compute(f, a, ret);

	/* Do not cache a refusal that is due to the owner's limit: the file may be read later. */
	if (r && (r != SYMFILE_TOO_LARGE || a->left < CHUNK))
		return r;
	store.files[store.next] =
		(struct known){ .of = i, .crc = *ret, .valid = true, .too_large = r != 0 };
	store.next = (store.next + 1) % FILES;
	return r;
}
