// SPDX-License-Identifier: Apache-2.0
// Messages, to classes and by selectors, in a class without a foundation.
#include <objc/Object.h>
#include <objc/runtime.h>
#include <stdio.h>
#include <stdlib.h>

@interface Shape : Object
{
	int side;
}
+ (id)make;
- (int)area:(int)depth;
- (void)thrower:(int)depth;
@end

@implementation Shape
+ (id)make
{
	return class_createInstance(self, 0);
}
- (int)area:(int)depth
{
	return depth < 2 ? side + depth : [self area:depth - 1] + [self area:depth - 2];
}
- (void)thrower:(int)depth
{
	if (!depth)
		@throw self;
	[self thrower:depth - 1];
	side++;
}
@end

int main(void)
{
	long sum = 0;

	for (long round = 0; round < 1000000000; round++) {
		Shape *s = [Shape make];

		sum += [s area:9];
		@try {
			[s thrower:6];
		} @catch (Shape *caught) {
			sum++;
		}
		object_dispose(s);
	}
	printf("%ld\n", sum);
	return 0;
}
