# SPDX-License-Identifier: Apache-2.0
# It is the only tool that links libcurl and OpenSSL, and so nghttp2.
send_GEN := $(B)/gen/tools/prof-send

TOOLS += prof-send
prof-send_USES := cell status wire base
prof-send_LIBS := -lcurl -lcrypto -lprotobuf-c -lz
prof-send_OBJS := $(send_GEN)/answer/replies.pb-c.o
prof-send_GEN  := $(send_GEN)/answer/replies.pb-c.h

$(send_GEN)/answer/replies.pb-c.c $(send_GEN)/answer/replies.pb-c.h &: \
		tools/prof-send/answer/replies.proto
	@mkdir -p $(@D)
	@echo "  PROTOC  $<"
	@protoc-c --c_out=$(B)/gen $<

$(send_GEN)/answer/replies.pb-c.o: $(send_GEN)/answer/replies.pb-c.h
