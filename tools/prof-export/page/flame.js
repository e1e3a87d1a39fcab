// SPDX-License-Identifier: Apache-2.0
// The page's script. Strangers choose names, so they go into the page only as text. The address has
// the state of the view after #:
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

// --- layout: visible nodes by depth, from left to right; x is from 0 to 1 ---

var levels = [], zoomed = 0, cursor = -1, cursorDepth = 0;

function byTotal(a, b) {
	return total[b] - total[a] || a - b;
}

function layOut(width) {
	var thin = THIN / Math.max(width, 1), stack, node, i;
	levels = [];
	if (!whole || !total[zoomed])
		return;
	for (node = zoomed; node > 0; node = parent[node])
		levels[depth[node]] = { nodes: [node], from: [0], to: [1] };
	levels[0] = { nodes: [0], from: [0], to: [1] };
	stack = [[zoomed, 0]];
	while (stack.length) {
		var top = stack.pop(), x = top[1], children = [];
		node = top[0];
		for (i = child[node]; i; i = sibling[i])
			if (total[i] / total[zoomed] >= thin)
				children.push(i);
		if (!children.length)
			continue;
		children.sort(byTotal);
		var d = depth[node] + 1;
		var level = levels[d] || (levels[d] = { nodes: [], from: [], to: [] });
		var later = [];
		for (i = 0; i < children.length; i++) {
			var to = x + total[children[i]] / total[zoomed];
			level.nodes.push(children[i]);
			level.from.push(x);
			level.to.push(to);
			later.push([children[i], x]);
			x = to;
		}
		// The leftmost child comes next, so that each level fills from the left.
		for (i = later.length - 1; i >= 0; i--)
			stack.push(later[i]);
	}
}

// --- colours ---

var palettes = {
	light: {
		hue: [[58, 92], [236, 250], [5, 5], [112, 132], [0, 0], [270, 270], [178, 204]],
		chroma: [46, 26, 52, 38, 0, 4, 32], light: [80, 79, 70, 81, 84, 88, 79],
		ink: "#1c1e21", faded: "#e7e8ea", fadedInk: "#787d85", match: "#7b3ff2",
		matchInk: "#ffffff", gap: "#ffffff"
	},
	dark: {
		hue: [[52, 80], [240, 256], [12, 12], [118, 140], [0, 0], [270, 270], [182, 208]],
		chroma: [36, 26, 46, 28, 0, 6, 26], light: [45, 43, 44, 43, 36, 32, 44],
		ink: "#f2f3f5", faded: "#2a2d32", fadedInk: "#868c95", match: "#a684ff",
		matchInk: "#14101f", gap: "#1d2024"
	}
};
var palette = palettes.light, colours = [];

var darkSystem = matchMedia("(prefers-color-scheme: dark)");

function isDark() {
	return state.theme ? state.theme === "dark" : darkSystem.matches;
}

function hash(s) {
	var h = 2166136261;
	for (var i = 0; i < s.length; i++)
		h = Math.imul(h ^ s.charCodeAt(i), 16777619);
	return ((h ^ h >>> 15) >>> 0) % 1024 / 1023;
}

function colour(kind, at) {
	var hue = palette.hue[kind], light = palette.light[kind] + 5 * (at - 0.5);
	return d3.hcl(hue[0] + (hue[1] - hue[0]) * at, palette.chroma[kind], light).toString();
}

// The binary sets most of the colour and the name a little: with one shade for each binary, borders
// of functions vanish; with one for each function, all is noise.
function frameColour(frame) {
	if (!colours[frame]) {
		var binary = hash(S[F.binary[frame]]), name = hash(S[F.name[frame]]);
		colours[frame] = colour(F.kind[frame], 0.7 * binary + 0.3 * name);
	}
	return colours[frame];
}

// --- drawing ---

var graph = $("graph"), extent = $("extent"), canvas = $("canvas");
var context = canvas.getContext("2d");
var x = d3.scale.linear(), charWidth = 7, ratio = 1, graphHeight = 0, flameUp = true;
var mono = getComputedStyle(document.documentElement).getPropertyValue("--mono");
var font = FONT_SIZE + "px " + mono;

function rowTop(d) {
	return flameUp ? graphHeight - (d + 1) * ROW : d * ROW;
}

