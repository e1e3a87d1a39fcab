/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pprof: gzipped protobuf. Sample values are samples/count and cpu/nanoseconds (or what the stream
 * says of its event). A file is one mapping (more only where its segments are shifted differently
 * against their offsets), with the ELF addresses of its locations; a caller's address is one less
 * than its return address, inside the call. Frames without a name have a function of label.h's
 * name, so that no viewer looks for binaries on its own host.
 *
 * Source: proto/profile.proto of github.com/google/pprof.
 */
#ifndef PROFPIPE_PPROF_H
#define PROFPIPE_PPROF_H

#include "tools/prof-export/model/model.h"
#include "tools/prof-export/output/output.h"

/* The model has MODEL_ADDRESSES; o is a gzip one. 0, -ENOMEM; errors of the output stay in it. */
int pprof_write(const struct model *m, struct output *o);

#endif
