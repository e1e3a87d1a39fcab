// SPDX-License-Identifier: Apache-2.0 Scenes, the kinds of stack that JavaScript has: each burns
// cpu in spin_NAME, and records its stack by V8's own traceback.
//
// Runs on every Node.js from 12 on, with its own modules alone. `node scenes.js FOLDER SECONDS
// FILE` burns so much in each scene, and writes [{"scene", "stack": [[function, file, line, what],
// ...]}, ...], root first, without spin_NAME itself. `what` is "new" for a constructor's call,
// "native" for a function of V8 itself, which has no file, "wasm" for WebAssembly, "eval" for code
// without a file that was made at run time, else "". FOLDER is for files that it makes. Without
// FILE it asks V8 for no traceback, which would make V8 compute lines that it does without as a
// rule. In the environment, SCENES_ONLY is a regular expression of scenes, and SCENES_WARM_MS says
// how long the quick visits last.
//
// A scene that can be entered again is burned twice: at first in bytecode (NAME), then after many
// quick visits (NAME_hot), in what the compilers have made of it by then. Spin functions of many
// kinds make those visits, so that the compilers inline everything but them.
"use strict";
Error.stackTraceLimit = Infinity;
const { Worker, isMainThread, parentPort, workerData } = require("worker_threads");
const fs = require("fs");
const vm = require("vm");

const [, , FOLDER, SECONDS, FILE] = isMainThread ? process.argv : workerData;
// Quick visits last so long, in milliseconds of the clock.
const WARM_MS = +(process.env.SCENES_WARM_MS || 25);
const ONLY = process.env.SCENES_ONLY ? new RegExp(process.env.SCENES_ONLY) : /./;
const scenes = [];
let sink = 0;

function record(scene) {
	if (!FILE)
		return;
	const prepare = Error.prepareStackTrace;
	let stack;
	Error.prepareStackTrace = (_, sites) => {
		stack = sites;
		return "";
	};
	new Error().stack;
	Error.prepareStackTrace = prepare;
	// The callers of an async function that waits are not on the stack.
	const waits = (s) => s.isAsync && s.isAsync();
	stack = stack.slice(2).filter((s) => !waits(s)).reverse();
	scenes.push({ scene, stack: stack.map(described) });
}

function described(site) {
	const file = site.getFileName() || site.getScriptNameOrSourceURL() || "";
	const wasm = /wasm/.test(String(site)) && (!file || /^wasm:/.test(file));
	const native = site.isNative() || !file && !wasm && !site.isEval();
	const what = wasm ? "wasm" : native ? "native" : site.isConstructor() ? "new" :
		     file ? "" : "eval";
	return [site.getFunctionName() || "", file, site.getLineNumber() || 0, what];
}

function cpu() {
	const used = process.cpuUsage();
	return (used.user + used.system) / 1e6;
}

// Makes a spin function with a name of its own for each scene, so that its frame identifies the
// scene. inside: what it does over and over, in place of counting.
function make_spin(scene, inside = "for (let i = 0; i < 20000; i++) x = (x * 31 + i) | 0;") {
	const source = `(function (record, cpu, SECONDS) {
return function spin_${scene}() {
	record("${scene}");
	const end = cpu() + SECONDS;
	let x = 1;
	while (cpu() < end) {
		${inside}
	}
	return x;
};
})`;
	return vm.runInThisContext(source, "/made/spin.js")(record, cpu, +SECONDS);
}

const quick = [1, 2, 3, 4, 5, 6].map((n) => vm.runInThisContext(`(function quick_${n}() {
	return ${n};
})`, "/made/quick.js"));

// Burns in a scene, and again once it was visited often. enter: enters the scene with a function
// that it calls there.
function scene(name, enter) {
	if (!ONLY.test(name))
		return;
	enter(make_spin(name));
	warm(enter);
	enter(make_spin(`${name}_hot`));
}

function warm(enter) {
	const end = Date.now() + WARM_MS;
	for (let i = 0; i < 50 || (Date.now() < end && i < 1e6); i++)
		sink += Number(enter(quick[i % quick.length])) || 0;
}

// The same for what returns promises.
async function async_scene(name, enter) {
	if (!ONLY.test(name))
		return;
	await enter(make_spin(name));
	const end = Date.now() + WARM_MS;
	for (let i = 0; i < 50 || Date.now() < end; i++)
		await enter(quick[i % quick.length]);
	await enter(make_spin(`${name}_hot`));
}

// A scene that is entered once.
function single(name, enter, inside) {
	if (ONLY.test(name))
		return enter(make_spin(name, inside));
}

const visit = { quick, scene, async_scene, single, folder: FOLDER };

function recurse(n, spin) {
	if (n === 0)
		return spin();
	return recurse(n - 1, spin) + 1;
}

function main() {
	require("./functions.js")(visit);
	require("./classes.js")(visit);
	require("./compiled.js")(visit);
	require("./leaves.js")(visit);
}

function finish() {
	const worker = new Worker(__filename, { workerData: process.argv });
	worker.on("message", (more) => scenes.push(...more));
	worker.on("exit", () => FILE && fs.writeFileSync(FILE, JSON.stringify(scenes)));
}

if (isMainThread) {
	main();
	require("./later.js")(visit).then(finish).catch((e) => {
		console.error(e);
		process.exit(1);
	});
} else {
	single("worker", (spin) => spin());
	single("worker_recursion", (spin) => recurse(20, spin));
	parentPort.postMessage(scenes);
}
