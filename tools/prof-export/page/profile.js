// SPDX-License-Identifier: Apache-2.0
// The page's script, whose parts page.py puts together: this one, with the profile's tree and the
// state of the view, then flame.js and table.js. Strangers choose names, so they go into the page
// only as text. The address has the state of the view after #:
//   view=flame|icicle|table  process=NAME|PID  thread=NAME|TID  search=REGEX  node=N | zoom=NAME
//   sort=self|total|name  theme=light|dark
(function () {
"use strict";

var $ = function (id) { return document.getElementById(id); };
var element = $("profile"), data = JSON.parse(element.textContent);
element.textContent = "";	// frees tens of megabytes in a large profile
var S = data.strings, F = data.frames, P = data.processes, T = data.threads, R = data.rows;
var H = data.header;
var NATIVE = 0, KERNEL = 1, TRUNCATED = 2, INLINED = 3, UNNAMED = 4, PROCESS = 5, INTERPRETED = 6;
var ROW = 18, THIN = 0.5, FONT_SIZE = 12;
var count = d3.format(",");
var percent = function (part, whole) {
	return (whole ? 100 * part / whole : 0).toFixed(2) + " %";
};

// --- the tree: node 0 is everything; a node's number is higher than its parent's ---

var N = data.nodes.up.length + 1;
var frameOf = new Int32Array(N), parent = new Int32Array(N), depth = new Int32Array(N);
var child = new Int32Array(N), sibling = new Int32Array(N);
(function () {
	var path = [0], last = new Int32Array(N), up = data.nodes.up, frame = data.nodes.frame;
	frameOf[0] = -1;
	parent[0] = -1;
	for (var i = 1; i < N; i++) {
		path.length -= up[i - 1];
		var p = path[path.length - 1];
		parent[i] = p;
		frameOf[i] = frame[i - 1];
		depth[i] = path.length;
		if (last[p])
			sibling[last[p]] = i;
		else
			child[p] = i;
		last[p] = i;
		path.push(i);
	}
	data.nodes = null;
})();

// The line that ran, if the profile has lines.
var ran = function (frame) { return F.at[frame] ? ":" + F.at[frame] : ""; };
var nameOf = function (node) {
	return node ? S[F.name[frameOf[node]]] + ran(frameOf[node]) : "all";
};
var kindOf = function (node) { return node ? F.kind[frameOf[node]] : PROCESS; };

// --- the state of the view ---

var state = {};
var defaults = {
	view: "flame", process: "", thread: "", search: "", node: "", zoom: "", sort: "self",
	theme: ""
};

function readAddress() {
	var s = Object.assign({}, defaults);
	location.hash.slice(1).split("&").forEach(function (part) {
		var at = part.indexOf("="), key = part.slice(0, at), value = part.slice(at + 1);
		if (at < 0 || !Object.prototype.hasOwnProperty.call(defaults, key))
			return;
		try {
			s[key] = decodeURIComponent(value.replace(/\+/g, "%20"));
		} catch (e) {
			s[key] = value;
		}
	});
	if (["flame", "icicle", "table"].indexOf(s.view) < 0)
		s.view = defaults.view;
	if (["self", "total", "name"].indexOf(s.sort) < 0)
		s.sort = defaults.sort;
	if (["light", "dark"].indexOf(s.theme) < 0)
		s.theme = "";
	return s;
}

function address(s) {
	return "#" + Object.keys(defaults).filter(function (k) {
		return s[k] !== defaults[k];
	}).map(function (k) {
		return k + "=" + encodeURIComponent(s[k]);
	}).join("&");
}

// step: the change becomes a step of the browser's history.
function choose(change, step) {
	var to = address(Object.assign({}, state, change));
	if (to === location.hash || (to === "#" && !location.hash))
		return;
	if (step) {
		location.hash = to;	// the hashchange event does the rest
		return;
	}
	try {
		history.replaceState(null, "", to);
	} catch (e) {
		location.replace(to);
	}
	apply();
}

// --- samples in the view ---

var self = new Float64Array(N), total = new Float64Array(N), whole = 0, maxDepth = 0;

function isProcess(p) {
	return !state.process || S[P.name[p]] === state.process ||
		String(P.pid[p]) === state.process;
}

function chosenThreads() {
	var keep = new Uint8Array(T.tid.length);
	for (var i = 0; i < keep.length; i++) {
		keep[i] = isProcess(T.process[i]) && (!state.thread ||
			S[T.name[i]] === state.thread || String(T.tid[i]) === state.thread);
	}
	return keep;
}

function countSamples() {
	var keep = chosenThreads(), all = !state.process && !state.thread;
	self.fill(0);
	for (var i = 0; i < R.node.length; i++)
		if (all || (R.thread[i] >= 0 && keep[R.thread[i]]))
			self[R.node[i] + 1] += R.samples[i];
	total.set(self);
	maxDepth = 0;
	for (i = N - 1; i > 0; i--) {
		if (!total[i])
			continue;
		total[parent[i]] += total[i];
		if (depth[i] > maxDepth)
			maxDepth = depth[i];
	}
	whole = total[0];
}

// --- search ---

var matchesString = null, matchesFrame = new Uint8Array(F.name.length);

function literal(text) {
	return text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}

function search() {
	var input = $("search"), test = null, sum = 0, best = 0, i;
	var foldCase = state.search === state.search.toLowerCase() ? "i" : "";
	input.removeAttribute("aria-invalid");
	if (state.search) {
		try {
			test = new RegExp(state.search, foldCase);
		} catch (e) {	// then search for the text itself
			test = new RegExp(literal(state.search), foldCase);
			input.setAttribute("aria-invalid", "true");
		}
	}
	matchesString = test && S.map(function (s) { return test.test(s); });
	for (i = 0; i < matchesFrame.length; i++)
		matchesFrame[i] = test && matchesString[F.name[i]] ? 1 : 0;
	if (test) {
		var under = new Uint8Array(N);
		for (i = 1; i < N; i++) {
			var hit = matchesFrame[frameOf[i]], above = under[parent[i]];
			under[i] = hit | above;
			if (hit && !above) {
				sum += total[i];
				if (!best || total[i] > total[best])
					best = i;
			}
		}
	}
	if (document.activeElement !== input || input.value.trim() !== state.search)
		input.value = state.search;
	$("matched").textContent = !test ? "" :
		percent(sum, whole) + " matched (" + count(sum) + " samples)";
	search.best = best;
}
