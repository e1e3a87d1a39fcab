# SPDX-License-Identifier: Apache-2.0
use strict;
sub fib { my $n = shift; $n < 2 ? $n : fib($n - 1) + fib($n - 2) }
sub thrower { my $d = shift; die "the end\n" unless $d; thrower($d - 1) }
my $sum = 0;
for my $round (1 .. 1e9) {
	my %h = map { $_ * 7919 % 1009 => "x$_" } 1 .. 40;
	my @v = sort { $h{$a} cmp $h{$b} } keys %h;
	eval { thrower(5) };
	(my $t = join ",", @v) =~ s/(\d)(\d)/$2$1/g;
	$sum += fib(6) + length(sprintf "%s %g", $t, 1.5);
}
print "$sum\n";
