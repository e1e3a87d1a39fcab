// SPDX-License-Identifier: Apache-2.0
// Scenes of classes and of what new calls.
"use strict";
const vm = require("vm");

class Scene {
	constructor(spin, here) {
		this.spin = spin;
		if (here)
			this.value = spin();
	}

	method() {
		return this.spin();
	}

	static of_class(spin) {
		return spin();
	}

	get attribute() {
		return this.spin();
	}

	set attribute(to) {
		this.value = this.spin();
	}

	["computed" + "_name"]() {
		return this.spin();
	}

	* [Symbol.iterator]() {
		yield this.spin();
	}

	[Symbol.toPrimitive]() {
		return this.spin();
	}

	toJSON() {
		return this.spin();
	}

	static [Symbol.hasInstance](spin) {
		return spin();
	}
}

class Derived extends Scene {
	constructor(spin) {
		super(spin, true);
		this.derived = true;
	}

	method() {
		return super.method();
	}
}

class Implied extends Scene {
}

class Fields {
	value = Fields.spin();
	other = 1;
}

function Old(spin) {
	this.value = spin();
}

Old.prototype.method = function () {
	return this.spin();
};

const shapes = [
	class A { area(spin) { return spin(); } },
	class B { area(spin) { return spin(); } },
	class C {
		area(spin) {
			return spin();
		}
	},
].map((shape) => new shape());

function area(shape, spin) {
	return shape.area(spin);
}

// Syntax that Node.js 12 lacks.
const SYNTAX = {
	private_method: `(class Private {
	#hidden(spin) {
		return spin();
	}
	shown(spin) {
		return this.#hidden(spin);
	}
	static enter(spin) {
		return new Private().shown(spin);
	}
}).enter`,
	static_block: `(function make(spin) {
	return class {
		static value;
		static {
			this.value = spin();
		}
	}.value;
})`,
	optional_call: `(function optional(spin) {
	return spin?.() ?? 0;
})`,
};

function newer_syntax(scene) {
	for (const name of Object.keys(SYNTAX)) {
		let enter;
		try {
			enter = vm.runInThisContext(SYNTAX[name], `/made/${name}.js`);
		} catch (e) {
			continue;
		}
		scene(name, enter);
	}
}

module.exports = ({ quick, scene }) => {
	scene("method", (spin) => new Scene(spin).method());
	scene("static_method", (spin) => Scene.of_class(spin));
	scene("getter", (spin) => new Scene(spin).attribute);
	scene("setter", (spin) => (new Scene(spin).attribute = 1));
	scene("computed", (spin) => new Scene(spin).computed_name());
	scene("constructor", (spin) => new Scene(spin, true).value);
	scene("derived_constructor", (spin) => new Derived(spin).value);
	scene("implied_constructor", (spin) => new Implied(spin, true).value);
	scene("old_constructor", (spin) => new Old(spin).value);
	scene("super_method", (spin) => {
		const derived = Object.create(Derived.prototype);
		derived.spin = spin;
		return derived.method();
	});
	scene("fields", (spin) => {
		Fields.spin = spin;
		return new Fields().value;
	});
	scene("reflect_construct", (spin) => Reflect.construct(Old, [spin]).value);
	scene("polymorphic", (spin) => area(shapes[0], quick[0]) + area(shapes[1], quick[1]) +
	     area(shapes[2], spin));
	scene("instanceof", (spin) => Number(spin instanceof Scene));
	newer_syntax(scene);
};
Object.assign(module.exports, { Derived, Old, Scene });
