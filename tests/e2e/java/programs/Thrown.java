// SPDX-License-Identifier: Apache-2.0
/** Exceptions that leave compiled frames, and stacks deeper than a sample. */
public class Thrown {
    static final RuntimeException THROWN = new RuntimeException("thrown", null, false, false) {};
    static volatile long sum;

    static void plain(int depth) {
        if (depth == 0)
            throw THROWN;
        plain(depth - 1);
        sum++;
    }

    static void cleans(int depth) {
        try {
            if (depth == 0)
                throw THROWN;
            cleans(depth - 1);
            sum++;
        } finally {
            sum += 2;
        }
    }

    static int deep(int depth) {
        return deep(depth + 1) + 1;
    }

    static void once(String what, boolean odd) {
        try {
            if (what.equals("deep"))
                deep(0);
            else if (odd)
                plain(20);
            else
                cleans(20);
        } catch (RuntimeException | StackOverflowError e) {
            sum++;
        }
    }

    public static void main(String[] args) {
        long end = System.nanoTime() + Long.parseLong(args[1]) * 1000000;
        for (int i = 0; System.nanoTime() < end; i++)
            once(args[0], i % 2 != 0);
    }
}
