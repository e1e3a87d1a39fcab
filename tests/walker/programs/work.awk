# SPDX-License-Identifier: Apache-2.0
function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2) }
function by(i1, v1, i2, v2) { return v2 - v1 }
BEGIN {
	while (1) {
		for (i = 0; i < 40; i++) h[i] = i * 7919 % 1009
		n = asort(h, v, "by")
		t = sprintf("%d %g %s", n, 1.5, v[3])
		gsub(/[0-9]/, "<&>", t)
		sum += length(t) + fib(7)
	}
}
