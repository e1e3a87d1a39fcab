// SPDX-License-Identifier: Apache-2.0
package scenes;

import java.lang.reflect.Method;
import java.util.concurrent.locks.LockSupport;

/** Virtual threads, from Java 21 on: mounted ones, after a yield, and pinned ones. */
final class Virtual implements Main.Scene {
    private Method start;

    Virtual() {
    }

    private void virtually(Runnable r) throws Throwable {
        ((Thread) start.invoke(null, r)).join();
    }

    private static int recurse(int n, Runnable leaf) {
        if (n == 0) {
            leaf.run();
            return 0;
        }
        return recurse(n - 1, leaf) + 1;
    }

    /** Most frames below are in a chunk of the heap when this goes on. */
    private static void yields() {
        LockSupport.parkNanos(1000);
        Spots.virtual_yield();
    }

    private static void pinned() {
        Object lock = new Object();
        synchronized (lock) {
            LockSupport.parkNanos(1000);
            Spots.virtual_pinned();
        }
    }

    private static void deep() {
        LockSupport.parkNanos(1000);
        Spots.virtual_deep();
    }

    /** The frames of the second pause do not fit in the chunk of the first, and get one of their
     * own. */
    private static void twice() {
        LockSupport.parkNanos(1000);
        recurse(40, () -> {
            LockSupport.parkNanos(1000);
            Spots.virtual_twice();
        });
    }

    /** "VirtualThread[#22]/runnable@ForkJoinPool-1-worker-1". */
    private static String carrier() {
        return Thread.currentThread().toString().replaceFirst(".*@", "");
    }

    /** Pauses until another carrier takes it, if there is one. */
    private static void moves() {
        String first = carrier();
        for (int i = 0; i < 1000 && carrier().equals(first); i++) {
            LockSupport.parkNanos(1000);
        }
        Spots.virtual_moved();
    }

    @Override
    public void run() throws Throwable {
        try {
            start = Thread.class.getMethod("startVirtualThread", Runnable.class);
        } catch (NoSuchMethodException e) {
            throw new ClassNotFoundException("virtual threads");
        }
        Main.scene("virtual_thread", 1000,
            () -> virtually(() -> recurse(10, Spots::virtual_thread)));
        Main.scene("virtual_yield", 1000, () -> virtually(() -> recurse(10, Virtual::yields)));
        Main.scene("virtual_pinned", 300, () -> virtually(() -> recurse(5, Virtual::pinned)));
        Main.scene("virtual_deep", 300, () -> virtually(() -> recurse(50, Virtual::deep)));
        Main.scene("virtual_twice", 300, () -> virtually(() -> recurse(20, Virtual::twice)));
        Main.scene("virtual_moved", 300, () -> virtually(() -> recurse(10, Virtual::moves)));
    }
}
