// SPDX-License-Identifier: Apache-2.0
package scenes;

/** Calls of all kinds: static, virtual, by interface, with many arguments. */
final class Calls {
    private abstract static class Shape {
        abstract int area(int x);

        int twice(int x) {
            return 2 * area(x);
        }
    }

    private static class Square extends Shape {
        @Override
        int area(int x) {
            Spots.virtual_call();
            return x * x;
        }
    }

    private static final class Circle extends Square {
        @Override
        int area(int x) {
            return 3 * super.area(x);
        }
    }

    private static final class Line extends Square {
        @Override
        int area(int x) {
            return super.area(x) - 1;
        }

        @Override
        int twice(int x) {
            return super.twice(x) + 1;
        }
    }

    private interface Animal {
        void name();

        default void greet() {
            name();
        }
    }

    private static final class Dog implements Animal {
        @Override
        public void name() {
            Spots.default_method();
        }
    }

    private static class Zoo {
        private static final Animal[] ANIMALS = {Spots::interface_call, new Cat(), new Cow()};

        private static final class Cat implements Animal {
            @Override
            public void name() {
                Mark.sink++;
            }
        }

        private static final class Cow implements Animal {
            @Override
            public void name() {
                Mark.sink--;
            }
        }
    }

    private static class Made {
        final int x;

        Made(int x) {
            this.x = x;
            Spots.constructor();
        }
    }

    private static final class Derived extends Made {
        final int y = 2;

        Derived() {
            super(1);
        }
    }

    private static class Box<T extends Comparable<T>> implements Comparable<Box<T>> {
        final T value;

        Box(T value) {
            this.value = value;
        }

        @Override
        public int compareTo(Box<T> other) {
            Spots.bridge_method();
            return value.compareTo(other.value);
        }
    }

    private final class Inner {
        private int secret() {
            Spots.inner_class();
            return hidden;
        }
    }

    private int hidden = 7;

    private Calls() {
    }

    private static int recurse(int n) {
        if (n == 0) {
            Spots.recursion();
            return 0;
        }
        return recurse(n - 1) + 1;
    }

    private static int deep(int n) {
        if (n == 0) {
            Spots.deep_recursion();
            return 0;
        }
        return 1
            + deep(n - 1);
    }

    private static boolean even(int n) {
        if (n == 0) {
            Spots.mutual_recursion();
            return true;
        }
        return odd(n - 1);
    }

    private static boolean odd(int n) {
        return n != 0 && even(n - 1);
    }

    private static double many(int a, long b, double c, String d, int[] e, float f, long g, int h,
            double i, byte j, char k, boolean l, short m, Object n, long[][] o, double p) {
        Spots.many_arguments();
        return a + b + c + d.length() + e.length + f + g + h + i + j + k + (l ? 1 : 0) + m
            + o.length + p;
    }

    private static int varied(Object... all) {
        Spots.variable_arguments();
        return all.length;
    }

    /** Takes a large frame: its variables live across the call. */
    private static long wide(long x) {
        long a = x * 3, b = x * 5, c = x * 7, d = x * 11, e = x * 13, f = x * 17, g = x * 19;
        long h = a ^ b, i = c ^ d, j = e ^ f, k = g ^ h, l = i ^ j, m = a + k, n = b + l;
        double o = a / 3.0, p = b / 5.0, q = c / 7.0, r = d / 9.0, s = e / 11.0, t = f / 13.0;
        Spots.wide_frame();
        return (long) (a + b + c + d + e + f + g + h + i + j + k + l + m + n + o + p + q + r + s
            + t);
    }

    private static synchronized void locked() {
        Spots.synchronized_method();
    }

    private static void block(Object lock) {
        synchronized (lock) {
            synchronized (Calls.class) {
                Spots.synchronized_block();
            }
        }
    }

    private static void chooses(String by) {
        switch (by) {
        case "one":
            Mark.sink++;
            break;
        case "two":
            for (int i = 0; i < 1; i++) {
                if (Mark.sink != -1) {
                    Spots.string_switch(
                    );
                }
            }
            break;
        default:
            Mark.sink--;
        }
    }

    static void run() throws Throwable {
        Shape[] shapes = {new Square(), new Circle(), new Line()};
        Animal dog = new Dog();
        Object lock = new Object();

        Main.scene("static_call", 20000, Calls::first);
        Main.scene("recursion", 20000, () -> recurse(20));
        Main.scene("deep_recursion", 3000, () -> deep(1000));
        Main.scene("mutual_recursion", 20000, () -> even(30));
        Main.scene("virtual_call", 20000, new Main.Scene() {
            private int n;

            @Override
            public void run() {
                // The cold and the hot visit have the shape that has most frames.
                shapes[Mark.phase == Mark.COLD || Mark.phase == Mark.HOT ? 2 : n++ % 3].twice(5);
            }
        });
        Main.scene("interface_call", 20000, () -> {
            for (Animal a : Zoo.ANIMALS) {
                a.greet();
            }
        });
        Main.scene("default_method", 20000, dog::greet);
        Main.scene("constructor", 20000, Derived::new);
        Main.scene("bridge_method", 20000, () -> compare(new Box<>(1), new Box<>(2)));
        Main.scene("inner_class", 20000, () -> new Calls().new Inner().secret());
        Main.scene("many_arguments", 20000, () -> many(1, 2, 3, "d", new int[5], 6, 7, 8, 9,
            (byte) 10, 'k', true, (short) 13, null, new long[15][], 16));
        Main.scene("variable_arguments", 20000, () -> varied(1, 2L, "three", 4.0));
        Main.scene("wide_frame", 20000, () -> wide(Mark.sink));
        Main.scene("synchronized_method", 20000, Calls::locked);
        Main.scene("synchronized_block", 20000, () -> block(lock));
        Main.scene("string_switch", 20000, () -> chooses("two"));
    }

    private static <T extends Comparable<T>> int compare(T a, T b) {
        return a.compareTo(b);
    }

    private static void first() {
        second(2);
    }

    private static int second(int x) {
        return third(x, 3L) + 1;
    }

    private static int third(int x, long y) {
        Spots.static_call();
        return (int) (x + y);
    }
}
