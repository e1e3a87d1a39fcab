# SPDX-License-Identifier: Apache-2.0
UNITS += unit/deploy
unit/deploy_SRCS := tests/unit/deploy.c
unit/deploy_LIBS := -lcriterion
