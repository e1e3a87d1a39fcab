// SPDX-License-Identifier: Apache-2.0
package scenes;

import java.util.EnumSet;
import java.util.List;
import java.util.function.Supplier;
import java.util.stream.Collectors;

/** Stacks with descriptors and hidden frames, from Java 10 on. */
final class Stacks10 implements Supplier<List<String[]>> {
    private static final StackWalker WALKER =
        StackWalker.getInstance(EnumSet.of(
        StackWalker.Option.SHOW_HIDDEN_FRAMES, StackWalker.Option.RETAIN_CLASS_REFERENCE));

    Stacks10() {
    }

    @Override
    public List<String[]> get() {
        return WALKER.walk(frames -> frames.map(f -> new String[] {f.getClassName(),
            f.getMethodName(), f.getDescriptor(), f.getFileName(),
            Integer.toString(f.getLineNumber())}).collect(Collectors.toList()));
    }
}
