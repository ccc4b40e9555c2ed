package io.kdeclare.connect;

import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.time.Instant;
import java.util.HexFormat;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** This worker's progress with the overrides: the versions it has seen, applied and refused. */
final class Overrides implements Store.Listener {

    /** A version that is in effect. {@code sha256}: of the raw map as canonical JSON. */
    record Applied(long offset, Instant at, String sha256, Set<String> keys) { }

    /** A version that was refused; {@code offset} is null for an error of the store itself. */
    record Failure(Long offset, Instant at, String message) { }

    private static final Logger LOG = LoggerFactory.getLogger(Overrides.class);
    private static final ObjectMapper JSON = new ObjectMapper();

    private final Components components;
    private Map<String, String> raw;
    private Long read;
    private Long seen;
    private Applied applied;
    private Failure refused;
    private Failure trouble;

    Overrides(Components components) {
        this.components = components;
    }

    /** Add a component; it applies existing overrides immediately. */
    synchronized void register(Component component) {
        components.add(component);
        if (read != null) {
            Failure before = refused;
            take(read);
            if (before != null && before.offset() > read) {
                // A later version that could not be read remains reported until one can be read.
                refused = before;
            }
        }
    }

    @Override
    public synchronized void updated(long offset, Map<String, String> overrides) {
        seen = offset;
        read = offset;
        raw = new TreeMap<>(overrides);
        if (!components.isEmpty()) {
            take(offset);
        }
    }

    @Override
    public synchronized void unreadable(long offset, String reason) {
        seen = offset;
        refuse(offset, "The stored overrides cannot be read: " + reason);
    }

    @Override
    public synchronized void trouble(String reason) {
        if (reason.isEmpty()) {
            trouble = null;
        } else if (trouble == null || !trouble.message().equals(reason)) {
            LOG.warn("Dynamic worker configuration: {}", reason);
            trouble = new Failure(null, Instant.now(), reason);
        }
    }

    /**
     * The overrides of the cluster, whether or not this worker could apply them.
     *
     * @throws StoreException if there are overrides but this worker could not read any version
     */
    synchronized Map<String, String> raw() {
        if (raw == null && seen != null) {
            throw new StoreException("The overrides are not known. " + refused.message());
        }
        return last();
    }

    /** The last overrides that this worker could read; empty if there were none. */
    synchronized Map<String, String> last() {
        return raw == null ? Map.of() : raw;
    }

    synchronized Long seen() {
        return seen;
    }

    synchronized Applied applied() {
        return applied;
    }

    /** The version that this worker refused, unless it has applied a later one; otherwise, an error of the store. */
    synchronized Failure failure() {
        return refused != null ? refused : trouble;
    }

    /** The SHA-256, in hex, of a map as JSON with sorted keys and no white space. */
    static String sha256(Map<String, String> map) {
        try {
            byte[] canonical = JSON.writeValueAsString(new TreeMap<>(map)).getBytes(StandardCharsets.UTF_8);
            return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(canonical));
        } catch (JsonProcessingException | NoSuchAlgorithmException e) {
            throw new IllegalStateException("every Java runtime supports SHA-256 and JSON", e);
        }
    }

    private void take(long offset) {
        try {
            components.apply(raw);
        } catch (RuntimeException e) {
            refuse(offset, Messages.of(e));
            return;
        }
        applied = new Applied(offset, Instant.now(), sha256(raw), new TreeSet<>(raw.keySet()));
        refused = null;
        LOG.info("Applied dynamic worker configuration of offset {}: {}", offset, applied.keys());
    }

    private void refuse(long offset, String message) {
        refused = new Failure(offset, Instant.now(), message);
        LOG.error("Dynamic worker configuration of offset {} was refused; the current one stays in effect: {}", offset,
                message);
    }
}
