/* SPDX-License-Identifier: Apache-2.0 */
/* Digits of hexadecimal numbers. */
#ifndef COMMON_BASE_TEXT_HEX_H
#define COMMON_BASE_TEXT_HEX_H

/* The value of a digit with lower-case letters, as in the kernel's files; -1: not a digit. */
static inline int hex_lower(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The same with letters of either case. */
static inline int hex_digit(char c)
{
	return hex_lower(c >= 'A' && c <= 'F' ? (char)(c - 'A' + 'a') : c);
}

/* The byte that two digits of either case stand for; -1: they are not digits. */
static inline int hex_byte(const char two[static 2])
{
	const int high = hex_digit(two[0]), low = hex_digit(two[1]);

	return high < 0 || low < 0 ? -1 : high << 4 | low;
}

#endif
