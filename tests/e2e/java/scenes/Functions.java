// SPDX-License-Identifier: Apache-2.0
package scenes;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Function;
import java.util.function.IntUnaryOperator;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/** Lambdas, method references, and callbacks of Java's own library. */
final class Functions {
    private static final class Key implements Comparable<Key> {
        final int n;

        Key(int n) {
            this.n = n;
        }

        @Override
        public int hashCode() {
            if (n == 3) {
                Spots.hash_code();
            }
            return n;
        }

        @Override
        public boolean equals(Object o) {
            return o instanceof Key && ((Key) o).n == n;
        }

        @Override
        public int compareTo(Key o) {
            if (n == 7) {
                Spots.tree_map();
            }
            return Integer.compare(n, o.n);
        }

        @Override
        public String toString() {
            Spots.to_string();
            return "key";
        }
    }

    private static final class Numbers implements Iterable<Integer> {
        @Override
        public Iterator<Integer> iterator() {
            return new Iterator<Integer>() {
                private int left = 1;

                @Override
                public boolean hasNext() {
                    return left > 0;
                }

                @Override
                public Integer next() {
                    Spots.iterator();
                    return left--;
                }
            };
        }
    }

    private static boolean done;

    private Functions() {
    }

    private static int apply(IntUnaryOperator f, int x) {
        return f.applyAsInt(x);
    }

    private static int referred(int x) {
        Spots.method_reference();
        return x;
    }

    private static <T> Function<T, T> nested(int n, Function<T, T> inner) {
        return n == 0 ? inner : x -> Functions.<T>nested(n - 1, inner).apply(x);
    }

    /** A comparator is called several times, and burns in the first call. */
    private static int once(int a, int b) {
        if (!done) {
            done = true;
            Spots.sort_comparator();
        }
        return Integer.compare(a, b);
    }

    static void run() throws Throwable {
        int captured = (int) (Mark.sink & 7);
        List<Integer> few = Arrays.asList(1, 2, 3);
        Integer[] numbers = {5, 3, 1, 4, 2};
        Map<String, Integer> map = new HashMap<>();
        Map<Key, Integer> hashed = new HashMap<>();
        TreeMap<Key, Integer> tree = new TreeMap<>();
        Key key = new Key(3), other = new Key(7);

        for (int i = 0; i < 7; i++) {
            tree.put(new Key(i), i);
        }
        Main.scene("lambda", 20000, () -> apply(x -> {
            Spots.lambda();
            return x;
        }, 1));
        Main.scene("capturing_lambda", 20000, () -> apply(x -> {
            Spots.capturing_lambda();
            return x + captured;
        }, 1));
        Main.scene("method_reference", 20000, () -> apply(Functions::referred, 1));
        Main.scene("nested_lambdas", 20000, () -> nested(5, x -> {
            Spots.nested_lambdas();
            return x;
        }).apply("x"));
        Main.scene("stream", 3000, () -> few.stream().filter(x -> x == 2).map(x -> {
            Spots.stream();
            return x + 1;
        }).collect(Collectors.toList()));
        Main.scene("flat_map", 3000, () -> IntStream.range(0, 3).boxed()
            .flatMap(x -> Stream.of(x, x + 10)).mapToInt(x -> x).forEach(x -> {
                if (x == 11) {
                    Spots.flat_map();
                }
            }));
        Main.scene("sort_comparator", 5000, () -> {
            done = false;
            Arrays.sort(numbers.clone(), Functions::once);
        });
        Main.scene("compute_if_absent", 10000, () -> {
            map.clear();
            map.computeIfAbsent("a", name -> {
                Spots.compute_if_absent();
                return name.length();
            });
        });
        Main.scene("hash_code", 20000, () -> hashed.put(key, 1));
        Main.scene("tree_map", 20000, () -> tree.containsKey(new Key(7)));
        Main.scene("to_string", 10000, () -> {
            String s = "a" + other + Mark.sink;
            Mark.sink += s.length() & 1;
        });
        Main.scene("iterator", 20000, () -> {
            for (int x : new Numbers()) {
                Mark.sink += x;
            }
        });
        Main.scene("for_each", 10000, () -> new ArrayList<>(few).forEach(x -> {
            if (x == 3) {
                Spots.for_each();
            }
        }));
    }
}