function levelAt(y) {
	return Math.floor(flameUp ? (graphHeight - y) / ROW : y / ROW);
}

function resize() {
	var width = graph.clientWidth, height = graph.clientHeight;
	ratio = window.devicePixelRatio || 1;
	canvas.width = Math.round(width * ratio);
	canvas.height = Math.round(height * ratio);
	canvas.style.width = width + "px";
	canvas.style.height = height + "px";
	context.font = font;
	charWidth = context.measureText("mmmmmmmmmm").width / 10 || 7;
	x.range([0, width]);
	layOut(width);
	graphHeight = Math.max(height, levels.length * ROW + 4);
	extent.style.height = graphHeight + "px";
}

function fits(name, width) {
	var n = Math.floor((width - 6) / charWidth);
	return n >= name.length ? name : n < 3 ? "" : name.slice(0, n - 1) + "…";
}

function drawNode(level, i, d, y) {
	var node = level.nodes[i], frame = frameOf[node], searching = !!matchesString;
	var from = x(level.from[i]), width = x(level.to[i]) - from;
	var matched = searching && node && matchesFrame[frame], faded = searching && !matched;
	context.globalAlpha = d < depth[zoomed] ? 0.55 : 1;
	context.fillStyle = matched ? palette.match : faded ? palette.faded :
		node ? frameColour(frame) : colour(PROCESS, 0.5);
	context.fillRect(from, y + 0.5, Math.max(width - (width > 3 ? 1 : 0), THIN), ROW - 1);
	if (!faded && !matched && kindOf(node) === TRUNCATED && width > 4)
		hatch(from, y + 0.5, width - 1, ROW - 1);
	if (d === cursorDepth && node === cursor) {
		context.strokeStyle = palette.ink;
		context.lineWidth = 2;
		context.strokeRect(from + 1, y + 1.5, Math.max(width - 3, 1), ROW - 3);
	}
	if (width < 24)
		return;
	var label = fits(node ? nameOf(node) : "all: " + count(whole) + " samples", width);
	if (label) {
		context.fillStyle = matched ? palette.matchInk :
			faded ? palette.fadedInk : palette.ink;
		context.fillText(label, from + 4, y + ROW / 2 + 0.5, width - 5);
	}
}

function draw() {
	var top = graph.scrollTop, height = graph.clientHeight;
	context.setTransform(ratio, 0, 0, ratio, 0, 0);
	context.clearRect(0, 0, canvas.width, canvas.height);
	context.font = font;
	context.textBaseline = "middle";
	var a = levelAt(top), b = levelAt(top + height);
	var first = Math.max(0, Math.min(a, b)), last = Math.min(levels.length - 1, Math.max(a, b));
	for (var d = first; d <= last; d++) {
		var level = levels[d], y = rowTop(d) - top;
		for (var i = 0; level && i < level.nodes.length; i++)
			drawNode(level, i, d, y);
	}
	context.globalAlpha = 1;
}

function hatch(left, top, width, height) {
	context.save();
	context.beginPath();
	context.rect(left, top, width, height);
	context.clip();
	context.strokeStyle = palette.ink;
	context.globalAlpha *= 0.22;
	context.lineWidth = 1.5;
	context.beginPath();
	for (var at = left - height; at < left + width; at += 7) {
		context.moveTo(at, top + height);
		context.lineTo(at + height, top);
	}
	context.stroke();
	context.restore();
}

var waiting = false;

function drawSoon() {
	if (waiting)
		return;
	waiting = true;
	requestAnimationFrame(function () {
		waiting = false;
		draw();
	});
}

function reveal(d, always) {
	var top = rowTop(d), height = graph.clientHeight;
	if (always)	// put the zoomed frame a quarter of the height from the roots
		graph.scrollTop = flameUp ? top - height * 0.75 : top - height * 0.25;
	else if (top < graph.scrollTop)
		graph.scrollTop = top - ROW;
	else if (top + ROW > graph.scrollTop + height)
		graph.scrollTop = top + 2 * ROW - height;
}

// --- details ---

