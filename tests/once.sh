#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs a unit test or the replay of a fuzz target, for make: a stamp says that it passed, and
# STAMP.log has what it printed and, in its last line, how many tests passed and failed and how many
# seconds it took.
#   tests/once.sh STAMP PROGRAM [ARGUMENT...]
set -u
stamp=$1 program=$2
shift
mkdir -p "$(dirname "$stamp")"
rm -f "$stamp"
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=1:abort_on_error=1}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
began=$(date +%s.%N)
timeout 300 "$@" >"$stamp.log" 2>&1
status=$?
seconds=$(printf %.1f "$(echo "$(date +%s.%N) - $began" | bc)")
case $program in
*/unit/*)
	counts='.*Tested: *([0-9]+).*Passing: *([0-9]+).*Failing: *([0-9]+).*Crashing: *([0-9]+).*'
	line=$(sed -nE "s/$counts/\\1 \\2 \\3 \\4/p" "$stamp.log" | tail -n 1)
	read -r tested passed failed crashed <<<"${line:-0 0 1 0}"
	failed=$((failed + crashed))
	# A runner that died, or ran nothing, is a failure of its own.
	if [ $status -ne 0 ] && [ $failed -eq 0 ] || [ "$tested" -eq 0 ]; then
		failed=$((failed + 1))
	fi
	echo "$program: $passed of $tested" ;;
*)
	passed=1 failed=0
	[ $status -eq 0 ] || passed=0 failed=1
	echo "$program: $(tail -n 1 "$stamp.log")" ;;
esac
[ "$failed" -eq 0 ] || cat "$stamp.log"
echo "passed $passed failed $failed seconds $seconds" >>"$stamp.log"
[ "$failed" -eq 0 ] && touch "$stamp"
