%% SPDX-License-Identifier: Apache-2.0
%% Processes, messages, exceptions, maps.
-module(work).
-export([main/0]).

fib(N) when N < 2 -> N;
fib(N) -> fib(N - 1) + fib(N - 2).

one(Round) ->
    Self = self(),
    spawn(fun() -> Self ! {sum, fib(9)} end),
    M = maps:from_list([{I * 7919 rem 1009, integer_to_list(I)} || I <- lists:seq(1, 60)]),
    R = try throw({stop, Round}) catch throw:{stop, X} -> X end,
    receive {sum, S} -> S + R + maps:size(M) end.

main() -> lists:foreach(fun one/1, lists:seq(1, 100000000)).
