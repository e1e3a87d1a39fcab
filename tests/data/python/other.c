/* SPDX-License-Identifier: Apache-2.0 */
/* What a Python that is not read is known by: a function that it exports, or its strings. */
__attribute__((visibility("default"))) extern const char other_text[];
const char other_text[] = OTHER_TEXT;

#ifdef OTHER_FUNCTION
__attribute__((visibility("default"))) void OTHER_FUNCTION(void)
{
}
#else
void _start(void);
void _start(void)
{
	for (;;)
		;
}
#endif
