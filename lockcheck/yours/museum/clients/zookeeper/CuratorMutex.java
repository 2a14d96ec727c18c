import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.RetryOneTime;

/** Curator's InterProcessMutex; as "Heard", with the listener that its documentation recommends. */
class Client {
    static final int NOT_SUPPORTED = 10, UNKNOWN = 13, NOT_OWNER = 20, HELD = 22;
    static final ObjectMapper JSON = new ObjectMapper();
    static final PrintStream OUT = System.out;

    private final Map<Integer, InterProcessMutex> held = new ConcurrentHashMap<>(); // by acquire
    private CuratorFramework curator;

    static synchronized void say(ObjectNode body) {
        OUT.println(JSON.createObjectNode().put("src", "client").put("dest", "lockcheck").set("body", body));
        OUT.flush();
    }

    static ObjectNode body(String type) {
        return JSON.createObjectNode().put("type", type);
    }

    static ObjectNode failed(int code, String text) {
        return body("error").put("code", code).put("text", text);
    }

    ObjectNode begin(JsonNode asked, boolean heard) throws Exception {
        List<String> servers = new ArrayList<>();
        asked.get("servers").forEach(server -> servers.add(server.asText()));
        curator = CuratorFrameworkFactory.newClient(
            String.join(",", servers), asked.get("ttl_ms").asInt(), 2000, new RetryOneTime(100));
        if (heard) curator.getConnectionStateListenable().addListener((c, state) -> lost(state));
        curator.start();
        if (!curator.blockUntilConnected(20, TimeUnit.SECONDS)) return failed(11, "not connected");
        return body("init_ok");
    }

    private void lost(ConnectionState state) {
        if (state == ConnectionState.SUSPENDED || state == ConnectionState.LOST)
            for (int acquire : held.keySet())
                say(body("lost").put("acquire", acquire).put("text", state.name()));
    }

    ObjectNode acquire(JsonNode asked) throws Exception {
        // A mutex of its own for each hold: one that is held by this thread lets it in again.
        var mutex = new InterProcessMutex(curator, "/locks/" + asked.get("key").asText());
        if (!mutex.acquire(asked.get("wait_ms").asLong(), TimeUnit.MILLISECONDS))
            return failed(HELD, "waited in vain");
        held.put(asked.get("msg_id").asInt(), mutex);
        return body("acquire_ok");
    }

    ObjectNode release(JsonNode asked) throws Exception {
        InterProcessMutex mutex = held.remove(asked.get("acquire").asInt());
        if (mutex == null) return failed(NOT_OWNER, "it was not acquired");
        mutex.release();
        return body("release_ok");
    }

    ObjectNode answer(JsonNode asked, boolean heard) {
        try {
            switch (asked.get("type").asText()) {
                case "init":
                    return begin(asked, heard);
                case "acquire":
                    return acquire(asked);
                case "release":
                case "leave":
                    return release(asked);
                default:
                    return failed(NOT_SUPPORTED, "unknown request");
            }
        } catch (Exception error) {
            return failed(UNKNOWN, error.toString());
        }
    }

    public static void main(String[] args) throws Exception {
        System.setOut(System.err); // what a library prints is no message
        var client = new Client();
        var input = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = input.readLine()) != null; ) {
            JsonNode asked = JSON.readTree(line).get("body");
            ObjectNode answer = client.answer(asked, args[0].equals("Heard"));
            if (asked.has("msg_id")) say(answer.put("in_reply_to", asked.get("msg_id").asInt()));
        }
        System.exit(0); // whatever threads the library has left
    }
}
