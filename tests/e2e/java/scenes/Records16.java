// SPDX-License-Identifier: Apache-2.0
package scenes;

/** What Java 16 brought. */
final class Records16 implements Main.Scene {
    private record Pair(Named first, int second) {
        Pair {
            Spots.record_constructor();
        }
    }

    private record Named(String name) {
        @Override
        public int hashCode() {
            Spots.record_hash();
            return 3;
        }
    }

    Records16() {
    }

    @Override
    public void run() throws Throwable {
        Pair pair = new Pair(new Named("a"), 1);

        Main.scene("record_constructor", 20000, () -> new Pair(null, 2));
        Main.scene("record_hash", 20000, () -> Mark.sink += pair.hashCode() & 1);
    }
}
