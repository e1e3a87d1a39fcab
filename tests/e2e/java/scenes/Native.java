// SPDX-License-Identifier: Apache-2.0
package scenes;

/** Java, C and Java again: scenes.c. */
final class Native implements Main.Scene {
    Native() {
    }

    static native int down(int n);

    private static int up(int n) {
        if (n == 0) {
            Spots.jni();
            return 0;
        }
        return down(n - 1) + 1;
    }

    private static boolean done;

    private int compare(int a, int b) {
        if (!done) {
            done = true;
            Spots.jni_callback();
        }
        return a - b;
    }

    native void sortBy(int[] numbers);

    @Override
    public void run() throws Throwable {
        System.loadLibrary("scenes");
        Main.scene("jni", 5000, () -> up(5));
        Main.scene("jni_callback", 5000, () -> {
            done = false;
            new Native().sortBy(new int[] {3, 1, 2});
        });
    }
}
