;;; SPDX-License-Identifier: Apache-2.0
;;; Recursion, sorting, hash tables, conditions, bignums.
(defun fib (n) (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2)))))
(defun one-round ()
  (let ((h (make-hash-table)))
    (loop for i below 40 do (setf (gethash i h) (* i 7919)))
    (+ (fib 8) (hash-table-count h)
       (reduce #'+ (sort (loop for i below 50 collect (mod (* i 7919) 1009)) #'<))
       (length (handler-case (error "text") (error (e) (format nil "~a ~d" e (expt 7 60))))))))
(loop for i below 1000000000 do (one-round))
