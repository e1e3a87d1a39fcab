// SPDX-License-Identifier: Apache-2.0

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URL;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/** A server of pages in Java's own HTTP server, and clients: Server SECONDS [virtual]. */
public final class Server {
    private static final Pattern WORD = Pattern.compile("(\\w+?)(\\d*)\\b");

    private Server() {
    }

    private static String page(String path) {
        List<Map<String, Object>> rows = new ArrayList<>();
        for (int i = 0; i < 300; i++) {
            Map<String, Object> row = new TreeMap<>();
            row.put("name", path + i);
            row.put("square", (long) i * i);
            row.put("text", Integer.toHexString(i * 7919));
            rows.add(row);
        }
        return rows.stream()
            .sorted((a, b) -> b.get("text").toString().compareTo(a.get("text").toString()))
            .map(row -> row.entrySet().stream().map(e -> e.getKey() + "=" + e.getValue())
                .collect(Collectors.joining(", ", "{", "}")))
            .collect(Collectors.joining("\n"));
    }

    private static void answer(HttpExchange exchange) throws IOException {
        StringBuffer out = new StringBuffer();
        Matcher m = WORD.matcher(page(exchange.getRequestURI().getPath()));
        while (m.find()) {
            m.appendReplacement(out, "$1-$2");
        }
        byte[] bytes = out.toString().getBytes(StandardCharsets.UTF_8);
        exchange.sendResponseHeaders(200, bytes.length);
        try (OutputStream body = exchange.getResponseBody()) {
            body.write(bytes);
        }
    }

    private static ExecutorService pool(boolean virtual) throws ReflectiveOperationException {
        return virtual
            ? (ExecutorService) Executors.class.getMethod("newVirtualThreadPerTaskExecutor")
                .invoke(null)
            : Executors.newFixedThreadPool(4);
    }

    public static void main(String[] args) throws Exception {
        boolean virtual = args.length > 1;
        long end = System.nanoTime() + (long) (Double.parseDouble(args[0]) * 1e9);
        HttpServer server = HttpServer.create(
            new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        ExecutorService workers = pool(virtual), clients = pool(virtual);
        List<Future<Integer>> counts = new ArrayList<>();

        server.createContext("/", Server::answer);
        server.setExecutor(workers);
        server.start();
        URL url = new URL("http", "127.0.0.1", server.getAddress().getPort(), "/page");
        Callable<Integer> client = () -> {
            int count = 0;
            for (; System.nanoTime() < end; count++) {
                try (BufferedReader in = new BufferedReader(
                        new InputStreamReader(url.openStream(), StandardCharsets.UTF_8))) {
                    if (in.lines().count() != 300) {
                        throw new IllegalStateException("a page lacks lines");
                    }
                }
            }
            return count;
        };
        for (int i = 0; i < (virtual ? 50 : 4); i++) {
            counts.add(clients.submit(client));
        }
        int all = 0;
        for (Future<Integer> count : counts) {
            all += count.get();
        }
        System.out.println(all);
        server.stop(0);
        workers.shutdown();
        clients.shutdown();
    }
}
