/* SPDX-License-Identifier: Apache-2.0 */
/* Iterates over all mappings that the host knows, for host-watch alone. */
#ifndef TESTS_HOST_EACH_MAPPING_H
#define TESTS_HOST_EACH_MAPPING_H

#include "tools/prof-bpf/host/host.h"

/* Calls fn with each executable mapping of each living process, or only of `pid` if that is not 0,
 * in order of addresses. file: NULL for code in no file, or if not open yet (*pending). */
void host_each_mapping(struct host *h, uint32_t pid,
		       void (*fn)(void *ctx, const struct host_process *p, uint64_t start,
				  uint64_t end, uint64_t offset, const struct host_file *file,
				  bool pending),
		       void *ctx);

#endif
