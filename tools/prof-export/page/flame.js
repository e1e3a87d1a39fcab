// SPDX-License-Identifier: Apache-2.0
// The flame graph: it uses the tree and the state of profile.js.

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
