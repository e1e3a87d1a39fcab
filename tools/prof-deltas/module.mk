# SPDX-License-Identifier: Apache-2.0
TOOLS += prof-deltas
prof-deltas_USES := rows go cell status wire base
