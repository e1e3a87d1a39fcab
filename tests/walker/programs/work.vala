// SPDX-License-Identifier: Apache-2.0
// Closures, signals of objects, errors.
class Source : Object {
	public signal void heard(int n);
}

int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

int thrower(int depth) throws IOError {
	if (depth == 0)
		throw new IOError.FAILED("the end");
	return thrower(depth - 1) + 1;
}

int main() {
	int64 sum = 0;
	var source = new Source();
	source.heard.connect((n) => { sum += fib(n); });
	for (int round = 0; round < int.MAX; round++) {
		var list = new GenericArray<string>();
		for (int i = 0; i < 40; i++)
			list.add("%d".printf(i * 7919 % 1009));
		list.sort((a, b) => strcmp(a, b));
		source.heard(9);
		try { thrower(6); } catch (IOError e) { sum += e.message.length; }
	}
	print("%lld\n", sum);
	return 0;
}
