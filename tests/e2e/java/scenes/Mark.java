// SPDX-License-Identifier: Apache-2.0
package scenes;

import java.io.IOException;
import java.io.PrintWriter;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Where a scene is: at a method of Spots, which calls {@link #here}. What happens there depends on
 * the phase. Phases are objects of several classes, so that no compiler foresees which one comes:
 * compiled callers stay compiled when the measured phase begins.
 */
final class Mark {
    abstract static class Phase {
        abstract void at(String scene);
    }

    /** Before the measured phase: three classes that do next to nothing. */
    static final class QuickA extends Phase {
        @Override
        void at(String scene) {
            sink++;
        }
    }

    static final class QuickB extends Phase {
        @Override
        void at(String scene) {
            sink += 2;
        }
    }

    static final class QuickC extends Phase {
        @Override
        void at(String scene) {
            sink += 3;
        }
    }

    /** The first visit: callers are interpreted. */
    static final class Cold extends Phase {
        @Override
        void at(String scene) {
            note(scene, "cold");
            Work.burn();
        }
    }

    /** After thousands of visits: callers are compiled. */
    static final class Hot extends Phase {
        @Override
        void at(String scene) {
            note(scene, "hot");
            Work.burn();
        }
    }

    static final Phase[] QUICK = {new QuickA(), new QuickB(), new QuickC()};
    static final Phase COLD = new Cold(), HOT = new Hot();
    static volatile Phase phase = COLD;
    static long sink;
    private static final Map<String, String> seen = new LinkedHashMap<>();

    private Mark() {
    }

    static void here(String scene) {
        phase.at(scene);
    }

    /** Takes the stack that Java itself reports, from the method of Spots on. */
    private static void note(String scene, String phase) {
        StringBuilder text = new StringBuilder();
        boolean from = false;
        for (String[] frame : Stacks.take()) {
            from |= frame[0].equals("scenes.Spots");
            if (from) {
                for (String field : frame) {
                    text.append('\t').append(field == null ? "" : field);
                }
                text.append('\n');
            }
        }
        synchronized (seen) {
            String before = seen.put(scene + "\t" + phase, text.toString());
            if (before != null && !before.equals(text.toString())) {
                throw new IllegalStateException(scene + " has two stacks:\n" + before + text);
            }
        }
    }

    /** Writes "SCENE TAB PHASE" and, below, its frames, leaf first: class, method, descriptor (if
     * Java says it), file and line, each after a tab. */
    static void write(String path) throws IOException {
        synchronized (seen) {
            try (PrintWriter out = new PrintWriter(path, "UTF-8")) {
                seen.forEach((scene, stack) -> out.print(scene + "\n" + stack));
            }
        }
    }
}
