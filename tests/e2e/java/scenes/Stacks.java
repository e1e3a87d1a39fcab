// SPDX-License-Identifier: Apache-2.0
package scenes;

import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;

/** The stack of the calling thread as Java itself reports it. */
final class Stacks {
    private static final Supplier<List<String[]>> SOURCE = source();

    private Stacks() {
    }

    /** Frames, leaf first: class, method, descriptor or null, file or null, line. */
    static List<String[]> take() {
        return SOURCE.get();
    }

    @SuppressWarnings("unchecked")
    private static Supplier<List<String[]>> source() {
        try {
            return (Supplier<List<String[]>>) Class.forName("scenes.Stacks10")
                .getDeclaredConstructor().newInstance();
        } catch (ReflectiveOperationException | LinkageError e) {
            // Before Java 10. Hidden frames need -XX:+ShowHiddenFrames.
            return Stacks::thrown;
        }
    }

    private static List<String[]> thrown() {
        List<String[]> frames = new ArrayList<>();
        for (StackTraceElement f : new Throwable().getStackTrace()) {
            frames.add(new String[] {f.getClassName(), f.getMethodName(), null, f.getFileName(),
                Integer.toString(f.getLineNumber())});
        }
        return frames;
    }
}
