// SPDX-License-Identifier: Apache-2.0
// Goroutines, channels, panics, and stacks that grow.
package main

import (
	"fmt"
	"os"
	"sort"
	"strconv"
	"strings"
)

func fib(n int) int {
	if n < 2 {
		return n
	}
	return fib(n-1) + fib(n-2)
}

func deep(n int) int {
	var a [64]int
	a[n%64] = n
	if n == 0 {
		return 0
	}
	return deep(n-1) + a[n%64]
}

func caught() (r int) {
	defer func() {
		if x := recover(); x != nil {
			r = 7
		}
	}()
	var m map[string]int
	m["a"] = 1
	return 0
}

func main() {
	rounds, sum := 1<<30, 0
	if len(os.Args) > 1 {
		rounds, _ = strconv.Atoi(os.Args[1])
	}
	for i := 0; i < rounds; i++ {
		c := make(chan int)
		go func() {
			for i := 0; i < 20; i++ {
				c <- fib(7)
			}
			close(c)
		}()
		for x := range c {
			sum += x
		}
		a := make([]string, 0)
		for i := 0; i < 50; i++ {
			a = append(a, strings.Repeat("x", i%17)+fmt.Sprint(i))
		}
		sort.Strings(a)
		sum += len(a[7]) + deep(60) + caught()
	}
	fmt.Println(sum)
}
