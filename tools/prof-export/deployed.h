/* SPDX-License-Identifier: Apache-2.0 */
/* In a deployment the stream comes from prof-symd, and the outputs are descriptors of the
 * launcher. */
#ifndef PROF_EXPORT_DEPLOYED_H
#define PROF_EXPORT_DEPLOYED_H

#include "tools/prof-export/job.h"

/* A part of main (exits.h). Changes the session's options as needed to send. */
int deployed_run(struct job *job, struct options *o);

#endif
