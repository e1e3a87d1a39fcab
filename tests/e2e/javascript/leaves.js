// SPDX-License-Identifier: Apache-2.0
// Scenes of WebAssembly, and scenes that burn in other code than JavaScript.
"use strict";
const crypto = require("crypto");

const enter = (spin) => spin();

// (module (import "e" "f" (func $imported (result i32)))
//   (func $inner (result i32) call $imported)
//   (func $outer (export "outer") (result i32) call $inner i32.const 1 i32.add)
//   (func $loop (export "loop") (param i32) (result i32)
//     loop local.get 0 i32.const 1 i32.sub local.tee 0 br_if 0 end local.get 0))
function wasm_module() {
	const sized = (bytes) => [bytes.length, ...bytes];
	const text = (s) => sized([...Buffer.from(s)]);
	const section = (id, ...parts) => [id, ...sized(parts.flat())];
	const named = (index, name) => [index, ...text(name)];
	return new WebAssembly.Module(new Uint8Array([
		0, 0x61, 0x73, 0x6d, 1, 0, 0, 0,
		...section(1, 2, [0x60, 0, 1, 0x7f], [0x60, 1, 0x7f, 1, 0x7f]),
		...section(2, 1, text("e"), text("f"), 0, 0),
		...section(3, 3, 0, 0, 1),
		...section(7, 2, text("outer"), 0, 2, text("loop"), 0, 3),
		...section(10, 3, sized([0, 0x10, 0, 0x0b]),
		           sized([0, 0x10, 1, 0x41, 1, 0x6a, 0x0b]),
		           sized([0, 0x03, 0x40, 0x20, 0, 0x41, 1, 0x6b, 0x22, 0, 0x0d, 0, 0x0b,
		                  0x20, 0, 0x0b])),
		...section(0, text("name"), 1, sized([4, named(0, "imported"), named(1, "inner"),
		                                      named(2, "outer"), named(3, "loop")].flat())),
	]));
}

function wasm_scenes({ scene }) {
	// There is none without a compiler.
	if (typeof WebAssembly === "undefined")
		return;
	let now;
	const instance = new WebAssembly.Instance(wasm_module(), { e: { f: () => now() } });
	scene("wasm", (spin) => {
		now = spin;
		return instance.exports.outer();
	});
	global.wasm_loop = instance.exports.loop;
}

// What a scene does over and over; it ends in code of V8, of Node.js or of a library.
const LEAVES = {
	allocation: "for (let i = 0, a = []; i < 5000; i++) a.push({ i, x });",
	array_builtin: "x += Array(3000).fill(7).indexOf(8);",
	bigint: "x += Number((3n ** 2000n) % 7n);",
	compiler: "x += (0, eval)('(function () { return ' + x + '; })')();",
	crypto: "x += crypto_hash();",
	exception: "try { null.x; } catch (e) { x++; }",
	garbage: "for (let i = 0, a = []; i < 300; i++) a.push(Array(900).fill(i));",
	json: "x += JSON.stringify([1, 'two', { three: 3 }, Array(500).fill(4)]).length;",
	json_parse: "x += JSON.parse('[' + '1,'.repeat(500) + '1]').length;",
	keyed: "const o = {}; for (let i = 0; i < 200; i++) o['k' + i] = i;",
	map: "const m = new Map(); for (let i = 0; i < 500; i++) m.set(i, i);",
	math: "for (let i = 0; i < 500; i++) x += Math.pow(i, 1.1) + Math.sin(i);",
	native: "x += Buffer.from('a'.repeat(9000)).toString('base64').length;",
	regexp: "x += /^(a+)+$/.test('aaaaaaaaaaaaaaaaab') ? 1 : 0;",
	regexp_replace: "x += 'abcabc'.repeat(500).replace(/b/g, 'x').length;",
	small: "for (let i = 0; i < 9000; i++) x = (x + small(i)) | 0;",
	sort_builtin: "x += Array.from({ length: 300 }, (_, i) => -i).sort()[0];",
	text: "let s = ''; for (let i = 0; i < 500; i++) s += i; x += s.indexOf('z');",
	wasm: "x += wasm_loop(20000);",
};

function leaves({ single }) {
	const text = "x".repeat(30000);
	global.crypto_hash = () => crypto.createHash("sha256").update(text).digest()[0];
	const tiny = (a) => a + 1;
	global.small = (a) => tiny(a) + 1;
	for (const name of Object.keys(LEAVES).filter((n) => n !== "wasm" || global.wasm_loop))
		single(`in_${name}`, enter, LEAVES[name]);
}

module.exports = (scenes) => {
	wasm_scenes(scenes);
	leaves(scenes);
};
