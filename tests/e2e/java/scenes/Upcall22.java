// SPDX-License-Identifier: Apache-2.0
package scenes;

import java.lang.foreign.AddressLayout;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;

/** The C library's qsort, called without JNI, which calls Java again. */
final class Upcall22 implements Main.Scene {
    private static final AddressLayout NUMBER =
        ValueLayout.ADDRESS.withTargetLayout(ValueLayout.JAVA_INT);
    private static boolean done;

    Upcall22() {
    }

    static int compare(MemorySegment a, MemorySegment b) {
        if (!done) {
            done = true;
            Spots.upcall();
        }
        return a.get(ValueLayout.JAVA_INT, 0) - b.get(ValueLayout.JAVA_INT, 0);
    }

    private static void sort(MethodHandle qsort, MemorySegment numbers, MemorySegment by)
            throws Throwable {
        done = false;
        qsort.invokeExact(numbers, 3L, 4L, by);
    }

    @Override
    public void run() throws Throwable {
        Linker linker = Linker.nativeLinker();
        MethodHandle qsort = linker.downcallHandle(linker.defaultLookup().find("qsort").get(),
            FunctionDescriptor.ofVoid(ValueLayout.ADDRESS, ValueLayout.JAVA_LONG,
                ValueLayout.JAVA_LONG, ValueLayout.ADDRESS));
        MethodHandle compare = MethodHandles.lookup().findStatic(Upcall22.class, "compare",
            MethodType.methodType(int.class, MemorySegment.class, MemorySegment.class));

        try (Arena arena = Arena.ofConfined()) {
            MemorySegment by = linker.upcallStub(compare,
                FunctionDescriptor.of(ValueLayout.JAVA_INT, NUMBER, NUMBER), arena);
            MemorySegment numbers = arena.allocateFrom(ValueLayout.JAVA_INT, 3, 1, 2);
            Main.scene("upcall", 5000, () -> sort(qsort, numbers, by));
        }
    }
}
