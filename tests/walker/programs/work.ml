(* SPDX-License-Identifier: Apache-2.0 *)
(* Exceptions, closures, C calls that call back, and the collector. *)
module M = Map.Make (Int)

exception Stop of int

let rec fib n = if n < 2 then n else fib (n - 1) + fib (n - 2)
let search l x = try List.iter (fun y -> if y = x then raise (Stop y)) l; 0 with Stop y -> y

let () =
  let sum = ref 0 in
  for round = 1 to 1_000_000_000 do
    let m = ref M.empty in
    for i = 1 to 60 do m := M.add (i * 7919 mod 1009) (Bytes.create 64) !m done;
    if round mod 7 = 0 then Gc.minor ();
    let a = Array.init 100 (fun i -> string_of_int (i * 7919 mod 1009)) in
    Array.sort compare a;
    sum := !sum + fib 9 + M.cardinal !m + search (List.init 50 (fun i -> i)) 37 + Hashtbl.hash a.(7)
      + String.length (Printf.sprintf "%d %f" round 1.5)
  done;
  Printf.printf "%d\n" !sum
