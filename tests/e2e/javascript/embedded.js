// SPDX-License-Identifier: Apache-2.0 Scenes for programs that embed V8: a browser, a server of
// workers. They have no module in common, and a worker has no clock and may not make code. So the
// test puts a function spin_NAME for each scene before this text: it calls `record`, and burns cpu
// in a loop. `everything` runs all scenes and returns their stacks, as scenes.js writes them.
const stacks = [];

function record(scene) {
	if (stacks.some((s) => s.scene === scene))
		return;
	const prepare = Error.prepareStackTrace;
	let sites;
	Error.stackTraceLimit = 100;
	Error.prepareStackTrace = (_, all) => {
		sites = all;
		return "";
	};
	new Error().stack;
	Error.prepareStackTrace = prepare;
	stacks.push({
		scene,
		stack: sites.slice(2).reverse().map((s) => {
			const file = s.getFileName() || s.getScriptNameOrSourceURL() || "";
			const native = s.isNative() || !file;
			return [s.getFunctionName() || "", file, s.getLineNumber() || 0,
				native ? "native" : s.isConstructor() ? "new" : ""];
		}),
	});
}

function inner() {
	return spin_calls() + 1;
}

function calls() {
	return inner() + 1;
}

function recursion(n) {
	return n ? recursion(n - 1) + 1 : spin_recursion();
}

class Base {
	constructor() {
		this.value = spin_constructor();
	}

	get wanted() {
		return spin_getter();
	}

	static made() {
		return spin_static();
	}

	method() {
		return spin_method();
	}
}

class Derived extends Base {
	method() {
		return super.method() + 1;
	}
}

const arrow = (n) => n + spin_arrow();

function closure(n) {
	return function counted() {
		return n++ + spin_closure();
	};
}

function sorted() {
	return [2, 1].sort(function byNumber(a, b) {
		return a - b + spin_sort() * 0;
	});
}

function mapped() {
	return [1].map((x) => x + spin_map());
}

function replaced() {
	return "a".replace(/a/, function upper(s) {
		return s + spin_replace();
	});
}

function serialized() {
	return JSON.stringify({
		toJSON() {
			return spin_json();
		},
	});
}

function* generator() {
	yield spin_generator();
}

function generated() {
	return [...generator()].length;
}

async function asynchronous() {
	return spin_async();
}

function trapped() {
	return new Proxy({}, {
		get(target, name) {
			return spin_proxy() + name.length;
		},
	}).field;
}

function applied() {
	return Reflect.apply(spinner.bind({ n: 1 }), undefined, [2]);
}

function spinner(n) {
	return this.n + n + spin_apply();
}

function defaulted(a = spin_default()) {
	return a;
}

function δέλτα() {
	return spin_greek();
}

function everything() {
	calls();
	recursion(7);
	const d = new Derived();
	d.method();
	d.wanted;
	Base.made();
	arrow(1);
	closure(1)();
	sorted();
	mapped();
	replaced();
	serialized();
	generated();
	asynchronous();
	trapped();
	applied();
	defaulted();
	δέλτα();
	return stacks;
}
