/* SPDX-License-Identifier: Apache-2.0 */
/* Other Pythons are known by a function that they export, or by their strings. */
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
