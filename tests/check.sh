#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs every test that was built, in every tree, and closes with one line: N passed, N failed. Non-zero when one failed, or none ran.
#   tests/check.sh TREE... -- PYTEST-ARGUMENTS...
set -u
cd "$(dirname "$0")/.." || exit 1
trees=() passed=0 failed=0
while [ $# -gt 0 ] && [ "$1" != -- ]; do trees+=("$1"); shift; done
[ $# -gt 0 ] && shift
log=$(mktemp) cache=$(mktemp -d); trap 'rm -rf "$log" "$cache"' EXIT
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=1:abort_on_error=1} UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}

for tree in "${trees[@]}"; do
	for unit in "$tree"/unit/*; do
		[ -x "$unit" ] && [ -f "$unit" ] || continue
		timeout 300 "$unit" -j1 >"$log" 2>&1
		status=$?
		line=$(sed -n 's/.*Synthesis: Tested: *\([0-9]*\).*Passing: *\([0-9]*\).*Failing: *\([0-9]*\).*Crashing: *\([0-9]*\).*/\1 \2 \3 \4/p' "$log" | tail -n 1)
		read -r tested ok bad crashed <<<"${line:-0 0 1 0}"
		# A runner that died, or ran nothing, is a failure of its own.
		if [ "$status" -ne 0 ] && [ $((bad + crashed)) -eq 0 ] || [ "$tested" -eq 0 ]; then bad=$((bad + 1)); fi
		passed=$((passed + ok)) failed=$((failed + bad + crashed))
		echo "$unit: $ok of $tested"
		[ $((bad + crashed)) -eq 0 ] || cat "$log"
	done
	for target in "$tree"/fuzz/*; do
		[ -x "$target" ] && [ -f "$target" ] || continue
		if timeout 300 "$target" "tests/fuzz/corpus/$(basename "$target")" >"$log" 2>&1; then
			passed=$((passed + 1))
			echo "$target: $(tail -n 1 "$log")"
		else
			failed=$((failed + 1))
			echo "$target: FAILED"; cat "$log"
		fi
	done
done

# Tests of live sampling share the machine with whatever else runs on it. A few that fail are run once more: what passes then is
# counted and told as such, what fails twice has failed.
run() { PROFPIPE_BUILD=${trees[0]} timeout 3600 /usr/bin/python3 -m pytest -q -o cache_dir="$cache" -rA --tb=short --durations=20 "$@" 2>&1 | tee "$log"; }
count() { tail -n 1 "$log" | grep -oE "[0-9]+ ($1)" | awk '{ n += $1 } END { print n + 0 }'; }
run "$@"
ok=$(count passed) bad=$(count 'failed|errors?') skipped=$(count skipped)
if [ "$ok" -gt 0 ] && [ "$bad" -gt 0 ] && [ "$bad" -le 5 ]; then
	echo "Run once more, for they failed:"; sed -nE 's/^(FAILED|ERROR) ([^ ]+).*/  \2/p' "$log"
	run --last-failed "$@"
	echo "Of these, passed at the second try: $(count passed)"
	ok=$((ok + $(count passed))) bad=$(count 'failed|errors?')
fi
# A test that was skipped did not pass.
passed=$((passed + ok)) failed=$((failed + bad + skipped))
[ "$ok" -gt 0 ] || failed=$((failed + 1))

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
