// SPDX-License-Identifier: Apache-2.0
package scenes;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.RecursiveTask;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;

/** Stacks of other threads. */
final class Threads {
    private static final class Sum extends RecursiveTask<Integer> {
        private static final long serialVersionUID = 1;
        final int n;

        Sum(int n) {
            this.n = n;
        }

        @Override
        protected Integer compute() {
            if (n == 0) {
                Spots.fork_join();
                return 0;
            }
            return new Sum(n - 1).invoke() + 1;
        }
    }

    private static final Object MONITOR = new Object();

    private Threads() {
    }

    private static void waits() throws InterruptedException {
        AtomicBoolean told = new AtomicBoolean();
        Thread other = new Thread(() -> {
            synchronized (MONITOR) {
                told.set(true);
                MONITOR.notifyAll();
            }
        });
        synchronized (MONITOR) {
            other.start();
            while (!told.get()) {
                MONITOR.wait();
            }
            Spots.after_wait();
        }
        other.join();
    }

    private static void parks() {
        LockSupport.parkNanos(1000);
        Spots.after_park();
    }

    /** Keeps a collector busy beside the scene. */
    private static void underLoad() throws InterruptedException {
        AtomicBoolean stop = new AtomicBoolean();
        Thread other = new Thread(() -> {
            Object[] kept = new Object[1000];
            for (int i = 0; !stop.get(); i++) {
                kept[i % kept.length] = new byte[5000];
            }
        });
        other.start();
        Spots.allocation_beside();
        stop.set(true);
        other.join();
    }

    static void run() throws Throwable {
        ExecutorService pool = Executors.newSingleThreadExecutor();
        ForkJoinPool forks = new ForkJoinPool(1);
        ReentrantLock lock = new ReentrantLock();

        Main.scene("thread", 200, () -> {
            Thread t = new Thread(Spots::thread, "a thread of its own");
            t.start();
            t.join();
        });
        Main.scene("executor", 2000, () -> pool.submit(Spots::executor).get());
        Main.scene("fork_join", 1000, () -> forks.submit(new Sum(5)).get());
        Main.scene("future", 2000, () -> CompletableFuture.supplyAsync(() -> 1, pool)
            .thenApplyAsync(x -> {
                Spots.future();
                return x;
            }, pool).get());
        Main.scene("lock", 20000, () -> {
            lock.lock();
            try {
                Spots.lock();
            } finally {
                lock.unlock();
            }
        });
        Main.scene("after_wait", 100, Threads::waits);
        Main.scene("after_park", 500, Threads::parks);
        Main.scene("thread_local", 5000, () -> {
            ThreadLocal<Integer> local = ThreadLocal.withInitial(() -> {
                Spots.thread_local();
                return 1;
            });
            Mark.sink += local.get();
            local.remove();
        });
        Main.scene("allocation_beside", 3, Threads::underLoad);
        pool.shutdown();
        forks.shutdown();
    }
}
