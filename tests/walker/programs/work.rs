// SPDX-License-Identifier: Apache-2.0
// Trait objects, collections, formatting, and panics that are caught.
use std::collections::{BTreeMap, HashMap};
use std::panic;

trait Shape { fn area(&self, depth: u32) -> f64; }
struct Square(f64);
impl Shape for Square {
    fn area(&self, depth: u32) -> f64 {
        if depth == 0 { self.0 * self.0 } else { self.area(depth - 1) + 1.0 }
    }
}

fn fib(n: u32) -> u32 { if n < 2 { n } else { fib(n - 1) + fib(n - 2) } }

fn thrower(depth: usize) -> usize {
    let kept = vec![depth; 4];
    if depth == 0 { let none: Option<usize> = None; return none.unwrap(); }
    thrower(depth - 1) + kept.len()
}

fn main() {
    let rounds = std::env::args().nth(1).map_or(1 << 30, |s| s.parse().unwrap());
    let mut sum = 0usize;
    panic::set_hook(Box::new(|_| {}));
    for round in 0..rounds {
        let mut m = BTreeMap::new();
        let mut h: HashMap<u32, String> = HashMap::new();
        for i in 0..60u32 { m.insert(i * 7919 % 1009, i); h.insert(i, format!("{} {:?}", i, 1.5)); }
        let mut v: Vec<_> = m.keys().map(|k| k.to_string()).collect();
        v.sort_by(|a, b| b.cmp(a));
        let shapes: Vec<Box<dyn Shape>> = vec![Box::new(Square(2.0)), Box::new(Square(3.0))];
        sum += shapes.iter().map(|s| s.area(5) as usize).sum::<usize>();
        sum += fib(10) as usize + v[3].len() + h.len();
        sum += panic::catch_unwind(|| thrower(5)).unwrap_or(round & 1);
    }
    println!("{}", sum);
}
