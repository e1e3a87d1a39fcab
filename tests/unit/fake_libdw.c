/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/fake_libdw.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "common/base/system/clock.h"
#include "common/names/dwarf/dwarfinfo.h"
#include "tests/unit/forbidden.h"

struct dwarfinfo {
	bool alt;
	bool offered; /* the file that it wanted */
	unsigned vain;
};

uint64_t dwarfinfo_size(const struct symfile *f)
{
	(void)f;
	return 1;
}

int dwarfinfo_open(const struct symfile *f, const struct symfile *alt, uint64_t max,
		   struct dwarfinfo **ret)
{
	(void)f;
	if (max != MAX)
		return SYMFILE_TOO_LARGE;
	*ret = calloc(1, sizeof(**ret));
	(*ret)->alt = alt != NULL;
	return 0;
}

void dwarfinfo_free(struct dwarfinfo *d)
{
	free(d);
}

void dwarfinfo_offer(struct dwarfinfo *d, struct symfile *f)
{
	d->offered |= f != NULL;
	d->vain += f == NULL;
	symfile_free(f);
}

bool dwarfinfo_rest(struct dwarfinfo *d, bool packed)
{
	(void)d;
	return packed;
}

size_t dwarfinfo_bytes(const struct dwarfinfo *d)
{
	(void)d;
	return 4096;
}

static void add(struct names *n, const char *name, size_t len)
{
	n->calls[n->count++] = (struct names_call){ .name = names_keep(n, name, len),
						    .system_name = names_keep(n, name, len),
						    .source = names_keep(n, "/a/b.c", 6),
						    .line = 7,
						    .start_line = 3,
						    .bare = true };
}

static void fill(void)
{
	char *p;

	do {
		p = malloc(1 << 20);
		if (p)
			memset(p, 1, 1 << 20);
	} while (p);
}

static int want(struct names *ret, const char *id, unsigned what)
{
	ret->calls[0] = (struct names_call){ .name = names_keep(ret, id, strlen(id)),
					     .source = names_keep(ret, "/a/b.dwo", 8),
					     .line = what };
	ret->count = 1;
	return VERDICT_AGAIN;
}

int dwarfinfo_lookup(struct dwarfinfo *d, uint64_t address, struct names *ret)
{
	static const char junk[64] = "junk";
	static char name[NAMES_TEXT];

	switch (address) {
	case WORK:
		for (const uint64_t end_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) + 550000000;
		     clock_ns(CLOCK_PROCESS_CPUTIME_ID) < end_ns;)
			;
		add(ret, "inner", 5);
		add(ret, "outer", 5);
		return 0;
	case NAP:
		nanosleep(&(struct timespec){ .tv_nsec = 500000000 }, NULL);
		/* fallthrough */
	case NAME:
		add(ret, "inner", 5);
		add(ret, "outer", 5);
		return 0;
	case MANY:
		memset(name, 'x', sizeof(name));
		while (ret->count < NAMES_MAX)
			add(ret, name, sizeof(name));
		return 0;
	case CRASH:
		raise(SIGSEGV);
		abort();
	case LEAVE:
		exit(0);
	case LOOP:
		for (volatile unsigned i = 0;; i++)
			;
	case MEMORY:
		fill();
		return -ENOMEM;
	case MEMORY_ABORT:
		fill();
		errno = 0;
		abort();
	case MEMORY_THROUGH:
		fill();
		memset(calloc(1, 1 << 20), 1, 1 << 20);
		abort();
	case WANT:
		if (!d->offered && d->vain < 2)
			return want(ret, "0123456789abcdef", DWARFINFO_WANTS_PATH + d->vain);
		add(ret, "inner", 5);
		add(ret, d->offered ? "offered" : "outer", d->offered ? 7 : 5);
		return 0;
	case WANT_NO_END:
		return want(ret, "0123456789abcdef", DWARFINFO_WANTS_BESIDE);
	case WANT_ODDLY:
		return want(ret, "0123", 99);
	case SHOUT:
		for (int i = 0; i < 10000; i++)
			if (write(STDERR_FILENO, junk, sizeof(junk)) >= 0)
				return SYMFILE_NONE;
		abort();
	case CHATTER:
		for (;;)
			send(3, junk, sizeof(junk), 0);
	}
	if (address >= FIRST_CALL)
		add(ret, forbidden(address - FIRST_CALL) < 0 ? "refused" : "done", 4);
	return address >= FIRST_CALL ? 0 : SYMFILE_NONE;
}
