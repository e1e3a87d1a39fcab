// SPDX-License-Identifier: Apache-2.0
import java.util.*;

class Work {
	static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
	static int thrower(int d) {
		if (d == 0) throw new RuntimeException("the end");
		return thrower(d - 1) + 1;
	}
	public static void main(String[] arguments) {
		long sum = 0;
		for (;;) {
			Map<Integer, String> m = new TreeMap<>();
			for (int i = 0; i < 40; i++) m.put(i * 7919 % 1009, "x" + i);
			List<Integer> v = new ArrayList<>(m.keySet());
			v.sort((a, b) -> b - a);
			try {
				thrower(5);
			} catch (RuntimeException e) {
				sum += e.getMessage().length();
			}
			sum += String.format("%s %d", v, fib(8)).length();
		}
	}
}
