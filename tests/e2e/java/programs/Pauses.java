// SPDX-License-Identifier: Apache-2.0

import java.lang.reflect.Method;
import java.util.concurrent.locks.LockSupport;

/**
 * Virtual threads that pause all the time, below a known chain of methods: run, DEEPER times
 * deeper, m0 to m9, pause.
 */
public final class Pauses {
    private static final int DEEPER = 200;
    private static final int THREADS = 6;
    private static final Object LOCK = new Object();
    /** Whether they pause again without returning from the chain. */
    private static boolean stays;
    private static String how;
    private static volatile boolean ends;
    private static volatile long count;

    private Pauses() {
    }

    private static void pause() {
        if (how.equals("yield")) {
            Thread.yield();
        } else if (how.equals("park")) {
            LockSupport.parkNanos(1000);
        } else {
            synchronized (LOCK) {
                for (int i = 0; i < 100; i++) {
                    count++;
                }
            }
        }
    }

    private static int m9() {
        do {
            pause();
        } while (stays && !ends);
        return 0;
    }

    private static int m8() {
        return m9() + 1;
    }

    private static int m7() {
        return m8() + 1;
    }

    private static int m6() {
        return m7() + 1;
    }

    private static int m5() {
        return m6() + 1;
    }

    private static int m4() {
        return m5() + 1;
    }

    private static int m3() {
        return m4() + 1;
    }

    private static int m2() {
        return m3() + 1;
    }

    private static int m1() {
        return m2() + 1;
    }

    private static int m0() {
        return m1() + 1;
    }

    private static int deeper(int n) {
        return n == 1 ? m0() : deeper(n - 1) + 1;
    }

    static void run() {
        while (!ends) {
            deeper(DEEPER);
        }
    }

    /** Arguments: yield, park or lock; stays or returns; seconds. */
    public static void main(String[] args) throws Exception {
        how = args[0];
        stays = args[1].equals("stays");
        // The tests are compiled by a Java that may be older than 21.
        Method start = Thread.class.getMethod("startVirtualThread", Runnable.class);
        Thread[] threads = new Thread[THREADS];

        for (int i = 0; i < THREADS; i++) {
            threads[i] = (Thread) start.invoke(null, (Runnable) Pauses::run);
        }
        Thread.sleep((long) (Double.parseDouble(args[2]) * 1000));
        ends = true;
        for (Thread thread : threads) {
            thread.join();
        }
    }
}
