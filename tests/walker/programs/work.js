// SPDX-License-Identifier: Apache-2.0
function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
function thrower(d) { if (!d) throw new Error("the end"); return thrower(d - 1) + 1; }
let sum = 0;
for (;;) {
	const m = new Map();
	for (let i = 0; i < 40; i++) m.set(i * 7919 % 1009, "x" + i);
	const v = [...m.keys()].sort((a, b) => b - a);
	try { thrower(5); } catch (e) { sum += e.message.length; }
	function* g() { for (let i = 0; i < 5; i++) yield fib(i); }
	for (const x of g()) sum += x;
	sum += v.join(",").replace(/(\d)(\d)/g, (all, a, b) => b + a).length + fib(8);
}
