/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pprof profile: gzipped protobuf. The values of a sample are samples/count and cpu/nanoseconds,
 * or the event that the stream names. A file has one mapping, or several if its segments differ in
 * the difference between address and offset. Locations have ELF addresses; a caller's address is
 * its return address minus one, which is inside the call. A frame without a name gets a function
 * with its label (label.h), so that a viewer does not search its own host for binaries.
 *
 * Source: proto/profile.proto of github.com/google/pprof.
 */
#ifndef PROF_EXPORT_OUTPUT_PPROF_H
#define PROF_EXPORT_OUTPUT_PPROF_H

#include "tools/prof-export/model/model.h"
#include "tools/prof-export/output/output.h"

/* m must be of MODEL_ADDRESSES, and o a gzip output. Returns 0 or -ENOMEM; errors of writing stay
 * in the output. */
int pprof_write(const struct model *m, struct output *o);

#endif
