package io.kdeclare.connect;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.TreeMap;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;

/** The record that holds all overrides (KIP-1185: key {@code worker-config}, schema version 0). */
final class Envelope {
    static final String KEY = "worker-config";

    private static final byte[] KEY_BYTES = KEY.getBytes(StandardCharsets.UTF_8);
    private static final int VERSION = 0;
    private static final ObjectMapper JSON = new ObjectMapper();

    private Envelope() { }

    static byte[] key() {
        return KEY_BYTES.clone();
    }

    /** The value of the record; null, a tombstone, if there are no overrides. */
    static byte[] write(Map<String, String> raw) {
        if (raw.isEmpty()) {
            return null;
        }
        Map<String, Object> value = new LinkedHashMap<>();
        value.put("version", VERSION);
        value.put("properties", new TreeMap<>(raw));
        try {
            return JSON.writeValueAsBytes(value);
        } catch (JsonProcessingException e) {
            throw new IllegalStateException("strings can always be written as JSON", e);
        }
    }

    /**
     * The overrides in a record's value. A later version is read like this one if it has the same map, as
     * Connect reads later versions of target states.
     *
     * @throws IOException if there is no such map
     */
    static Map<String, String> read(byte[] value) throws IOException {
        if (value == null) {
            return Map.of();
        }
        return strings(tree(value).path("properties"));
    }

    /** Whether a record's value has a map of overrides. */
    static boolean isReadable(byte[] value) {
        try {
            read(value);
            return true;
        } catch (IOException e) {
            return false;
        }
    }

    /** A flat JSON object of strings. */
    static Map<String, String> strings(JsonNode node) throws IOException {
        if (!node.isObject()) {
            throw new IOException("it has no map of overrides");
        }
        Map<String, String> raw = new TreeMap<>();
        for (Map.Entry<String, JsonNode> entry : node.properties()) {
            if (!entry.getValue().isTextual()) {
                throw new IOException("the value of " + entry.getKey() + " is not a string");
            }
            raw.put(entry.getKey(), entry.getValue().textValue());
        }
        return raw;
    }

    /** Parse JSON. The message of an exception gives only the position, because the text may hold passwords. */
    static JsonNode tree(byte[] text) throws IOException {
        try {
            return JSON.readTree(text);
        } catch (JsonProcessingException e) {
            throw new IOException(Changes.notJson(e));
        }
    }
}
