-- SPDX-License-Identifier: Apache-2.0
local function fib(n) return n < 2 and n or fib(n - 1) + fib(n - 2) end
local function thrower(d) if d == 0 then error("the end") end return thrower(d - 1) + 1 end
local sum = 0
for round = 1, 1e9 do
	local v = {}
	for i = 1, 60 do v[i] = i * 7919 % 1009 end
	table.sort(v, function(a, b) return a > b end)
	local _, e = pcall(thrower, 5)
	local c = coroutine.wrap(function() for i = 1, 5 do coroutine.yield(fib(i)) end end)
	for i = 1, 5 do sum = sum + c() end
	local list, swap = table.concat(v, ","), function(a, b) return b .. a end
	local digits = string.gsub(list, "(%d)(%d)", swap)
	sum = sum + #e + #digits + fib(8)
end
print(sum)
