#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs the tests of build/release and, of build/asan, the unit tests and replays. It ends with the
# slowest tests and one line, "N passed, N failed". It fails if a test failed, was skipped, or none
# ran.
#   tests/check.sh quick   unit tests, replays, and tests that need no live sampling
#   tests/check.sh all     all but those that are marked `all`
#   tests/check.sh rest    those that are marked `all`
#
# Tests that do not mind company run side by side: unit tests, replays and most of the whole-tool
# tests, several at a time, since they mostly wait. Then come the emulated kernels, two at a time,
# and last, one by one, the tests that are marked `alone`.
set -u
cd "$(dirname "$0")/.." || exit 1
what=${1:-all}
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
export PROFPIPE_BUILD=build/release
unset MAKEFLAGS MAKELEVEL
passed=0 failed=0

# NAME ARGUMENTS...: pytest in a lane of its own. What it says is shown when all of it is there.
lane() {
	local name=$1
	shift
	PROFPIPE_DURATIONS=$logs/durations PROFPIPE_FAILED=$logs/$name.failed \
		timeout 3600 /usr/bin/python3 -m pytest -q -rA --tb=short tests/e2e \
		"$@" >"$logs/$name.log" 2>&1
	cat "$logs/$name.log"
}

# NAME: adds up what a lane ran. A test that was skipped did not pass.
count() {
	local line ok bad
	line=$(tail -n 1 "$logs/$1.log")
	ok=$(grep -oE '[0-9]+ passed' <<<"$line" | grep -oE '[0-9]+')
	bad=$(grep -oE '[0-9]+ (failed|error|skipped|xfailed|xpassed)' <<<"$line" |
		awk '{ n += $1 } END { print n + 0 }')
	passed=$((passed + ${ok:-0})) failed=$((failed + bad))
	if [ "${ok:-0}" -eq 0 ]; then
		failed=$((failed + 1))
		echo "$1: nothing ran"
	fi
}

# What failed beside others is tried once more by itself. What passes then is no failure of the
# program, but a defect of the test: it is listed.
second_try() {
	local again
	cat "$logs"/*.failed >"$logs/again" 2>/dev/null
	[ -s "$logs/again" ] || return 0
	mapfile -t again <"$logs/again"
	timeout 1800 /usr/bin/python3 -m pytest -q -rA --tb=short "${again[@]}" \
		>"$logs/second.log" 2>&1
	cat "$logs/second.log"
	failed=$((failed - ${#again[@]}))
	count second
	echo
	echo "Tried twice, which is a defect of each of these tests:"
	cat "$logs/again"
}

# TREE: adds up its unit tests and replays, each of which has to have left its figures.
count_units() {
	local tree=$1 program log ok bad seconds
	while read -r program; do
		log=$tree/passed/${program#"$tree"/}.log
		ok=0 bad=1 seconds=0
		[ ! -f "$log" ] || read -r _ ok _ bad _ seconds < <(tail -n 1 "$log")
		passed=$((passed + ok)) failed=$((failed + bad))
		echo "$seconds $program" >>"$logs/durations"
	done < <(find "$tree/unit" "$tree/fuzz" -type f -perm -u+x)
}

touch "$logs/durations"
workers=$(($(nproc) * 2))
case $what in
quick)
	make -k units &
	make -k SAN=asan units &
	lane pure -n "$workers" --dist loadfile -m 'pure and not all'
	wait
	count pure ;;
all)
	make SAN=asan sanitized || failed=$((failed + 1))
	(renice -n 5 $BASHPID >/dev/null; make -k units; make -k SAN=asan units) &
	lane together -n "$workers" --dist loadfile -m 'not vm and not alone and not all'
	wait
	lane vm -m 'vm and not all'
	lane alone -m 'alone and not all'
	count vm
	count together
	count alone
	second_try ;;
rest)
	lane rest -m all
	count rest ;;
esac
if [ "$what" != rest ]; then
	count_units build/release
	count_units build/asan
fi

echo
echo "The slowest 30 tests, in seconds:"
sort -rn "$logs/durations" | head -n 30
echo
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
