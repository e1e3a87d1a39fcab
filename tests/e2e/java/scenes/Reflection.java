// SPDX-License-Identifier: Apache-2.0
package scenes;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.io.Serializable;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;

/** Calls through reflection, method handles, generated classes, and the virtual machine itself. */
final class Reflection {
    private static final class Kept implements Serializable {
        private static final long serialVersionUID = 1;

        private void readObject(ObjectInputStream in) throws IOException, ClassNotFoundException {
            in.defaultReadObject();
            Spots.serialization();
        }
    }

    private static final class Initialized {
        static {
            Spots.static_initializer();
        }

        static int x = 1;
    }

    private static final class ByName {
        static {
            Spots.class_for_name();
        }
    }

    /** A class loader that the virtual machine calls when it resolves a class. */
    private static final class Loader extends ClassLoader {
        Loader() {
            super(null);
        }

        @Override
        protected Class<?> findClass(String name) throws ClassNotFoundException {
            Spots.class_loader();
            throw new ClassNotFoundException(name);
        }
    }

    private Reflection() {
    }

    static void invoked(int x, String s) {
        Spots.reflection();
    }

    static void handled(int x, String s) {
        Spots.method_handle();
    }

    static void adapted(Object x, Object s) {
        Spots.adapted_handle();
    }

    static void run() throws Throwable {
        Method m = Reflection.class.getDeclaredMethod("invoked", int.class, String.class);
        MethodHandles.Lookup lookup = MethodHandles.lookup();
        MethodHandle exact = lookup.findStatic(Reflection.class, "handled",
            MethodType.methodType(void.class, int.class, String.class));
        MethodHandle adapted = MethodHandles.insertArguments(lookup.findStatic(Reflection.class,
            "adapted", MethodType.methodType(void.class, Object.class, Object.class)), 1, "s");
        Runnable proxy = (Runnable) Proxy.newProxyInstance(Reflection.class.getClassLoader(),
            new Class<?>[] {Runnable.class}, (self, method, arguments) -> {
                Spots.proxy();
                return null;
            });
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();

        try (ObjectOutputStream out = new ObjectOutputStream(bytes)) {
            out.writeObject(new Kept());
        }
        Main.scene("reflection", 5000, () -> m.invoke(null, 1, "s"));
        Main.scene("method_handle", 20000, () -> {
            exact.invokeExact(1, "s");
        });
        Main.scene("adapted_handle", 20000, () -> adapted.invoke("x"));
        Main.scene("proxy", 20000, proxy::run);
        Main.scene("static_initializer", 0, () -> Mark.sink += Initialized.x);
        Main.scene("class_for_name", 0, () -> Class.forName("scenes.Reflection$ByName"));
        Main.scene("class_loader", 500, () -> {
            try {
                Class.forName("no.such.Class", true, new Loader());
            } catch (ClassNotFoundException e) {
                Mark.sink++;
            }
        });
        Main.scene("serialization", 2000, () -> {
            try (ObjectInputStream in = new ObjectInputStream(
                    new ByteArrayInputStream(bytes.toByteArray()))) {
                in.readObject();
            }
        });
    }
}
