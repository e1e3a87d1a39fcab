# SPDX-License-Identifier: Apache-2.0
# Blocks, exceptions, fibers and channels.
def fib(n : Int32) : Int32
  n < 2 ? n : fib(n - 1) + fib(n - 2)
end

def thrower(depth : Int32) : Int32
  raise "the end" if depth == 0
  thrower(depth - 1) + 1
end

sum = 0_i64
1_000_000_000.times do
  h = Hash(Int32, String).new
  40.times { |i| h[i * 7919 % 1009] = i.to_s }
  c = Channel(Int32).new
  spawn { 5.times { |i| c.send fib(i + 3) } }
  5.times { sum += c.receive }
  begin
    thrower(5)
  rescue e
    sum += e.message.to_s.size
  end
  sum += h.keys.sort.first + fib(9)
end
puts sum
