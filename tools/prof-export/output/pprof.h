/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pprof profile: gzipped protobuf. Sample values are samples/count and cpu/nanoseconds, or the
 * event that the stream names. A file is one mapping, or several if its segments are shifted
 * differently against their offsets. Locations have ELF addresses; a caller's is its return address
 * minus one, which is inside the call. A frame without a name gets a function with its label
 * (label.h), so that no viewer looks for binaries on its own host.
 *
 * Source: proto/profile.proto of github.com/google/pprof.
 */
#ifndef PROF_EXPORT_OUTPUT_PPROF_H
#define PROF_EXPORT_OUTPUT_PPROF_H

#include "tools/prof-export/model/model.h"
#include "tools/prof-export/output/output.h"

/* The model has MODEL_ADDRESSES; o is a gzip one. 0, -ENOMEM; errors of the output stay in it. */
int pprof_write(const struct model *m, struct output *o);

#endif