function facts(node) {
	var frame = frameOf[node], list = [];
	var own = !self[node] ? "" :
		"; self " + count(self[node]) + ", " + percent(self[node], whole);
	list.push(count(total[node]) + " samples, " + percent(total[node], whole) + own);
	if (node && zoomed && total[node] <= total[zoomed])
		list.push(percent(total[node], total[zoomed]) + " of what is zoomed to");
	if (node && S[F.source[frame]])
		list.push(S[F.source[frame]] + (F.line[frame] ? ":" + F.line[frame] : ""));
	if (node && S[F.where[frame]])
		list.push(S[F.where[frame]]);	// the function has no name
	var how = F.kind[frame] === TRUNCATED ? "the walk ended in " :
		F.kind[frame] === INLINED ? "inlined in " : "";
	if (node && S[F.binary[frame]])
		list.push(how + S[F.binary[frame]]);
	return list;
}

function describe(node) {
	var box = d3.select("#details").text("");
	if (node < 0)
		return;
	box.append("span").text(nameOf(node) + "  ");
	box.append("span").attr("class", "soft").text(facts(node).join("  ·  "));
}

function nodeAt(event) {
	var box = canvas.getBoundingClientRect();
	var level = levels[levelAt(event.clientY - box.top + graph.scrollTop)];
	if (!level)
		return -1;
	var at = x.invert(event.clientX - box.left), i = d3.bisectRight(level.from, at) - 1;
	return i >= 0 && at < level.to[i] ? level.nodes[i] : -1;
}

function showTip(node, event) {
	var tip = $("tip"), box = d3.select(tip).text("");
	tip.hidden = node < 0;
	if (node < 0)
		return;
	box.append("b").text(nameOf(node));
	facts(node).forEach(function (line) {
		box.append("div").attr("class", "soft").text(line);
	});
	var left = event.clientX + 14, top = event.clientY + 16;
	if (left + tip.offsetWidth > innerWidth - 8)
		left = Math.max(8, innerWidth - 8 - tip.offsetWidth);
	if (top + tip.offsetHeight > innerHeight - 8)
		top = Math.max(8, event.clientY - 10 - tip.offsetHeight);
	tip.style.left = left + "px";
	tip.style.top = top + "px";
}

function showTrail() {
	var path = [], node;
	for (node = zoomed; node > 0; node = parent[node])
		path.push(node);
	path.push(0);
	path.reverse();
	if (path.length > 7)
		path.splice(3, path.length - 6, -1);
	var box = d3.select("#trail").text("");
	path.forEach(function (at, i) {
		if (i)
			box.append("span").text("›");
		if (at < 0) {
			box.append("span").text(" … ");
			return;
		}
		box.append("button").attr("type", "button").attr("title", nameOf(at))
			.attr("aria-current", at === zoomed ? "true" : null).text(nameOf(at))
			.on("click", function () { zoom(at); });
	});
	$("reset").disabled = !zoomed;
}

function zoom(node) {
	choose({ node: node > 0 ? String(node) : "", zoom: "" }, true);
}

// --- the table ---

var SHOWN = 500;

function functions() {
	var own = new Float64Array(S.length), all = new Float64Array(S.length);
	var active = new Int32Array(S.length), frame = new Int32Array(S.length).fill(-1);
	var path = [], i;
	for (i = 1; i < N; i++) {
		if (!total[i])
			continue;
		var f = frameOf[i], name = F.name[f];
		while (path.length >= depth[i])
			active[path.pop()]--;
		path.length = depth[i] - 1;
		if (F.kind[f] === PROCESS) {
			path.push(0);
			active[0]++;
			continue;
		}
		if (!active[name]++)
			all[name] += total[i];
		path.push(name);
		own[name] += self[i];
		if (frame[name] < 0)
			frame[name] = f;
	}
	var list = [];
	for (i = 0; i < S.length; i++)
		if (frame[i] >= 0 && (!matchesString || matchesString[i]))
			list.push({ name: S[i], self: own[i], total: all[i], frame: frame[i] });
	list.sort(function (a, b) {
		var order = state.sort === "name" ? 0 : b[state.sort] - a[state.sort];
		return order || b.total - a.total || (a.name < b.name ? -1 : 1);
	});
	if (state.sort === "name")
		list.sort(function (a, b) {
			return a.name < b.name ? -1 : a.name > b.name ? 1 : 0;
		});
	return list;
}

function baseName(path) {
	return path.replace(/.*\/(?=.)/, "");
}

