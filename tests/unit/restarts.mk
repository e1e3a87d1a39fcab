UNITS += unit/restarts
unit/restarts_SRCS := tests/unit/restarts.c tools/profpipe/restarts.c
unit/restarts_LIBS := -lcriterion
