# SPDX-License-Identifier: Apache-2.0
TOOLS += profpipe
profpipe_USES := cell status wire base
profpipe_LIBS := -lcjson -linih
