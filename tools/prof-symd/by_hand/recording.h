/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names a recording that a user gives prof-symd: reads the stream from standard input, and writes
 * it with names to standard output. It opens files itself instead of requesting them from prof-bpf.
 * A stream that already has names is passed on unchanged.
 */
#ifndef PROF_SYMD_BY_HAND_RECORDING_H
#define PROF_SYMD_BY_HAND_RECORDING_H

#include <stdint.h>
#include "common/base/command/reporting.h"

/* memory: bytes for symbols and DWARF; 0: the default. Logs errors. Returns an exit status
 * (exits.h). */
int recording_name(uint64_t memory, enum reporting_names names);

#endif
