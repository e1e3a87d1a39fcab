/* SPDX-License-Identifier: Apache-2.0 */
#include "common/rows/x86/go/govalue.h"

bool govalue_plus(int32_t x, int64_t y, int32_t *ret)
{
	int64_t sum = x + (y > INT32_MAX || y < INT32_MIN ? (int64_t)INT32_MAX : y);

	*ret = (int32_t)sum;
	return sum > -0x7fff0000 && sum < 0x7fff0000;
}
