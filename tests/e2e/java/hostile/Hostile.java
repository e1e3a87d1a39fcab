// SPDX-License-Identifier: Apache-2.0

/** Turns its own virtual machine against who profiles it: Hostile HOW SECONDS (hostile.c). */
public final class Hostile {
    static volatile long sink;

    private Hostile() {
    }

    static native void attack(String how, double seconds);

    private static long fib(int n) {
        return n < 2 ? n : fib(n - 1) + fib(n - 2);
    }

    private static void down(int n, String[] args) {
        if (n == 0) {
            attack(args[0], Double.parseDouble(args[1]));
        } else {
            down(n - 1, args);
        }
    }

    public static void main(String[] args) {
        System.loadLibrary("hostile");
        Thread busy = new Thread(() -> {
            while (true) {
                sink += fib(20);
            }
        }, "busy");
        busy.setDaemon(true);
        busy.start();
        down(5, args);
        Runtime.getRuntime().halt(0);
    }
}