function showTable() {
	var list = functions(), shown = list.slice(0, SHOWN), cell;
	d3.selectAll("#table th").attr("aria-sort", null);
	d3.select("#table th button[data-sort=" + state.sort + "]").each(function () {
		var order = state.sort === "name" ? "ascending" : "descending";
		this.parentNode.setAttribute("aria-sort", order);
	});
	var rows = d3.select("#table tbody").selectAll("tr").data(shown);
	var enter = rows.enter().append("tr");
	["n self", "n total", "name", "binary", "source"].forEach(function (c) {
		enter.append("td").attr("class", c);
	});
	enter.select("td.name").append("button").attr("type", "button");
	rows.exit().remove();
	["self", "total"].forEach(function (key) {
		cell = rows.select("td." + key).text(function (d) { return count(d[key]) + " "; });
		cell.append("span").attr("class", "share").text(function (d) {
			return percent(d[key], whole).padStart(9);
		});
	});
	rows.select("td.name").attr("title", function (d) { return d.name; })
		.select("button").text(function (d) { return d.name; });
	rows.select("td.binary").attr("title", function (d) { return S[F.binary[d.frame]]; })
		.text(function (d) { return baseName(S[F.binary[d.frame]]); });
	rows.select("td.source").attr("title", function (d) { return S[F.source[d.frame]]; })
		.text(function (d) {
			var s = S[F.source[d.frame]], line = F.line[d.frame];
			return s && baseName(s) + (line ? ":" + line : "");
		});
	rows.on("click", function (d) {
		choose({ view: "flame", search: "^" + literal(d.name) + "$" }, true);
	});
	$("more").textContent = !list.length ? "No function matches." : list.length <= SHOWN ? "" :
		"and " + count(list.length - SHOWN) + " more; search narrows them down";
}

// --- selectors ---

function sums(of, n) {
	var sum = new Float64Array(n);
	for (var i = 0; i < R.node.length; i++)
		if (R.thread[i] >= 0)
			sum[of(R.thread[i])] += R.samples[i];
	return sum;
}

var byThread = sums(function (t) { return t; }, T.tid.length);
var byProcess = sums(function (t) { return T.process[t]; }, P.pid.length);
var OPTIONS = 500;

// Lists names first, each for all processes or threads with it, then single ones; busy ones first.
function fillSelect(select, all, chosen, things) {
	var names = d3.map(), list = d3.select(select).text("");
	list.append("option").attr("value", "").text(all);
	things.forEach(function (t) {
		var n = names.get(t.name) || { name: t.name, samples: 0, count: 0 };
		n.samples += t.samples;
		n.count++;
		names.set(t.name, n);
	});
	function group(label, options) {
		if (!options.length)
			return;
		options.sort(function (a, b) { return b.samples - a.samples; });
		var most = options.length > OPTIONS ? " (the busiest " + OPTIONS + ")" : "";
		var g = list.append("optgroup").attr("label", label + most);
		options.slice(0, OPTIONS).forEach(function (o) {
			var share = percent(o.samples, H.samples);
			g.append("option").attr("value", o.value).text(o.text + "  " + share);
		});
	}
	group("By name", names.values().map(function (n) {
		var text = n.name + (n.count > 1 ? " (" + n.count + ")" : "");
		return { value: n.name, text: text, samples: n.samples };
	}));
	group("By number", things.map(function (t) {
		var text = t.number + " " + t.name;
		return { value: String(t.number), text: text, samples: t.samples };
	}));
	select.value = chosen;
	if (chosen && select.value !== chosen) {
		list.append("option").attr("value", chosen).text(chosen);
		select.value = chosen;
	}
}

function fillSelects() {
	fillSelect($("process"), "all", state.process, P.pid.map(function (pid, i) {
		return { number: pid, name: S[P.name[i]], samples: byProcess[i] };
	}));
	var threads = [];
	T.tid.forEach(function (tid, i) {
		if (isProcess(T.process[i]))
			threads.push({ number: tid, name: S[T.name[i]], samples: byThread[i] });
	});
	fillSelect($("thread"), "all", state.thread, threads);
}

// --- the header ---

function duration(ms) {
	if (ms < 120000)
		return (ms / 1000).toFixed(ms < 10000 ? 2 : 1) + " s";
	return Math.floor(ms / 60000) + " min " + Math.round(ms % 60000 / 1000) + " s";
}

