// SPDX-License-Identifier: Apache-2.0
// C from Go, and Go from C.
package main

// static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
// extern int goBack(int);
// static int through(int n) { return goBack(n) + fib(n); }
import "C"
import "fmt"

//export goBack
func goBack(n C.int) C.int {
	if n > 0 {
		return C.through(n-1) + 1
	}
	return C.fib(5)
}

func main() {
	sum := 0
	for i := 0; i < 1<<30; i++ {
		sum += int(C.through(3))
	}
	fmt.Println(sum)
}
