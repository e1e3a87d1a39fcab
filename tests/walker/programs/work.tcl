# SPDX-License-Identifier: Apache-2.0
proc fib {n} { if {$n < 2} { return $n }; expr {[fib [expr {$n - 1}]] + [fib [expr {$n - 2}]]} }
proc thrower {d} { if {$d == 0} { error "the end" }; thrower [expr {$d - 1}] }
proc by {a b} { expr {$b - $a} }
set sum 0
while 1 {
	set v {}
	for {set i 0} {$i < 30} {incr i} { lappend v [expr {$i * 7919 % 1009}] }
	set v [lsort -command by $v]
	catch { thrower 5 } e
	set digits [regsub -all {(\d)(\d)} $v {\2\1}]
	incr sum [expr {[fib 6] + [string length $e] + [string length $digits]}]
}
