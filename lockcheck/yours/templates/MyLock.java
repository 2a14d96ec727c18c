import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.util.HashMap;
import java.util.Map;
import java.util.UUID;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

import static java.nio.charset.StandardCharsets.UTF_8;

/**
 * The client of a lock, for lockcheck: lockcheck validate --client 'java MyLock'
 *
 * <p>It reads requests from its input and prints answers, one JSON object a line: docs/protocol.md.
 * As it stands, the lock is a key in Redis with a lease, set if it is not there, and removed by its
 * owner alone. Put your own in the three places. (With a library for JSON, use that.)
 */
class MyLock {
    static final int NOT_SUPPORTED = 10, UNAVAILABLE = 11, UNKNOWN = 13, NOT_OWNER = 20, HELD = 22;
    static final String REMOVE =
        "return redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('DEL', KEYS[1]) or 0";

    /** Its code tells whether it certainly did not happen. */
    static class Failure extends Exception {
        final int code;

        Failure(int code, String text) {
            super(text);
            this.code = code;
        }
    }

    private final String host;
    private final int port;
    private final String ttlMs;
    private final Map<Integer, String> owners = new HashMap<>(); // by the numbers of their acquires

    MyLock(String[] servers, String ttlMs) {
        // 1. Connect: the servers are host:port.
        String[] first = servers[0].split(":");
        this.host = first[0];
        this.port = Integer.parseInt(first[1]);
        this.ttlMs = ttlMs;
    }

    /** Its fencing token; null: it has none. */
    Long acquire(String key, int number) throws Failure, IOException {
        // 2. Granted, or a Failure: it is held. Any other exception means that it may have happened.
        String owner = UUID.randomUUID().toString();
        if (!redis("SET", "lock:" + key, owner, "NX", "PX", ttlMs).equals("+OK"))
            throw new Failure(HELD, "held");
        owners.put(number, owner);
        return null;
    }

    void release(String key, int acquire) throws Failure, IOException {
        // 3. Released, or a Failure: it was not ours any more.
        String owner = owners.remove(acquire);
        if (!redis("EVAL", REMOVE, "1", "lock:" + key, owner).equals(":1"))
            throw new Failure(NOT_OWNER, "not ours any more");
    }

    void leave(int acquire) {
        owners.remove(acquire); // it will not be released: nothing keeps it alive
    }

    /** A request in Redis' protocol, and the first line of its answer. */
    private String redis(String... words) throws Failure, IOException {
        var asked = new StringBuilder("*" + words.length + "\r\n");
        for (String word : words)
            asked.append("$" + word.getBytes(UTF_8).length + "\r\n" + word + "\r\n");
        try (var socket = new Socket()) {
            try {
                socket.connect(new InetSocketAddress(host, port), 1000);
            } catch (IOException error) {
                throw new Failure(UNAVAILABLE, error.toString());
            }
            socket.setSoTimeout(1000);
            socket.getOutputStream().write(asked.toString().getBytes(UTF_8));
            var input = new BufferedReader(new InputStreamReader(socket.getInputStream(), UTF_8));
            String line = input.readLine();
            if (line == null) throw new IOException("the connection was closed");
            if (line.startsWith("-")) throw new IOException(line);
            return line;
        }
    }

    // --- the protocol

    private static MyLock lock;

    /** A number or a string of a request; null: it has none of this name. */
    static String field(String request, String name) {
        Matcher found = Pattern.compile("\"" + name + "\": ?\"?([^\",}]*)").matcher(request);
        return found.find() ? found.group(1) : null;
    }

    static int number(String request, String name) {
        return Integer.parseInt(field(request, name));
    }

    static String[] servers(String request) {
        Matcher found = Pattern.compile("\"servers\": ?\\[([^\\]]*)\\]").matcher(request);
        return found.find() ? found.group(1).replaceAll("[\" ]", "").split(",") : new String[0];
    }

    static String quoted(String text) {
        return '"' + text.replaceAll("[\"\\\\\\p{Cntrl}]", " ") + '"';
    }

    static String answer(String asked) throws Failure, IOException {
        switch (field(asked, "type")) {
            case "init":
                lock = new MyLock(servers(asked), field(asked, "ttl_ms"));
                return "\"type\": \"init_ok\"";
            case "acquire":
                Long token = lock.acquire(field(asked, "key"), number(asked, "msg_id"));
                return "\"type\": \"acquire_ok\"" + (token == null ? "" : ", \"token\": " + token);
            case "release":
                lock.release(field(asked, "key"), number(asked, "acquire"));
                return "\"type\": \"release_ok\"";
            case "leave":
                lock.leave(number(asked, "acquire"));
                return null;
            default:
                throw new Failure(NOT_SUPPORTED, "unknown request");
        }
    }

    static String error(int code, String text) {
        return "\"type\": \"error\", \"code\": " + code + ", \"text\": " + quoted(text);
    }

    public static void main(String[] args) throws IOException {
        var input = new BufferedReader(new InputStreamReader(System.in, UTF_8));
        for (String asked; (asked = input.readLine()) != null; ) {
            String body;
            try {
                body = answer(asked);
            } catch (Failure failure) {
                body = error(failure.code, failure.getMessage());
            } catch (Exception exception) {
                body = error(UNKNOWN, exception.toString());
            }
            String id = field(asked, "msg_id"); // null: it needs no answer
            if (id != null) System.out.println(
                "{\"src\": \"client\", \"dest\": \"lockcheck\", \"body\": {\"in_reply_to\": "
                    + id + ", " + body + "}}");
        }
    }
}
