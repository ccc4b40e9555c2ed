package io.kdeclare.connect;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

import org.apache.kafka.common.Reconfigurable;

/**
 * The parts of the worker that take overrides, and what they have taken. Each is shown the worker's whole
 * configuration, placeholders resolved, with the overrides laid over it.
 */
final class Components {
    private final Map<String, String> worker;
    private final Set<String> whitelist;
    private final Placeholders placeholders;
    private final List<Reconfigurable> registered = new ArrayList<>();
    private Map<String, String> inForce;
    private Prepared prepared;

    /** Overrides that are being written, and the configuration that they were validated as. */
    private record Prepared(Map<String, String> raw, Map<String, String> merged) { }

    Components(Settings settings, Placeholders placeholders) {
        this.worker = settings.worker();
        this.whitelist = settings.whitelist();
        this.placeholders = placeholders;
        this.inForce = TlsKeys.merged(worker, Map.of());
    }

    synchronized void add(Reconfigurable component) {
        registered.add(component);
    }

    synchronized boolean isEmpty() {
        return registered.isEmpty();
    }

    /** Have all of them look at the overrides; change nothing. @throws RuntimeException the first objection */
    synchronized void validate(Map<String, String> raw) {
        validated(raw);
    }

    /**
     * Have all of them look at overrides that this worker is about to write. When it reads them back, they
     * take what they have looked at; until {@link #forget}.
     */
    synchronized void prepare(Map<String, String> raw) {
        prepared = new Prepared(raw, validated(raw));
    }

    synchronized void forget() {
        prepared = null;
    }

    /** Have all of them take the overrides, or none. @throws RuntimeException the first objection */
    synchronized void apply(Map<String, String> raw) {
        boolean known = prepared != null && prepared.raw().equals(raw);
        Map<String, String> merged = known ? prepared.merged() : validated(raw);
        List<Reconfigurable> done = new ArrayList<>();
        try {
            for (Reconfigurable component : registered) {
                component.reconfigure(merged);
                done.add(component);
            }
        } catch (RuntimeException e) {
            done.forEach(component -> component.reconfigure(inForce));
            throw e;
        }
        inForce = merged;
    }

    private Map<String, String> validated(Map<String, String> raw) {
        for (String key : raw.keySet()) {
            if (!whitelist.contains(key)) {
                throw new Refusal(key, "This worker's whitelist does not hold this key.");
            }
        }
        Map<String, String> merged = TlsKeys.merged(worker, placeholders.resolve(new LinkedHashMap<>(raw)));
        registered.forEach(component -> component.validateReconfiguration(merged));
        return merged;
    }
}
