// SPDX-License-Identifier: Apache-2.0
// Scenes of promises and timers, which the event loop enters.
"use strict";
const fs = require("fs");
const path = require("path");

const later = (value) => new Promise((done) => setImmediate(done, value));

async function before_wait(spin) {
	const got = spin();
	await null;
	return got;
}

async function after_wait(spin) {
	await null;
	return spin();
}

async function outer_waits(spin) {
	return await after_wait(spin);
}

async function after_timer(spin) {
	await later(1);
	return spin();
}

async function* async_generator(spin) {
	yield 1;
	yield spin();
}

async function awaits_each(spin) {
	let last;
	for await (last of async_generator(spin));
	return last;
}

async function waits_in_catch(spin) {
	try {
		await Promise.reject(new Error("rejected"));
	} catch (e) {
		return spin();
	}
}

const promised = (spin) => new Promise((done) => done(spin()));
const chained = (spin) => Promise.resolve(1).then(function then(x) {
	return spin();
});
const thenable = async (spin) => await { then(done) {
	done(spin());
} };
const microtask = (spin) => new Promise((done) => queueMicrotask(() => done(spin())));
const next_tick = (spin) => new Promise((done) => process.nextTick(() => done(spin())));
const immediate = (spin) => new Promise((done) => setImmediate(() => done(spin())));
const timer = (spin) => new Promise((done) => setTimeout(() => done(spin()), 0));
const file_read = (spin) => new Promise((done) => fs.stat(__filename, () => done(spin())));

module.exports = async ({ async_scene, single, folder }) => {
	await async_scene("async_before", before_wait);
	await async_scene("async_after", after_wait);
	await async_scene("async_outer", outer_waits);
	await async_scene("async_timer", after_timer);
	await async_scene("async_generator", awaits_each);
	await async_scene("async_catch", waits_in_catch);
	await async_scene("promise_executor", promised);
	await async_scene("promise_then", chained);
	await async_scene("promise_thenable", thenable);
	await async_scene("microtask", microtask);
	await async_scene("next_tick", next_tick);
	await async_scene("immediate", immediate);
	await async_scene("timer", timer);
	await async_scene("file_callback", file_read);
	const file = path.join(folder, "module.mjs");
	fs.writeFileSync(file, "function in_module(spin) {\n\treturn spin();\n}\n\n" +
			 "export const value = in_module(globalThis.module_spin);\n");
	try {
		await single("module", (spin) => {
			global.module_spin = spin;
			return new Function("file", "return import(file);")("file://" + file);
		});
	} catch (e) {
		// Node.js 12 to 20 may import nothing from such a function.
	}
};
