// SPDX-License-Identifier: Apache-2.0
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.LockSupport;

/**
 * Threads with names, each in a method of its own. Names SECONDS: burns so long in all of them
 * together. Virtual threads take turns on few carriers, if Java has any.
 */
public final class Names {
    private static volatile long x;
    private static long end;

    private Names() {
    }

    private static void burn() {
        for (int i = 0; i < 20_000; i++) {
            x += i;
        }
    }

    /** The same, and then lets others have the carrier. */
    private static void burnInTurn() {
        burn();
        LockSupport.parkNanos(1000);
    }

    private static void plain() {
        while (System.nanoTime() < end) {
            burn();
        }
    }

    private static void wide() {
        while (System.nanoTime() < end) {
            burn();
        }
    }

    private static void former() {
        long half = (end + System.nanoTime()) / 2;
        while (System.nanoTime() < half) {
            burn();
        }
        Thread.currentThread().setName("a latter name of the thread");
        latter();
    }

    private static void latter() {
        while (System.nanoTime() < end) {
            burn();
        }
    }

    private static void first() {
        while (System.nanoTime() < end) {
            burnInTurn();
        }
    }

    private static void second() {
        while (System.nanoTime() < end) {
            burnInTurn();
        }
    }

    private static void nameless() {
        while (System.nanoTime() < end) {
            burnInTurn();
        }
    }

    private static Thread virtually(String name, Runnable r) throws Exception {
        Object builder = Thread.class.getMethod("ofVirtual").invoke(null);
        if (name != null) {
            Class.forName("java.lang.Thread$Builder$OfVirtual").getMethod("name", String.class)
                .invoke(builder, name);
        }
        return (Thread) Class.forName("java.lang.Thread$Builder").getMethod("start",
            Runnable.class).invoke(builder, r);
    }

    public static void main(String[] args) throws Exception {
        end = System.nanoTime() + (long) (Double.parseDouble(args[0]) * 1e9);
        List<Thread> all = new ArrayList<>();
        all.add(new Thread(Names::plain, "a plain thread of Java"));
        all.add(new Thread(Names::wide, "\u03a9 wide \ud83e\udd80"));
        all.add(new Thread(Names::former, "a former name of the thread"));
        for (Thread t : all) {
            t.start();
        }
        try {
            all.add(virtually("the first virtual thread", Names::first));
            all.add(virtually("the second virtual thread", Names::second));
            all.add(virtually(null, Names::nameless));
        } catch (NoSuchMethodException e) {
            System.err.println("no virtual threads");
        }
        for (Thread t : all) {
            t.join();
        }
    }
}
