{ SPDX-License-Identifier: Apache-2.0 }
{ Recursion, nested procedures, exceptions and managed strings. }
program work;
{$mode objfpc}{$H+}
uses sysutils;

function fib(n: longint): longint;
begin
  if n < 2 then fib := n else fib := fib(n - 1) + fib(n - 2);
end;

procedure thrower(depth: longint);
var
  kept: string;
begin
  kept := inttostr(depth);
  if depth > 0 then thrower(depth - 1) else raise exception.create(kept);
end;

procedure sort(var a: array of longint);

  procedure part(low, high: longint);
  var
    i, j, x, y: longint;
  begin
    i := low; j := high; x := a[(low + high) div 2];
    repeat
      while a[i] < x do inc(i);
      while x < a[j] do dec(j);
      if i <= j then begin y := a[i]; a[i] := a[j]; a[j] := y; inc(i); dec(j); end;
    until i > j;
    if low < j then part(low, j);
    if i < high then part(i, high);
  end;

begin
  part(0, length(a) - 1);
end;

var
  round, i, sum: int64;
  a: array[0..99] of longint;
  s: string;
begin
  sum := 0;
  for round := 1 to 1000000000 do begin
    for i := 0 to 99 do a[i] := i * 7919 mod 1009;
    sort(a);
    s := '';
    for i := 1 to 20 do s := s + inttostr(a[i]);
    try thrower(8) except on e: exception do sum := sum + length(e.message); end;
    sum := sum + length(s) + fib(10);
  end;
  writeln(sum);
end.
