# SPDX-License-Identifier: Apache-2.0
# It is the only tool that links libmicrohttpd.
TOOLS += prof-metrics
prof-metrics_USES := cell status wire base
prof-metrics_LIBS := -lmicrohttpd
