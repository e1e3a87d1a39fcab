// SPDX-License-Identifier: Apache-2.0
package scenes;

import java.util.Arrays;
import java.util.HashSet;
import java.util.Set;

/**
 * Scenes, the kinds of stack that Java has: each burns cpu at a method of Spots, first when its
 * callers are interpreted and then when they are compiled, and notes the stack that Java reports.
 * Runs on every Java from 8 on, with its own library alone.
 *
 * <p>Main SECONDS FILE [SCENE...]: burns so much in each phase, and writes the stacks (Mark).
 */
public final class Main {
    interface Scene {
        void run() throws Throwable;
    }

    private static Set<String> only = new HashSet<>();

    private Main() {
    }

    /** Runs a scene cold, then often enough to be compiled (0: never), and then hot. */
    static void scene(String name, int times, Scene scene) throws Throwable {
        if (!only.isEmpty() && !only.contains(name)) {
            return;
        }
        Mark.phase = Mark.COLD;
        scene.run();
        long end = System.nanoTime() + 150_000_000;
        for (int i = 0; i < times && System.nanoTime() < end; i++) {
            Mark.phase = Mark.QUICK[i % 3];
            scene.run();
        }
        if (times > 0) {
            Mark.phase = Mark.HOT;
            scene.run();
        }
        Mark.phase = Mark.QUICK[0];
    }

    /** Runs a class of scenes that only newer Javas have, or that needs a library. */
    private static void optional(String name) throws Throwable {
        try {
            ((Scene) Class.forName("scenes." + name).getDeclaredConstructor().newInstance()).run();
        } catch (ClassNotFoundException | UnsupportedClassVersionError | UnsatisfiedLinkError e) {
            System.err.println(name + ": left out: " + e);
        }
    }

    public static void main(String[] args) throws Throwable {
        only.addAll(Arrays.asList(args).subList(2, args.length));
        for (int i = 0; i < 30_000; i++) {
            Mark.phase = Mark.QUICK[i % 3];
            Spots.none();
        }
        Work.calibrate(Double.parseDouble(args[0]));
        Calls.run();
        Functions.run();
        Exceptions.run();
        Reflection.run();
        Code.run();
        Threads.run();
        optional("Native");
        optional("Virtual");
        optional("Records16");
        optional("Upcall22");
        Mark.write(args[1]);
    }
}
