// SPDX-License-Identifier: Apache-2.0
package scenes;

import java.security.AccessController;
import java.security.PrivilegedAction;

/** What compilers make of code: inlined calls, loops compiled on the way, code thrown away. */
final class Code {
    /** Has one subclass until Late is loaded, and compiled code relies on that. */
    abstract static class Early {
        abstract int value();
    }

    static final class Only extends Early {
        @Override
        int value() {
            if (Mark.phase == Mark.HOT) {
                late();
            }
            Spots.deoptimization();
            return 1;
        }
    }

    static final class Late extends Early {
        @Override
        int value() {
            return 2;
        }
    }

    private static Early early = new Only();

    private Code() {
    }

    static void late() {
        try {
            early = (Early) Class.forName("scenes.Code$Late").getDeclaredConstructor()
                .newInstance();
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        }
    }

    private static int relies(Early e) {
        return e.value() + 1;
    }

    private static int reliesOnThat(Early e, int n) {
        return n == 0 ? relies(e) : reliesOnThat(e, n - 1) + 1;
    }

    /** Is entered once, and compiled while its loop runs. */
    private static long loop(int n) {
        long sum = 0;
        for (int i = 0; i < n; i++) {
            for (int j = 0; j < 100; j++) {
                sum += i ^ j;
            }
            if (i == n - 1) {
                Spots.loop();
            }
        }
        return sum;
    }

    // The test has compilers inline these three, and never the three below.
    static int inlinedOuter(int x) {
        return inlinedMiddle(x) + 1;
    }

    static int inlinedMiddle(int x) {
        return inlinedInner(x, 2) + 1;
    }

    static int inlinedInner(int x, int y) {
        Spots.inlined();
        return x + y;
    }

    static int aloneOuter(int x) {
        return aloneMiddle(x) + 1;
    }

    static int aloneMiddle(int x) {
        return aloneInner(x, 2) + 1;
    }

    static int aloneInner(int x, int y) {
        Spots.alone();
        return x + y;
    }

    /** Allocates, and has the heap collected, while its callers' frames hold objects. */
    private static int collected(int n, Object[] held) {
        if (n > 0) {
            return collected(n - 1, new Object[] {held, new byte[n * 100]}) + held.length;
        }
        System.gc();
        Spots.after_collection();
        return 0;
    }

    @SuppressWarnings("deprecation")
    private static void privileged() {
        AccessController.doPrivileged((PrivilegedAction<Integer>) () -> {
            Spots.privileged();
            return 1;
        });
    }

    static void run() throws Throwable {
        Main.scene("inlined", 20000, () -> inlinedOuter(1));
        Main.scene("alone", 20000, () -> aloneOuter(1));
        Main.scene("loop", 0, () -> loop(60000));
        Main.scene("deoptimization", 20000, () -> reliesOnThat(early, 5));
        Main.scene("after_collection", 20, () -> collected(10, new Object[1]));
        Main.scene("huge_method", 3000, () -> Huge.huge(3));
        Main.scene("privileged", 10000, Code::privileged);
    }
}
