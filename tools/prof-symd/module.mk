# SPDX-License-Identifier: Apache-2.0
TOOLS += prof-symd
prof-symd_USES := names go cell status wire base