function showHead() {
	var cut = d3.sum(H.truncated, function (t) { return t[2]; });
	var lost = d3.sum(H.lost, function (l) { return l[2]; });
	var box = d3.select("#facts");
	function fact(term, value, warn) {
		if (!value)
			return;
		var d = box.append("div");
		d.append("dt").text(term);
		d.append("dd").attr("id", "fact-" + term).classed("warn", !!warn).text(value);
	}
	fact("host", H.host);
	fact("kernel", (H.kernel + " " + H.arch).trim());
	fact("from", H.startMs ? d3.time.format("%Y-%m-%d %H:%M:%S")(new Date(H.startMs)) : "");
	fact("for", duration(H.durationMs));
	fact("event", H.event + (H.hz ? " at " + H.hz + " Hz" : "") +
		(H.cpus ? " on " + H.cpus + (H.cpus === 1 ? " cpu" : " cpus") : ""));
	fact("samples", count(H.samples));
	fact("processes", count(H.processes));
	fact("threads", count(H.threads));
	fact("complete", count(H.completeStacks) + " (" + H.complete + ")",
		H.samples && cut / H.samples > 0.05);
	fact("lost", count(lost), lost);
	if (!H.ended)
		fact("stream", "cut short", true);
	document.title = (H.host ? H.host + ": " : "") + "profpipe";
	if (!cut && !lost && !H.missed.length && !H.remedy.length && !H.notes.length)
		return;
	$("quality").hidden = false;
	d3.select("#quality summary").text("What is missing: " + H.loss);
	var rows = ["truncated", "lost", "missed", "remedy"].flatMap(function (k) {
		return H[k].map(function (r) {
			return [k + ": " + r[0], count(r[2]), (r[3] ? r[3] + ": " : "") + r[1]];
		});
	}).concat(H.notes.map(function (n) { return ["run", "", n]; }));
	d3.select("#quality table").selectAll("tr").data(rows).enter().append("tr")
		.selectAll("td").data(function (r) { return r; }).enter().append("td").text(String);
}

function showLegend() {
	var box = d3.select("#legend").text("");
	var kinds = [
		[NATIVE, "native"], [INTERPRETED, "interpreted"], [INLINED, "inlined"],
		[KERNEL, "kernel"], [UNNAMED, "unnamed"], [TRUNCATED, "truncated"]
	];
	kinds.forEach(function (k) {
		var s = box.append("span");
		s.append("svg").attr("width", 12).attr("height", 12)
			.append("rect").attr("width", 12).attr("height", 12)
			.attr("fill", colour(k[0], 0.5));
		s.append("span").text(k[1]);
	});
}

// --- everything together ---

function widest(name) {
	var best = 0;
	for (var i = 1; i < N; i++)
		if (total[i] && (!best || total[i] > total[best]) && nameOf(i) === name)
			best = i;
	return best;
}

function apply() {
	var before = state;
	state = readAddress();
	var chosen = before.process !== state.process || before.thread !== state.thread;
	if (before.theme !== state.theme) {
		if (state.theme)
			document.documentElement.setAttribute("data-theme", state.theme);
		else
			document.documentElement.removeAttribute("data-theme");
	}
	palette = isDark() ? palettes.dark : palettes.light;
	if (apply.palette !== palette) {
		apply.palette = palette;
		colours = [];
		showLegend();
	}
	if (chosen) {
		countSamples();
		fillSelects();
	}
	if (chosen || before.search !== state.search)
		search();
	var node = state.zoom ? widest(state.zoom) :
		/^\d+$/.test(state.node) ? Number(state.node) : 0;
	if (node >= N || !total[node])
		node = 0;
	var moved = node !== zoomed || before.view !== state.view || chosen;
	zoomed = node;
	flameUp = state.view !== "icicle";
	d3.selectAll("nav [data-view]").attr("aria-pressed", function () {
		return String(this.getAttribute("data-view") === state.view);
	});
	var table = state.view === "table";
	$("table").hidden = !table;
	graph.hidden = table;
	$("legend").hidden = table;
	$("nothing").textContent = whole ? "" :
		H.samples ? "No samples of this process and thread." :
			"This profile has no samples.";
	if (moved) {
		cursor = -1;
		showTrail();
		describe(zoomed);
	}
	if (table) {
		showTable();
	} else {
		resize();
		if (moved)
			reveal(depth[zoomed], true);
		draw();
	}
	$("tip").hidden = true;
	// For scripts and tests that read the page.
	document.documentElement.setAttribute("data-samples", String(whole));
	document.documentElement.setAttribute("data-zoomed", nameOf(zoomed));
	var drawn = d3.sum(levels, function (l) { return l ? l.nodes.length : 0; });
	document.documentElement.setAttribute("data-drawn", String(drawn));
	document.documentElement.setAttribute("data-levels", String(levels.length));
}

