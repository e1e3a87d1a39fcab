/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/profpipe/run/service/probabilistic.h"

#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>
#include "bpf/mix.h"
#include "common/base/files/smallfile.h"

#define BOOT_ID "/proc/sys/kernel/random/boot_id"

/* The finalizer of splitmix64: each bit of the result depends on all bits of n. */
static uint64_t mix(uint64_t n)
{
	n = (n ^ n >> 30) * 0xbf58476d1ce4e5b9u;
	n = (n ^ n >> 27) * 0x94d049bb133111ebu;
	return n ^ n >> 31;
}

uint64_t probabilistic_seed(void)
{
	uint64_t seed = 0;
	char text[64];
	const ssize_t n = smallfile_read(AT_FDCWD, BOOT_ID, text, sizeof(text));

	for (ssize_t i = 0; i < n; i++)
		seed = mix(seed + (uint8_t)text[i] + 1);
	/* Without /proc the choices are equally random, but a restarted profpipe makes other
	 * ones. */
	if (n <= 0 && getrandom(&seed, sizeof(seed), GRND_NONBLOCK) != sizeof(seed))
		seed = (uint64_t)getpid();
	return seed;
}

bool probabilistic_samples(uint64_t seed, uint64_t ns, uint64_t length_ns, unsigned percent)
{
	const uint64_t drawn = mix(mix(seed) + (ns / length_ns + 1) * MIX_GOLDEN);

	return (unsigned)((drawn >> 32) * 100 >> 32) < percent;
}
