#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs whole-tool tests of build/release, unit tests and replays of build/asan, the unit tests that
# tell the two trees apart (of system calls, of resources) in both, and `make lint`. It ends with
# the slowest tests, the reports of those that failed, and one line, "N passed, N failed". It fails
# if a test failed, was skipped, or none ran. All output is in build/check. Up to three whole-tool
# tests that failed run once more, and the line counts those apart that then pass.
#   tests/check.sh test       unit tests, replays, and tests that need no live sampling
#   tests/check.sh check      all but those that are marked `check_all`
#   tests/check.sh check-all  those that are marked so, and unit tests and replays of build/release
#
# Most whole-tool tests come first, several at a time, beside those that only wait (`waits`).
# Meanwhile the sanitizers' tree is built; its unit tests, replays and `asan` tests follow. Then
# come the tests marked `alone`, one by one. Emulated kernels come last: beside other work they miss
# the tools' deadlines. When a lane ends, a line says how many seconds after the start.
set -u
cd "$(dirname "$0")/.." || exit 1
what=${1:-check}
logs=build/check
mkdir -p $logs
rm -f $logs/*
durations=$PWD/$logs/durations failures=$PWD/$logs/failures
touch $durations $failures $logs/begun
export PROFPIPE_BUILD=build/release
# Each lane starts new Python processes, which then find the tests compiled.
unset MAKEFLAGS MAKELEVEL PYTHONDONTWRITEBYTECODE
passed=0 failed=0 repeated=0
trees=() lanes=()

# NAME ARGUMENTS...: runs pytest, with its output in a file. A lane that hangs is killed, and fails.
# Collecting all files takes three seconds, so lanes of few tests name their files.
lane() {
	local name=$1
	shift
	PROFPIPE_DURATIONS=$durations PROFPIPE_FAILURES=$failures timeout -k 60 $lane_s \
		/usr/bin/python3 -m pytest -q -rA --tb=short "$@" >"$logs/$name.log" 2>&1
	echo "$name, $SECONDS s: $(tail -n 1 "$logs/$name.log")"
}

# NAME: adds up what a lane ran. A test that was skipped did not pass.
count() {
	local line ok bad
	line=$(tail -n 1 "$logs/$1.log")
	ok=$(grep -oE '[0-9]+ passed' <<<"$line" | grep -oE '[0-9]+')
	bad=$(grep -oE '[0-9]+ (failed|error|skipped|xfailed|xpassed)' <<<"$line" |
		awk '{ n += $1 } END { print n + 0 }')
	passed=$((passed + ${ok:-0})) failed=$((failed + bad))
	[ "${ok:-0}" -gt 0 ] || failed=$((failed + 1))
}

# Runs whole-tool tests that failed once more, when nothing else runs. If all pass, they failed for
# want of time or memory, and count as passed. Many failures have another cause.
repeat() {
	local tests=()
	mapfile -t tests < <(sort -u $failures)
	[ ${#tests[@]} -gt 0 ] && [ ${#tests[@]} -le 3 ] || return
	local lines
	lines=$(wc -l <$failures)
	lane repeated "${tests[@]}"
	if tail -n 1 $logs/repeated.log | grep -qE "^${#tests[@]} passed in "; then
		repeated=${#tests[@]}
		passed=$((passed + repeated)) failed=$((failed - lines))
	fi
}

# TREE TARGET [ARGUMENT...]: builds and runs unit tests and replays of a tree.
units() {
	make -k "${@:2}" >"$logs/units-$1.log" 2>&1
	echo "units of build/$1, $SECONDS s: $(grep -c ' of \| inputs$' "$logs/units-$1.log") \
programs"
}

# `make lint`, which counts as one test.
lint() {
	if make --no-print-directory lint >"$logs/lint.log" 2>&1; then
		echo "1 0" >"$logs/lint"
	else
		echo "0 1" >"$logs/lint"
	fi
	echo "lint, $SECONDS s: $(tail -n 1 "$logs/lint.log")"
}

# TREE SOURCE...: adds up its unit tests and replays. One that left no figures counts as failed.
count_units() {
	local tree=build/$1 program log ok bad seconds
	while read -r program; do
		log=$tree/passed/${program#"$tree"/}.log
		ok=0 bad=1 seconds=0
		[ ! -f "$log" ] || read -r _ ok _ bad _ seconds < <(tail -n 1 "$log")
		passed=$((passed + ok)) failed=$((failed + bad))
		[ ! "$log" -nt $logs/begun ] || echo "$seconds - $program" >>$durations
		if [ "$bad" -gt 0 ]; then
			echo "$program failed:"
			tail -n 20 "$log" 2>&1 | cut -c1-200
		fi
	done < <(for source in "${@:2}"; do
		program=${source#tests/}
		echo "$tree/${program%.c}"
	done)
}

# NAME: prints the reports of a lane's tests that did not pass, and then a line for each.
report() {
	awk '/^=+ (PASSES|short test summary info) =+$/ { shown = 0 } shown
	     /^=+ (FAILURES|ERRORS) =+$/ { shown = 1 }' "$logs/$1.log" | cut -c1-300 | tail -n 300
	if ! grep -qE '^[0-9]+ passed' "$logs/$1.log"; then
		grep -E '^(FAILED|ERROR|SKIPPED|XFAIL|XPASS) ' "$logs/$1.log" | cut -c1-200
		tail -n 3 "$logs/$1.log" | cut -c1-200
	fi
}

# Builds the sanitizers' tree and runs its tests, and the unit tests that run in both trees. Most of
# the latter only wait.
sanitized() {
	nice make -k SAN=asan sanitized >"$logs/build-asan.log" 2>&1
	echo "build/asan is built, $SECONDS s"
	units release bare-units -j"$workers" &
	units asan units SAN=asan -j"$workers"
	wait
	lane asan -n "$(nproc)" -m 'asan and not vm and not alone and not waits and not check_all' \
		$(grep -l asan tests/e2e/test_*.py)
}

# Most tests spend most of their time waiting.
workers=$(($(nproc) * 3))
# The longest lane of `make check` takes some minutes, and that of `make check-all` half an hour.
lane_s=1500
[ "$what" != check-all ] || lane_s=5400
case $what in
test)
	{ units asan units SAN=asan; units release bare-units; } &
	lane pure -n "$workers" --dist loadfile tests/e2e -m 'pure and not check_all'
	wait
	lanes=(pure) trees=(asan bare) ;;
check)
	sanitized &
	lint &
	lane waits -m 'waits and not check_all' tests/e2e &
	lane together -n "$workers" --dist loadfile tests/e2e \
		-m 'not vm and not alone and not waits and not asan and not check_all'
	wait
	lane alone -m 'alone and not check_all'
	lane vm -m 'vm and not check_all' tests/e2e/test_vm.py
	lanes=(together waits asan vm alone) trees=(asan bare) ;;
check-all)
	units release units
	lane rest -m check_all
	lanes=(rest) trees=(release) ;;
esac

for name in "${lanes[@]}"; do
	count "$name"
done
repeat
if [ -f $logs/lint ]; then
	read -r ok bad <$logs/lint
	passed=$((passed + ok)) failed=$((failed + bad))
fi
sources=(tests/unit/*/*.c tests/fuzz/*/*.c)
for tree in "${trees[@]}"; do
	case $tree in
	bare) count_units release $(grep -l __SANITIZE_ADDRESS__ tests/unit/*/*.c) ;;
	*) count_units "$tree" "${sources[@]}" ;;
	esac
done >$logs/failed-units
echo
echo "The slowest 30 of the tests that ran now, in seconds, and the cpu time of their programs:"
sort -rn $durations | head -n 30
echo
for name in "${lanes[@]}"; do
	report "$name"
done
cat $logs/failed-units
grep -qs '^0' $logs/lint && tail -n 30 $logs/lint.log
echo
[ $repeated -eq 0 ] || sort -u $failures | sed 's/^/failed at first, and passed alone: /'
echo "$passed passed, $failed failed$([ $repeated -eq 0 ] || echo ", $repeated only when repeated")"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
