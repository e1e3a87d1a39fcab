(* SPDX-License-Identifier: Apache-2.0 *)
(* Recursion and nested procedures. *)
MODULE work ;

FROM StrIO IMPORT WriteString, WriteLn ;

VAR
   round, sum: CARDINAL ;
   a: ARRAY [0..99] OF CARDINAL ;

PROCEDURE Fib (n: CARDINAL) : CARDINAL ;
BEGIN
   IF n < 2 THEN RETURN n END ;
   RETURN Fib (n-1) + Fib (n-2)
END Fib ;

PROCEDURE Sort ;

   PROCEDURE Sift (i: CARDINAL) ;
   VAR x: CARDINAL ;
   BEGIN
      IF (i > 0) AND (a[i] < a[i-1]) THEN
         x := a[i] ; a[i] := a[i-1] ; a[i-1] := x ;
         Sift (i-1)
      END
   END Sift ;

VAR i: CARDINAL ;
BEGIN
   FOR i := 0 TO 99 DO a[i] := i * 7919 MOD 1009 END ;
   FOR i := 0 TO 30 DO Sift (i) END
END Sort ;

BEGIN
   sum := 0 ;
   FOR round := 1 TO 1000000000 DO
      Sort ;
      sum := (sum + Fib (10) + a[3]) MOD 1000003
   END ;
   WriteString ('done') ; WriteLn
END work.
