#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs whole-tool tests of build/release, unit tests and replays of build/asan, the unit tests that
# tell the two trees apart (of system calls, of resources) in both, and `make lint`. It ends with
# the slowest tests, the reports of those that failed, and one line, "N passed, N failed". It fails
# if a test failed, was skipped, or none ran. All output is in build/check.
#   tests/check.sh quick   unit tests, replays, and tests that need no live sampling
#   tests/check.sh all     all but those that are marked `all`
#   tests/check.sh rest    those that are marked `all`, and unit tests and replays of build/release
#
# First come most of the whole-tool tests, several at a time. Beside them are those that only wait
# (`waits`). The sanitizers' tree is built with the cpu time that they leave; then its unit tests
# and replays run, and the tests that run a program of that tree (`asan`). The tests that are marked
# `alone` follow, one by one, and then the emulated kernels. These are so slow that beside other
# work they miss the tools' own deadlines. Each line says when it was done.
set -u
cd "$(dirname "$0")/.." || exit 1
what=${1:-all}
said=build/check
mkdir -p $said
rm -f $said/*
durations=$PWD/$said/durations
touch $durations
export PROFPIPE_BUILD=build/release
# Each lane starts new Python processes, which then find the tests compiled.
unset MAKEFLAGS MAKELEVEL PYTHONDONTWRITEBYTECODE
passed=0 failed=0
trees=() lanes=()

# NAME ARGUMENTS...: runs pytest, with its output in a file. Collecting all files takes three
# seconds, so lanes of few tests name their files.
lane() {
	local name=$1
	shift
	PROFPIPE_DURATIONS=$durations timeout 3600 /usr/bin/python3 -m pytest -q -rA --tb=short \
		"$@" >"$said/$name.log" 2>&1
	echo "$name, $SECONDS s: $(tail -n 1 "$said/$name.log")"
}

# NAME: adds up what a lane ran. A test that was skipped did not pass.
count() {
	local line ok bad
	line=$(tail -n 1 "$said/$1.log")
	ok=$(grep -oE '[0-9]+ passed' <<<"$line" | grep -oE '[0-9]+')
	bad=$(grep -oE '[0-9]+ (failed|error|skipped|xfailed|xpassed)' <<<"$line" |
		awk '{ n += $1 } END { print n + 0 }')
	passed=$((passed + ${ok:-0})) failed=$((failed + bad))
	[ "${ok:-0}" -gt 0 ] || failed=$((failed + 1))
}

# TREE TARGET [ARGUMENT...]: builds and runs unit tests and replays of a tree.
units() {
	make -k "${@:2}" >"$said/units-$1.log" 2>&1
	echo "units of build/$1, $SECONDS s: $(grep -c ' of \| inputs$' "$said/units-$1.log") \
programs"
}

# `make lint`, which counts as one test. It asks git for the list of files, also if they belong to
# another user. Without a repository, it cannot run.
lint() {
	export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*'
	if ! git ls-files --error-unmatch Makefile >/dev/null 2>&1; then
		echo "lint: not run: this is no git repository"
		return
	fi
	if make --no-print-directory lint >"$said/lint.log" 2>&1; then
		echo "1 0" >"$said/lint"
	else
		echo "0 1" >"$said/lint"
	fi
	echo "lint, $SECONDS s: $(tail -n 1 "$said/lint.log")"
}

# TREE SOURCE...: adds up its unit tests and replays. One that left no figures counts as failed.
count_units() {
	local tree=build/$1 program log ok bad seconds
	while read -r program; do
		log=$tree/passed/${program#"$tree"/}.log
		ok=0 bad=1 seconds=0
		[ ! -f "$log" ] || read -r _ ok _ bad _ seconds < <(tail -n 1 "$log")
		passed=$((passed + ok)) failed=$((failed + bad))
		echo "$seconds - $program" >>$durations
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
	     /^=+ (FAILURES|ERRORS) =+$/ { shown = 1 }' "$said/$1.log" | cut -c1-300 | tail -n 300
	if ! grep -qE '^[0-9]+ passed' "$said/$1.log"; then
		grep -E '^(FAILED|ERROR|SKIPPED|XFAIL|XPASS) ' "$said/$1.log" | cut -c1-200
		tail -n 3 "$said/$1.log" | cut -c1-200
	fi
}

# Builds the sanitizers' tree and runs its tests, and the unit tests that run in both trees. Most of
# the latter only wait.
sanitized() {
	nice make -k SAN=asan sanitized >"$said/build-asan.log" 2>&1
	echo "build/asan is built, $SECONDS s"
	units release bare-units -j"$workers" &
	units asan units SAN=asan -j"$workers"
	wait
	lane asan -n "$(nproc)" -m 'asan and not vm and not alone and not waits and not all' \
		$(grep -l asan tests/e2e/test_*.py)
}

# Most tests spend most of their time waiting.
workers=$(($(nproc) * 3))
case $what in
quick)
	{ units asan units SAN=asan; units release bare-units; } &
	lane pure -n "$workers" --dist loadfile tests/e2e -m 'pure and not all'
	wait
	lanes=(pure) trees=(asan bare) ;;
all)
	sanitized &
	lint &
	lane waits -m 'waits and not all' tests/e2e &
	lane together -n "$workers" --dist loadfile tests/e2e \
		-m 'not vm and not alone and not waits and not asan and not all'
	wait
	lane alone -m 'alone and not all'
	lane vm -m 'vm and not all' tests/e2e/test_vm.py
	lanes=(together waits asan vm alone) trees=(asan bare) ;;
rest)
	units release units
	lane rest -m all
	lanes=(rest) trees=(release) ;;
esac

for name in "${lanes[@]}"; do
	count "$name"
done
if [ -f $said/lint ]; then
	read -r ok bad <$said/lint
	passed=$((passed + ok)) failed=$((failed + bad))
fi
sources=(tests/unit/*/*.c tests/fuzz/*/*.c)
for tree in "${trees[@]}"; do
	case $tree in
	bare) count_units release $(grep -l __SANITIZE_ADDRESS__ tests/unit/*/*.c) ;;
	*) count_units "$tree" "${sources[@]}" ;;
	esac
done >$said/failed-units
echo
echo "The slowest 30 tests, in seconds, and the cpu time of their programs:"
sort -rn $durations | head -n 30
echo
for name in "${lanes[@]}"; do
	report "$name"
done
cat $said/failed-units
grep -qs '^0' $said/lint && tail -n 30 $said/lint.log
echo
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
