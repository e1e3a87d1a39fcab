--  SPDX-License-Identifier: Apache-2.0
--  Nested functions, exceptions, controlled types and containers.
with Ada.Text_IO; use Ada.Text_IO;
with Ada.Containers.Ordered_Maps;
with Ada.Strings.Unbounded; use Ada.Strings.Unbounded;

procedure Work is
   package Maps is new Ada.Containers.Ordered_Maps (Integer, Unbounded_String);
   Stop : exception;
   Sum  : Long_Long_Integer := 0;

   function Fib (N : Integer) return Integer is
     (if N < 2 then N else Fib (N - 1) + Fib (N - 2));

   procedure Thrower (Depth : Integer) is
      Kept : Unbounded_String := To_Unbounded_String ("text");
   begin
      if Depth = 0 then
         raise Stop with "the end";
      end if;
      Thrower (Depth - 1);
      Append (Kept, "x");
   end Thrower;
begin
   for Round in 1 .. 1_000_000_000 loop
      declare
         M : Maps.Map;
      begin
         for I in 1 .. 60 loop
            M.Include (I * 7919 mod 1009, To_Unbounded_String (I'Image));
         end loop;
         Sum := Sum + Long_Long_Integer (Fib (10)) + Long_Long_Integer (M.Length);
         Thrower (6);
      exception
         when Stop =>
            Sum := Sum + 1;
      end;
   end loop;
   Put_Line (Sum'Image);
end Work;
