# SPDX-License-Identifier: Apache-2.0
UNITS += unit/model
unit/model_SRCS := tests/unit/model.c $(patsubst %,tools/prof-export/%.c,model lives hot things label twins table folded paths output text)
unit/model_LIBS := -lcriterion -lz
