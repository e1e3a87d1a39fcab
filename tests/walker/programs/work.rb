# SPDX-License-Identifier: Apache-2.0
def fib(n) = n < 2 ? n : fib(n - 1) + fib(n - 2)
def thrower(d) = d == 0 ? raise("the end") : thrower(d - 1)
sum = 0
loop do
  h = (1..40).to_h { |i| [i * 7919 % 1009, "x#{i}"] }
  v = h.keys.sort_by { |k| h[k] }
  begin; thrower(5); rescue => e; sum += e.message.size; end
  f = Fiber.new { 4.times { |i| Fiber.yield fib(i) } }
  4.times { sum += f.resume }
  sum += v.join(",").gsub(/(\d)(\d)/) { $2 + $1 }.size + fib(6)
end
