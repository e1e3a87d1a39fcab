// SPDX-License-Identifier: Apache-2.0
// A module of WebAssembly with many functions, of which the given ones burn cpu time in turn.
// usage: node many.js FUNCTIONS names|"" NUMBER...
"use strict";
const [count, named, ...burn] = process.argv.slice(2);
const IMPORTED = 2, all = Number(count), numbers = burn.map(Number);
const leb = (n) => n < 128 ? [n] : [n & 127 | 128, ...leb(n >>> 7)];
const sized = (bytes) => [...leb(bytes.length), ...bytes];
const text = (s) => sized([...Buffer.from(s)]);
const parts = [Buffer.from([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0])];

function section(id, pieces) {
	const contents = Buffer.concat(pieces.map((p) => Buffer.from(p)));
	parts.push(Buffer.from([id, ...leb(contents.length)]), contents);
}

// loop local.get 0 i32.const 1 i32.sub local.tee 0 br_if 0 end local.get 0
const body = sized([0, 0x03, 0x40, 0x20, 0, 0x41, 1, 0x6b, 0x22, 0, 0x0d, 0, 0x0b, 0x20, 0, 0x0b]);
const own = Array.from({ length: all - IMPORTED }, () => body);
const names = Array.from({ length: all }, (_, k) => [...leb(k), ...text(`müller_${k}`)]);
section(1, [[1, 0x60, 1, 0x7f, 1, 0x7f]]);
section(2, [leb(IMPORTED), ...["a", "b"].map((n) => [...text("e"), ...text(n), 0, 0])]);
section(3, [leb(own.length), new Uint8Array(own.length)]);
section(7, [leb(numbers.length), ...numbers.map((n) => [...text(`f${n}`), 0, ...leb(n)])]);
section(10, [leb(own.length), ...own]);
if (named) {
	const list = Buffer.concat([leb(all), ...names].map((n) => Buffer.from(n)));
	section(0, [text("name"), [1, ...leb(list.length)], list]);
}
const nothing = () => 0;
const { exports } = new WebAssembly.Instance(new WebAssembly.Module(Buffer.concat(parts)),
	{ e: { a: nothing, b: nothing } });
for (const n of numbers)
	for (const until = process.cpuUsage().user + 400000; process.cpuUsage().user < until;)
		exports[`f${n}`](100000);
