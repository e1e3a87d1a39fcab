/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes that definitions and ids need, without the spare room of arrays, and the owner to whom
 * they are charged (shares.h). */
#ifndef PROF_EXPORT_MODEL_OWNERS_WEIGHT_H
#define PROF_EXPORT_MODEL_OWNERS_WEIGHT_H

#include "tools/prof-export/model/definitions/definitions.h"
#include "tools/prof-export/model/definitions/epoch.h"
#include "tools/prof-export/model/owners/shares.h"

struct weight {
	size_t kept, epoch;
};

struct weight weight_of(const struct definitions *d, const struct epoch *e);
/* Charges to the owner everything that was added since `before`. */
void weight_charge(const struct definitions *d, const struct epoch *e, struct share *w,
		   struct weight before);

#endif
