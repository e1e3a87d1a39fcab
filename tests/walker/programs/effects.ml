(* SPDX-License-Identifier: Apache-2.0 *)
(* Effects of OCaml 5: each handler runs on a stack of its own. *)
open Effect
open Effect.Deep

type _ Effect.t += Ask : int -> int Effect.t

let rec fib n = if n < 2 then n else fib (n - 1) + fib (n - 2)
let rec work n = if n = 0 then 0 else perform (Ask n) + work (n - 1)

let handled n =
  match_with work n
    { retc = (fun x -> x + fib 5);
      exnc = raise;
      effc = (fun (type a) (e : a Effect.t) ->
        match e with
        | Ask k -> Some (fun (c : (a, _) continuation) -> continue c (fib (k mod 8)))
        | _ -> None) }

let () =
  let sum = ref 0 in
  for _ = 1 to 1_000_000_000 do
    sum := !sum + handled 10;
    ignore (Array.make 300 0)
  done;
  Printf.printf "%d\n" !sum
