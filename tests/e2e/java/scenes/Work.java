// SPDX-License-Identifier: Apache-2.0
package scenes;

import java.util.Arrays;

/** A fixed amount of work, of many kinds, so that a busy machine leaves as many samples. */
final class Work {
    private static int rounds = 1;
    private static final byte[] from = new byte[4096], to = new byte[4096];
    static volatile Object kept;
    static volatile long sink;

    private interface Step {
        long step(long x);
    }

    private static final Step[] STEPS = {new Add(), new Mul(), x -> x ^ (x >>> 7), Work::shift};

    private static final class Add implements Step {
        @Override
        public long step(long x) {
            return x + 3;
        }
    }

    private static final class Mul implements Step {
        @Override
        public long step(long x) {
            return x * 31;
        }
    }

    private Work() {
    }

    /** Measures how many rounds take so many seconds of an idle cpu. */
    static void calibrate(double seconds) {
        long best = Long.MAX_VALUE;
        for (int i = 0; i < 3000; i++) {
            long start = System.nanoTime();
            round();
            best = i < 1500 ? best : Math.min(best, System.nanoTime() - start);
        }
        rounds = (int) Math.max(1, seconds * 1e9 / best);
    }

    static void burn() {
        for (int i = rounds; i > 0; i--) {
            round();
        }
    }

    /** Small functions of which a sample often sees the first and last instructions; copies,
     * strings and objects. */
    private static void round() {
        long x = fib(11);
        for (int i = 0; i < 60; i++) {
            x = STEPS[i & 3].step(x);
        }
        System.arraycopy(from, (int) (x & 63), to, 0, 2048);
        Arrays.fill(from, (byte) x);
        StringBuilder s = new StringBuilder();
        for (int i = 0; i < 10; i++) {
            s.append(i).append(text(x + i));
        }
        kept = s.toString();
        sink += x + Math.abs(kept.hashCode() % 7) + Long.numberOfTrailingZeros(x);
    }

    private static long shift(long x) {
        return x << 1;
    }

    private static String text(long x) {
        return Long.toHexString(x);
    }

    private static int fib(int n) {
        return n < 2 ? n : fib(n - 1) + fib(n - 2);
    }
}
