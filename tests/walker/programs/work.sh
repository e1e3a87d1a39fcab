# SPDX-License-Identifier: Apache-2.0
fib() {
	if (($1 < 2)); then r=$1; return; fi
	local a
	fib $(($1 - 1)); a=$r
	fib $(($1 - 2)); r=$((a + r))
}
sum=0
trap 'sum=$((sum + 1))' USR1
while :; do
	declare -A h
	for i in {1..20}; do h[$((i * 7919 % 1009))]="x$i"; done
	t="${!h[*]}"
	[[ $t =~ ([0-9]+)\ ([0-9]+) ]] && t=${t//1/${BASH_REMATCH[2]}}
	fib 5
	kill -USR1 $$
	sum=$((sum + r + ${#t}))
done
