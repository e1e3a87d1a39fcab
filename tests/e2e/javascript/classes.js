// SPDX-License-Identifier: Apache-2.0
// Rooms of classes and of what new calls.
"use strict";
const vm = require("vm");

class Room {
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

class Derived extends Room {
	constructor(spin) {
		super(spin, true);
		this.derived = true;
	}

	method() {
		return super.method();
	}
}

class Implied extends Room {
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

function newer_syntax(room) {
	for (const name of Object.keys(SYNTAX)) {
		let enter;
		try {
			enter = vm.runInThisContext(SYNTAX[name], `/made/${name}.js`);
		} catch (e) {
			continue;
		}
		room(name, enter);
	}
}

module.exports = ({ quick, room }) => {
	room("method", (spin) => new Room(spin).method());
	room("static_method", (spin) => Room.of_class(spin));
	room("getter", (spin) => new Room(spin).attribute);
	room("setter", (spin) => (new Room(spin).attribute = 1));
	room("computed", (spin) => new Room(spin).computed_name());
	room("constructor", (spin) => new Room(spin, true).value);
	room("derived_constructor", (spin) => new Derived(spin).value);
	room("implied_constructor", (spin) => new Implied(spin, true).value);
	room("old_constructor", (spin) => new Old(spin).value);
	room("super_method", (spin) => {
		const derived = Object.create(Derived.prototype);
		derived.spin = spin;
		return derived.method();
	});
	room("fields", (spin) => {
		Fields.spin = spin;
		return new Fields().value;
	});
	room("reflect_construct", (spin) => Reflect.construct(Old, [spin]).value);
	room("polymorphic", (spin) => area(shapes[0], quick[0]) + area(shapes[1], quick[1]) +
	     area(shapes[2], spin));
	room("instanceof", (spin) => Number(spin instanceof Room));
	newer_syntax(room);
};
Object.assign(module.exports, { Derived, Old, Room });
