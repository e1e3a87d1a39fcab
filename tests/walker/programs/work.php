<?php
// SPDX-License-Identifier: Apache-2.0
function fib($n) { return $n < 2 ? $n : fib($n - 1) + fib($n - 2); }
function thrower($d) { if (!$d) throw new Exception("the end"); thrower($d - 1); }
$sum = 0;
while (true) {
	$h = [];
	foreach (range(1, 40) as $i) $h[$i * 7919 % 1009] = "x$i";
	uasort($h, fn($a, $b) => strcmp($a, $b));
	try { thrower(5); } catch (Exception $e) { $sum += strlen($e->getMessage()); }
	$f = new Fiber(function () { foreach (range(0, 3) as $i) Fiber::suspend(fib($i)); });
	for ($v = $f->start(); !$f->isTerminated(); $v = $f->resume()) $sum += $v;
	$digits = preg_replace_callback('/(\d)(\d)/', fn($m) => $m[2] . $m[1], implode(",", $h));
	$sum += strlen($digits) + fib(6);
}
