# SPDX-License-Identifier: Apache-2.0
TOOLS += prof-symd
prof-symd_USES := names go svm cell status wire base
