! SPDX-License-Identifier: Apache-2.0
! Recursion, array temporaries, internal procedures, formatted output.
module parts
contains
  recursive integer function fib(n) result(r)
    integer, intent(in) :: n
    if (n < 2) then
      r = n
    else
      r = fib(n - 1) + fib(n - 2)
    end if
  end function
  function apply(f, n) result(r)
    interface
      integer function f(n)
        integer, intent(in) :: n
      end function
    end interface
    integer, intent(in) :: n
    integer :: r
    r = f(n)
  end function
end module
program work
  use parts
  real(8) :: a(12, 12), b(12, 12)
  character(80) :: text
  integer :: i, round
  integer(8) :: sum_all
  sum_all = 0
  do round = 1, 1000000000
    do i = 1, 12
      a(:, i) = [(real(i * j, 8), j = 1, 12)]
    end do
    b = matmul(a, transpose(a))
    write (text, '(f12.3, i8)') b(3, 4), apply(inner, 9)
    sum_all = sum_all + len_trim(text)
  end do
  print *, sum_all
contains
  integer function inner(n)
    integer, intent(in) :: n
    inner = fib(n) + round
  end function
end program
