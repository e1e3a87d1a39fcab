// SPDX-License-Identifier: Apache-2.0
// Scenes of functions: how they are called, by JavaScript and by V8 itself.
"use strict";
const events = require("events");
const { Old, Scene } = require("./classes.js");

function plain(spin) {
	return spin();
}

function recurse(n, spin) {
	if (n === 0)
		return spin();
	return recurse(n - 1, spin) + 1;
}

function even(n, spin) {
	return n ? odd(n - 1, spin) : spin();
}

function odd(n, spin) {
	return even(n - 1, spin);
}

function closures(spin) {
	function inner() {
		function innermost() {
			return spin();
		}
		return innermost();
	}
	return inner();
}

const arrow = (spin) => ((s) => s())(spin);

const object = { nested: {} };
object.nested.handler = function (spin) {
	return spin();
};

function with_defaults(spin, value = spin()) {
	return value;
}

function too_few(a, b, c, d) {
	return d === undefined ? a() : 0;
}

function too_many(spin) {
	return arguments.length > 3 ? spin() : 0;
}

function rest(...args) {
	return args[0]();
}

function spread(spin) {
	return rest(...[spin, 1, 2]);
}

function by_call(spin) {
	return plain.call(null, spin);
}

function by_apply(spin) {
	return plain.apply(null, [spin]);
}

function by_reflect(spin) {
	return Reflect.apply(plain, null, [spin]);
}

const bound = plain.bind(null);

function tag(strings, spin) {
	return spin();
}

function tagged(spin) {
	return tag`a${spin}b`;
}

function several_lines(spin) {
	const values = [
		1,
		spin(
		),
		2,
	];
	return values[1];
}

function sorted(spin) {
	return [2, 1].sort((a, b) => {
		spin();
		return a - b;
	})[0];
}

// Only the first call of a comparison burns.
function once(spin) {
	let done = false;
	return () => {
		if (!done) {
			done = true;
			spin();
		}
		return 0;
	};
}

function replaced(spin) {
	return "abc".replace(/b/, () => String(spin())).length;
}

function revived(spin) {
	return JSON.parse("[1]", (key, value) => key === "0" ? spin() : value)[0];
}

const trap = {
	get(target, name) {
		return target.spin();
	},
	apply(target, self, args) {
		return args[0]();
	},
	construct(target, args) {
		return { value: args[0]() };
	},
};

function proxied(spin) {
	return new Proxy({ spin }, trap).anything;
}

function proxied_call(spin) {
	return new Proxy(plain, trap)(spin);
}

function proxied_new(spin) {
	return new (new Proxy(Old, trap))(spin).value;
}

function converted(spin) {
	return +new Scene(spin);
}

function text(spin) {
	return `${{ toString() { return String(spin()); } }}`.length;
}

function destructured(spin) {
	const [first] = new Scene(spin);
	return first;
}

function* generator(spin) {
	yield 1;
	yield spin();
}

function* delegating(spin) {
	yield* generator(spin);
}

function* cleaning(spin) {
	try {
		yield 1;
	} finally {
		spin();
	}
}

function throws(n) {
	if (n === 0)
		throw new RangeError("thrown");
	return throws(n - 1);
}

function handler(spin) {
	try {
		throws(2);
	} catch (e) {
		return spin();
	}
}

function at_last(spin) {
	try {
		return 1;
	} finally {
		spin();
	}
}

module.exports = ({ quick, scene }) => {
	scene("plain", plain);
	scene("recursion", (spin) => recurse(20, spin));
	scene("mutual_recursion", (spin) => even(20, spin));
	scene("closure", closures);
	scene("arrow", arrow);
	scene("anonymous", (spin) => (function () {
		return spin();
	})());
	scene("inferred_name", (spin) => object.nested.handler(spin));
	scene("default_argument", (spin) => with_defaults(spin));
	scene("too_few_arguments", (spin) => too_few(spin));
	scene("too_many_arguments", (spin) => too_many(spin, 1, 2, 3));
	scene("spread", spread);
	scene("call", by_call);
	scene("apply", by_apply);
	scene("reflect", by_reflect);
	scene("bound", (spin) => bound(spin));
	scene("tagged", tagged);
	scene("several_lines", several_lines);
	scene("sort", (spin) => sorted(spin));
	scene("sort_many", (spin) => [5, 4, 3, 2, 1].sort(once(spin))[0]);
	scene("typed_sort", (spin) => new Int32Array([2, 1]).sort(once(spin))[0]);
	scene("map", (spin) => [1].map(() => spin())[0]);
	scene("for_each", (spin) => [1].forEach(spin));
	scene("reduce", (spin) => [1, 2].reduce(() => spin()));
	scene("array_from", (spin) => Array.from([1], () => spin())[0]);
	scene("map_each", (spin) => new Map([[1, 1]]).forEach(() => spin()));
	scene("replace", replaced);
	scene("json_revive", revived);
	scene("to_json", (spin) => JSON.stringify(new Scene(spin)).length);
	scene("proxy", proxied);
	scene("proxy_call", proxied_call);
	scene("proxy_new", proxied_new);
	scene("to_primitive", converted);
	scene("to_string", text);
	scene("iterator", destructured);
	scene("generator", (spin) => Array.from(generator(spin))[1]);
	scene("yield_each", (spin) => [...delegating(spin)][1]);
	scene("generator_return", (spin) => {
		const g = cleaning(spin);
		g.next();
		return g.return(1).value;
	});
	scene("catch", handler);
	scene("finally", at_last);
	scene("emitter", (spin) => {
		const emitter = new events.EventEmitter();
		emitter.on("event", () => spin());
		return emitter.emit("event");
	});
	scene("deep", (spin) => recurse(300, spin));
};
