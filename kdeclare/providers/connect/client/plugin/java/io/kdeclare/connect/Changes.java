package io.kdeclare.connect;

import java.io.CharConversionException;
import java.io.IOException;
import java.io.InputStream;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeMap;

import com.fasterxml.jackson.core.JsonLocation;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;

/** A requested change: new values by key, null for a key to remove (RFC 7386). */
final class Changes {
    static final int MAX_BYTES = 64 * 1024;

    // A longer body is cut off. Up to this length it is read completely, so that the sender can read the response.
    private static final long MAX_DRAINED = 64L * 1024 * 1024;
    private static final ObjectMapper STRICT = new ObjectMapper()
            .enable(JsonParser.Feature.STRICT_DUPLICATE_DETECTION)
            .enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS);

    private final Map<String, String> byKey;

    private Changes(Map<String, String> byKey) {
        this.byKey = byKey;
    }

    /** Parse the body of a request. @throws Refusal if it is too long or not a flat map of strings */
    static Changes parse(InputStream body) throws IOException {
        byte[] text = body.readNBytes(MAX_BYTES + 1);
        if (text.length > MAX_BYTES) {
            drain(body);
            throw new Refusal("", "The body is longer than " + MAX_BYTES + " bytes.");
        }
        JsonNode tree;
        try {
            tree = STRICT.readTree(text);
        } catch (JsonProcessingException e) {
            throw new Refusal("", "The body cannot be read: " + notJson(e) + ".");
        } catch (CharConversionException e) {
            throw new Refusal("", "The body cannot be read: it is not UTF-8.");
        }
        if (tree == null || !tree.isObject()) {
            throw new Refusal("", "The body must be a JSON object of keys and values.");
        }
        Map<String, String> byKey = new LinkedHashMap<>();
        for (Map.Entry<String, JsonNode> entry : tree.properties()) {
            JsonNode value = entry.getValue();
            if (!value.isTextual() && !value.isNull()) {
                throw new Refusal(entry.getKey(), "The value must be a string, or null to remove the key.");
            }
            byKey.put(entry.getKey(), value.isNull() ? null : value.textValue());
        }
        return new Changes(byKey);
    }

    static Changes removal(String key) {
        Map<String, String> byKey = new LinkedHashMap<>();
        byKey.put(key, null);
        return new Changes(byKey);
    }

    static Changes none() {
        return new Changes(Map.of());
    }

    /** Whether the change only removes overrides. */
    boolean onlyTakeAway() {
        return byKey.values().stream().allMatch(Objects::isNull);
    }

    /** The form in which the request is forwarded to another worker. */
    Map<String, String> byKey() {
        return byKey;
    }

    /** The overrides after the change. */
    Map<String, String> over(Map<String, String> current) {
        Map<String, String> merged = new TreeMap<>(current);
        byKey.forEach((key, value) -> {
            if (value == null) {
                merged.remove(key);
            } else {
                merged.put(key, value);
            }
        });
        return merged;
    }

    /**
     * Refuse keys that may not be overridden. Existing overrides from before the whitelist was shortened can
     * still be removed.
     */
    void check(Set<String> whitelist, Map<String, String> current) {
        for (Map.Entry<String, String> change : byKey.entrySet()) {
            String key = change.getKey();
            boolean removes = change.getValue() == null && current.containsKey(key);
            if (!whitelist.contains(key) && !removes) {
                throw new Refusal(key, "This key cannot be overridden while the worker runs. Keys that can be: "
                        + String.join(", ", whitelist) + ".");
            }
        }
    }

    /** Where JSON is invalid. Does not repeat Jackson's message, which quotes the text, including passwords. */
    static String notJson(JsonProcessingException e) {
        JsonLocation place = e.getLocation();
        String where = place == null ? "" : " at line " + place.getLineNr() + ", column " + place.getColumnNr();
        boolean twice = e.getOriginalMessage() != null && e.getOriginalMessage().startsWith("Duplicate field");
        return (twice ? "it has a duplicate key" : "it is not valid JSON") + where;
    }

    private static void drain(InputStream body) throws IOException {
        byte[] buffer = new byte[MAX_BYTES];
        long drained = 0;
        int read = body.read(buffer);
        while (read >= 0 && drained < MAX_DRAINED) {
            drained += read;
            read = body.read(buffer);
        }
    }
}
