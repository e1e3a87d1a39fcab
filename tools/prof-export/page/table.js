// SPDX-License-Identifier: Apache-2.0
// The table, the selectors and the header; then everything begins.

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
	if (!cut && !lost && !H.unnamed.length && !H.missed.length && !H.remedy.length &&
		!H.notes.length)
		return;
	$("quality").hidden = false;
	d3.select("#quality summary").text("What is missing: " + H.loss);
	var rows = ["truncated", "unnamed", "lost", "missed", "remedy"].flatMap(function (k) {
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
