;;; SPDX-License-Identifier: Apache-2.0
;;; Recursion, continuations, closures, bignums.
(define (fib n) (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2)))))
(define (search l x)
  (call-with-current-continuation
    (lambda (k) (for-each (lambda (y) (if (= y x) (k y))) l) #f)))
(define (count n) (let loop ((i 0) (l '())) (if (= i n) l (loop (+ i 1) (cons i l)))))
(define (one-round)
  (+ (fib 9) (search (count 50) 17) (string-length (number->string (expt 7 60)))
     (apply + (map (lambda (x) (* x x)) (count 40)))))
(let loop ((i 0)) (if (< i 1000000000) (begin (one-round) (loop (+ i 1)))))
