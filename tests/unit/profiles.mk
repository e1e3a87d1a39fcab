# SPDX-License-Identifier: Apache-2.0
UNITS += unit/profiles
unit/profiles_SRCS := tests/unit/profiles.c tools/prof-export/profiles.c
unit/profiles_LIBS := -lcriterion
