// SPDX-License-Identifier: Apache-2.0
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;

/** Code that lowers RSP further than its frame: C2's code for whole methods, stubs, slow paths. */
public class Lowered {
    static class Node {
        Node next;
        Object value;
    }

    static final Node[] NODES = new Node[1 << 16];
    static volatile long sink;
    static volatile double real;
    static String one, other, wide;
    static float[] floats = new float[500];

    static void compare() {
        int sum = 0;
        for (int i = 0; i < 500; i++)
            sum += one.compareTo(other);
        sink += sum;
    }

    static void index() {
        int sum = 0;
        for (int i = 0; i < 500; i++)
            sum += one.indexOf("efghx") + wide.indexOf("x");
        sink += sum;
    }

    static void merge() {
        Map<String, Integer> map = new TreeMap<>();
        for (int i = 0; i < 500; i++)
            map.merge("k" + i % 77, 1, Integer::sum);
        sink += map.size();
    }

    static void convert() {
        long sum = 0;
        for (int i = 0; i < 500; i++)
            sum += (long) floats[i] + (long) (floats[i] % 1.37f);
        sink += sum;
    }

    static void sine() {
        double sum = 0;
        for (int i = 0; i < 500; i++)
            sum += Math.sin(i * 1.7) + Math.pow(i * 1.7, 1.3);
        real = sum;
    }

    static void store(int i) {
        Node node = new Node();
        Node old = NODES[i & 0xffff];
        node.value = new Object();
        node.next = NODES[(i * 31) & 0xffff];
        if (old != null) {
            old.next = node;
            node.next = old.next == null ? null : old.next.next;
        }
        NODES[i & 0xffff] = (i & 7) == 0 ? null : node;
    }

    static void stores() {
        for (int i = 0; i < 20000; i++)
            store(i * 7919 + (int) sink);
        sink++;
    }

    static void puts(Map<Integer, Object> map) {
        for (int i = 0; i < 2000; i++)
            map.put((i * 31 + (int) sink) % 30000, new Object());
    }

    static void run(String name, long ms, Runnable work) throws Exception {
        Thread thread = new Thread(() -> {
            long end = System.currentTimeMillis() + ms;
            while (System.currentTimeMillis() < end)
                work.run();
        }, name);
        thread.start();
        thread.join();
    }

    public static void main(String[] args) throws Exception {
        long ms = Long.parseLong(args[0]);
        StringBuilder text = new StringBuilder(), letters = new StringBuilder();
        for (int i = 0; i < 30; i++) {
            text.append("abcdefgh");
            letters.append("\u0430\u0431\u0432\u0433\u0434\u0435\u0436\u0437");
        }
        one = text + "x";
        other = text + "y";
        wide = letters + "x";
        for (int i = 0; i < floats.length; i++)
            floats[i] = i % 7 == 0 ? Float.NaN : i * 1e15f;
        if (args.length > 1) {
            Map<Integer, Object> map = new ConcurrentHashMap<>();
            run("barriers", ms, () -> {
                stores();
                puts(map);
            });
            return;
        }
        run("compare", ms, Lowered::compare);
        run("index", ms, Lowered::index);
        run("merge", ms, Lowered::merge);
        run("convert", ms, Lowered::convert);
        run("sine", ms, Lowered::sine);
    }
}