function moveCursor(key) {
	var level, i, node = cursor < 0 ? zoomed : cursor;
	if (cursor >= 0) {
		level = levels[depth[node]];
		i = level ? level.nodes.indexOf(node) : -1;
		if (i < 0)
			node = zoomed;
		else if (key === "ArrowLeft")
			node = level.nodes[Math.max(0, i - 1)];
		else if (key === "ArrowRight")
			node = level.nodes[Math.min(level.nodes.length - 1, i + 1)];
		else if ((key === "ArrowUp") === flameUp) {
			var next = levels[depth[node] + 1];
			var k = !next ? -1 :
				next.nodes.findIndex(function (n) { return parent[n] === node; });
			node = k >= 0 ? next.nodes[k] : node;
		} else if (node) {
			node = parent[node];
		}
	}
	cursor = node;
	cursorDepth = depth[node];
	reveal(cursorDepth, false);
	describe(node);
	drawSoon();
}

graph.addEventListener("scroll", drawSoon);
canvas.addEventListener("mousemove", function (e) {
	var node = nodeAt(e);
	canvas.style.cursor = node >= 0 ? "pointer" : "default";
	showTip(node, e);
	describe(node >= 0 ? node : zoomed);
});
canvas.addEventListener("mouseleave", function () {
	$("tip").hidden = true;
	describe(zoomed);
});
canvas.addEventListener("click", function (e) {
	var node = nodeAt(e);
	if (node >= 0)
		zoom(node);
});
d3.selectAll("nav [data-view]").on("click", function () {
	choose({ view: this.getAttribute("data-view") }, true);
});
d3.selectAll("#table [data-sort]").on("click", function () {
	choose({ sort: this.getAttribute("data-sort") }, false);
});
$("process").addEventListener("change", function () {
	choose({ process: this.value, thread: "", node: "", zoom: "" }, true);
});
$("thread").addEventListener("change", function () {
	choose({ thread: this.value, node: "", zoom: "" }, true);
});
$("reset").addEventListener("click", function () { zoom(0); });
$("theme").addEventListener("click", function () {
	choose({ theme: isDark() ? "light" : "dark" }, false);
});
var typed = 0;
$("search").addEventListener("input", function () {
	var value = this.value.trim();
	clearTimeout(typed);
	typed = setTimeout(function () { choose({ search: value }, false); }, N > 1e6 ? 250 : 60);
});
document.addEventListener("keydown", function (e) {
	var input = $("search"), typing = document.activeElement === input;
	if (e.ctrlKey || e.altKey || e.metaKey)
		return;
	if (e.key === "/" && !typing) {
		input.focus();
		input.select();
	} else if (e.key === "Escape" && (typing || state.search)) {
		clearTimeout(typed);
		input.value = "";
		choose({ search: "" }, false);
		if (typing)
			graph.focus();
	} else if (e.key === "Escape") {
		if ($("quality").open)
			$("quality").open = false;
		else
			zoom(0);
	} else if (e.key === "Enter" && typing) {	// zoom to the widest match
		clearTimeout(typed);
		choose({ search: input.value.trim() }, false);
		if (search.best && state.view !== "table") {
			zoom(search.best);
			graph.focus();
		}
	} else if (e.key === "Enter" && document.activeElement === graph && cursor >= 0) {
		zoom(cursor);
	} else if (e.key === "Backspace" && document.activeElement === graph) {
		history.back();
	} else if (e.key.indexOf("Arrow") === 0 && document.activeElement === graph) {
		moveCursor(e.key);
	} else {
		return;
	}
	e.preventDefault();
});
window.addEventListener("hashchange", apply);
window.addEventListener("resize", function () {
	if (state.view !== "table") {
		resize();
		drawSoon();
	}
});
darkSystem.addEventListener("change", apply);

showHead();
apply();
document.documentElement.setAttribute("data-ready", "true");
})();
