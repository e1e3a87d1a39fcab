# SPDX-License-Identifier: Apache-2.0
TOOLS += prof-deltas
prof-deltas_USES := rows go svm cell status wire base
