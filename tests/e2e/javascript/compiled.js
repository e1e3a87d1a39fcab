// SPDX-License-Identifier: Apache-2.0
// Scenes of code made at run time, and of what the compilers do to code.
"use strict";
const vm = require("vm");
const { Derived, Scene } = require("./classes.js");

function by_eval(spin) {
	return eval("(function evaluated() {\n\treturn spin();\n})()");
}

const by_function = new Function("spin", "const x = 1;\nreturn spin() + x;");
const by_vm = vm.runInThisContext("\n\n(function in_vm(spin) {\n\treturn spin();\n})",
				  { filename: "/made/vm.js", lineOffset: 10 });
const by_context = vm.runInNewContext("(function in_context(spin) {\n\treturn spin();\n})", {},
                                      "/made/context.js");
const by_url = (0, eval)("(function with_url(spin) {\n\treturn spin();\n})\n" +
                         "//# sourceURL=/made/url.js");
// A line far from its function's first, and a function that needs wide operands.
const far = vm.runInThisContext("(function far(spin) {\n\tlet x = 1;\n" + "\n".repeat(400) +
                                "\tx = [x,\n" + "\n".repeat(300) + "\t\tspin()];\n\treturn x;\n})",
                                "/made/far.js");
const each = (f) => Array.from({ length: 300 }, (_, i) => f(i)).join("");
const wide = vm.runInThisContext(
	"(function wide(spin) {\n" + each((i) => `\tlet v${i} = spin.length + ${i} * 1.5;\n`) +
	"\tconst got = spin();\n\treturn got" + each((i) => ` + v${i}`) + ";\n})", "/made/wide.js");
// Names of two bytes a letter, made of pieces, and a name in a file of two bytes a letter.
const two_bytes = vm.runInThisContext("(function функция_日本(spin) {\n\treturn spin();\n})",
                                      "/made/файл.js");
const latin = vm.runInThisContext("(function größe(spin) {\n\treturn spin();\n})", "/made/maß.js");
const pieces = { ["a_name_that_is_long_" + String(2)](spin) {
	return spin();
} };

// Small functions that are inlined into each other.
function add(a, b) {
	return a + b;
}

function third(spin) {
	return add(spin(), 1);
}

const second = (spin) => third(spin) + 1;

class First {
	first(spin) {
		return second(spin) + 1;
	}
}

const first = new First();

function inlined(spin) {
	let sum = 0;
	for (let i = 0; i < 2; i++)
		sum += i ? first.first(spin) : 1;
	return sum;
}

function inlined_new(spin) {
	return new Derived(spin).value;
}

function inlined_getter(spin) {
	return new Scene(spin).attribute;
}

function inlined_callbacks(spin) {
	return [1, 2].map((x) => x === 2 ? third(spin) : x).reduce((a, b) => a + b);
}

function inlined_each(spin) {
	let got = 0;
	[1].forEach((x) => {
		got += spin();
	});
	return got;
}

function inlined_closure(spin) {
	const adder = (n) => (m) => n + m + spin();
	return adder(1)(2);
}

function inlined_call(spin) {
	return third.call(undefined, spin);
}

function inlined_catch(spin) {
	try {
		return third(spin);
	} catch (e) {
		return 0;
	}
}

// A loop that is entered in bytecode and goes on in machine code, where it burns.
function replaced_on_stack(spin) {
	let sum = 0;
	for (let i = 0; i < 3000000; i++) {
		sum = (sum + i) | 0;
		if (i === 2999990)
			sum += third(spin);
	}
	return sum;
}

// Machine code whose assumptions break at the burning call, below it and before it.
function shape_sum(o, spin) {
	return o.x + spin() + o.y;
}

function deoptimized_before(spin, quick) {
	for (let i = 0; i < 30000; i++)
		shape_sum({ x: 1, y: i }, quick[i % quick.length]);
	return shape_sum({ y: "a", x: 1.5 }, spin);
}

const constants = { value: 1 };

function assumes(spin) {
	const got = spin();
	return got + constants.value;
}

function deoptimized_below(spin, quick) {
	for (let i = 0; i < 30000; i++)
		assumes(quick[i % quick.length]);
	return assumes(function breaks() {
		constants.value = Math.random();
		return spin();
	});
}

module.exports = ({ quick, scene, single }) => {
	single("eval", by_eval);
	scene("new_function", by_function);
	scene("vm", by_vm);
	scene("vm_context", by_context);
	scene("source_url", by_url);
	scene("far_lines", far);
	scene("wide", wide);
	scene("two_bytes", two_bytes);
	scene("latin", latin);
	scene("pieces", (spin) => pieces[Object.keys(pieces)[0]](spin));
	scene("inlined", inlined);
	scene("inlined_new", inlined_new);
	scene("inlined_getter", inlined_getter);
	scene("inlined_callbacks", inlined_callbacks);
	scene("inlined_each", inlined_each);
	scene("inlined_closure", inlined_closure);
	scene("inlined_call", inlined_call);
	scene("inlined_catch", inlined_catch);
	single("replaced_on_stack", replaced_on_stack);
	single("deoptimized_before", (spin) => deoptimized_before(spin, quick));
	single("deoptimized_below", (spin) => deoptimized_below(spin, quick));
};
