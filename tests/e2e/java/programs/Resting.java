// SPDX-License-Identifier: Apache-2.0
import java.net.ServerSocket;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.locks.ReentrantLock;

/** Threads that wait in many ways, some of them below compiled code. Prints a line once they do. */
class Resting {
	private static final Object MONITOR = new Object();

	interface Action {
		void run() throws Exception;
	}

	private static int descend(int n, Action last) throws Exception {
		if (n == 0) {
			last.run();
			return 0;
		}
		return descend(n - 1, last) + 1;
	}

	private static void waitForMonitor() throws InterruptedException {
		synchronized (MONITOR) {
			MONITOR.wait();
		}
	}

	private static void rest(String name, int depth, Action action) {
		Thread thread = new Thread(() -> {
			try {
				descend(depth, action);
			} catch (Exception e) {
				throw new IllegalStateException(e);
			}
		}, name);

		thread.setDaemon(true);
		thread.start();
	}

	public static void main(String[] arguments) throws Exception {
		ExecutorService pool = Executors.newFixedThreadPool(2);
		ReentrantLock lock = new ReentrantLock();
		long sum = 0;

		rest("interpreted", 3, Resting::waitForMonitor);
		Thread.sleep(200);
		for (int i = 0; i < 30000; i++)
			sum += descend(20, () -> { });
		pool.submit(() -> 1).get();
		pool.submit(() -> 2).get();
		lock.lock();
		rest("compiled", 200, Resting::waitForMonitor);
		rest("asleep", 5, () -> Thread.sleep(1000000));
		rest("locked out", 5, lock::lock);
		rest("reads", 5, () -> System.in.read());
		rest("accepts", 5, () -> new ServerSocket(0).accept());
		rest("takes", 5, () -> new LinkedBlockingQueue<Integer>().take());
		Thread.sleep(500);
		System.out.println("resting " + sum);
		waitForMonitor();
	}
}
