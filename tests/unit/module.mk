# SPDX-License-Identifier: Apache-2.0
# One binary per noun: tests/unit/<noun>.mk adds unit/<noun> to UNITS and says what it links.
include $(filter-out tests/unit/module.mk,$(wildcard tests/unit/*.mk))
