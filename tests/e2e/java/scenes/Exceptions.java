// SPDX-License-Identifier: Apache-2.0
package scenes;

/** Frames that an exception has gone through, and frames that handle one. */
final class Exceptions {
    private static final class Closing implements AutoCloseable {
        @Override
        public void close() {
            Spots.close_resource();
        }
    }

    private static final class Failure extends RuntimeException {
        private static final long serialVersionUID = 1;

        @Override
        public synchronized Throwable fillInStackTrace() {
            return this;
        }
    }

    private static final Failure FAILURE = new Failure();
    private static final int[] EMPTY = new int[0];

    private Exceptions() {
    }

    private static int fail(int n) {
        if (n == 0) {
            throw FAILURE;
        }
        return fail(n - 1) + 1;
    }

    private static void handler() {
        try {
            fail(8);
        } catch (Failure e) {
            Spots.handler();
        }
    }

    private static void last() {
        try {
            Mark.sink++;
        } finally {
            Spots.finally_block();
        }
    }

    private static void lastOfThrown() {
        try {
            fail(2);
        } finally {
            Spots.finally_of_thrown();
        }
    }

    private static void implicit(int[] array, String text) {
        try {
            Mark.sink += array[3];
        } catch (ArrayIndexOutOfBoundsException e) {
            try {
                Mark.sink += text.length();
            } catch (NullPointerException f) {
                Spots.implicit_exceptions();
            }
        }
    }

    private static int down(int n) {
        return down(n + 1) + 1;
    }

    private static void overflow() {
        try {
            down(0);
        } catch (StackOverflowError e) {
            Spots.stack_overflow();
        }
    }

    static void run() throws Throwable {
        Main.scene("handler", 10000, Exceptions::handler);
        Main.scene("finally_block", 20000, Exceptions::last);
        Main.scene("finally_of_thrown", 10000, () -> {
            try {
                lastOfThrown();
            } catch (Failure e) {
                Mark.sink++;
            }
        });
        Main.scene("implicit_exceptions", 5000, () -> implicit(EMPTY, null));
        Main.scene("stack_overflow", 30, Exceptions::overflow);
        Main.scene("close_resource", 20000, () -> {
            try (Closing c = new Closing()) {
                Mark.sink++;
            }
        });
    }
}
