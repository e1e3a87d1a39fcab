// SPDX-License-Identifier: Apache-2.0
// Runs a program of Node.js in Deno, whose process lacks two things that scenes.js uses:
// `deno run deno.js PROGRAM ARGS...`. Its clock tells the cpu time.
const path = require("path");
const begun = performance.now();
const said = process.argv.slice(2);

process.cpuUsage = () => ({ user: (performance.now() - begun) * 1000, system: 0 });
Object.defineProperty(process, "argv", {
	value: [process.argv[0], path.resolve(said[0]), ...said.slice(1)],
});
require(process.argv[1]);
