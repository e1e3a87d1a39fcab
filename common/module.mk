COMMON_SRCS := $(wildcard common/*.c)
COMMON_LIBS := -lnng -lmsgpackc -lcap-ng -lseccomp -lpthread
