/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of the specification and of the receivers for a request of OTLP, decoded by the public
 * schema. tests/e2e/otlp_rules.py has the same in Python. */
#ifndef TESTS_OTLP_RULES_H
#define TESTS_OTLP_RULES_H

#include "common/base/bytes/span.h"

/* Aborts if the request breaks a rule. Returns its samples: timestamps. */
uint64_t otlp_rules_check(struct span plain);

#endif
