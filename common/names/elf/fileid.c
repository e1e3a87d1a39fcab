/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sources: "process.executable.build_id" of OpenTelemetry's semantic conventions, for htlhash;
 * cmd/internal/buildid of Go, for its note.
 */
#include "common/names/elf/fileid.h"

#include <elf.h>
#include <endian.h>
#include <sha2.h>
#include <sys/types.h>
#include "common/names/elf/symfile_internal.h"

#define PIECE 4096u
#define GO_NOTE 4 /* the type of the note with Go's build id */

static void read_htlhash(const struct symfile *f, struct fileid *ret)
{
	const uint64_t size = symfile_size(f), length = htobe64(size);
	const size_t n = size < PIECE ? (size_t)size : PIECE;
	uint8_t digest[SHA256_DIGEST_LENGTH], piece[PIECE];
	SHA2_CTX sha;

	SHA256Init(&sha);
	for (int tail = 0; tail < 2; tail++) {
		if (symfile_read(f, tail ? size - n : 0, piece, n))
			return;
		SHA256Update(&sha, piece, n);
	}
	SHA256Update(&sha, (const uint8_t *)&length, sizeof(length));
	SHA256Final(digest, &sha);
	memcpy(ret->htlhash, digest, FILEID_HTLHASH);
	ret->htlhash_len = FILEID_HTLHASH;
}

static void read_go(const struct symfile *f, struct fileid *ret)
{
	const struct symfile_section *s;
	struct {
		Elf64_Nhdr head;
		char name[4];
	} note;

	if (symfile_section(f, ".note.go.buildid", &s) || s->type != SHT_NOTE ||
	    s->size < sizeof(note) || symfile_read(f, s->offset, &note, sizeof(note)))
		return;
	const uint32_t n = note.head.n_descsz;

	if (note.head.n_type != GO_NOTE || note.head.n_namesz != sizeof(note.name) ||
	    memcmp(note.name, "Go\0", sizeof(note.name)) != 0 || n > FILEID_GO ||
	    n > s->size - sizeof(note) || symfile_read(f, s->offset + sizeof(note), ret->go, n))
		return;
	ret->go_len = n;
}

static void read_segments(const struct symfile *f, struct fileid *ret)
{
	for (uint32_t i = 0; i < f->segment_count && ret->segment_count < FILEID_SEGMENTS; i++) {
		const struct symfile_segment *s = &f->segments[i];
		uint64_t *to = &ret->segments[3 * (size_t)ret->segment_count];

		if (!s->exec || !s->filesz)
			continue;
		to[0] = s->offset;
		to[1] = s->filesz;
		to[2] = s->vaddr;
		ret->segment_count++;
	}
}

void fileid_read(const struct symfile *f, struct fileid *ret)
{
	const struct span gnu = symfile_build_id(f);

	*ret = (struct fileid){ .gnu_len = (uint32_t)gnu.len };
	if (gnu.len)
		memcpy(ret->gnu, gnu.data, gnu.len);
	read_htlhash(f, ret);
	read_go(f, ret);
	read_segments(f, ret);
}

bool fileid_is_sane(const struct fileid *id)
{
	return id->gnu_len <= sizeof(id->gnu) && id->go_len <= sizeof(id->go) &&
	       id->htlhash_len <= sizeof(id->htlhash) && id->segment_count <= FILEID_SEGMENTS;
}

bool fileid_address(const struct fileid *id, uint64_t offset, uint64_t *ret)
{
	for (uint32_t i = 0; i < id->segment_count; i++) {
		const uint64_t *s = &id->segments[3 * (size_t)i];

		if (offset < s[0] || offset - s[0] >= s[1])
			continue;
		*ret = s[2] + (offset - s[0]);
		return true;
	}
	return false;
}
