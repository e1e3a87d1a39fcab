TOOLS += profpipe
profpipe_SRCS := $(wildcard tools/profpipe/*.c)
profpipe_LIBS := -lcjson
