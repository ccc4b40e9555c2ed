package io.kdeclare.connect;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * The parts of the worker that apply overrides, and the overrides that they have applied. Each one receives the
 * worker's whole configuration including the overrides, with placeholders resolved.
 */
final class Components {
    private final Map<String, String> worker;
    private final Set<String> whitelist;
    private final Placeholders placeholders;
    private final List<Component> registered = new ArrayList<>();
    private Candidate inForce;
    /** Overrides that are being written, as validated. */
    private Candidate prepared;


    Components(Settings settings, Placeholders placeholders) {
        this.worker = settings.worker();
        this.whitelist = settings.whitelist();
        this.placeholders = placeholders;
        this.inForce = new Candidate(TlsKeys.merged(worker, Map.of()), Map.of());
    }

    synchronized void add(Component component) {
        registered.add(component);
    }

    synchronized boolean isEmpty() {
        return registered.isEmpty();
    }

    /** Have all components validate the overrides, without changes. @throws RuntimeException the first objection */
    synchronized void validate(Map<String, String> raw) {
        validated(raw);
    }

    /**
     * Have all components validate overrides that this worker is about to write. When it reads them back, they
     * apply exactly what they validated; until {@link #forget}.
     */
    synchronized void prepare(Map<String, String> raw) {
        prepared = validated(raw);
    }

    synchronized void forget() {
        prepared = null;
    }

    /** Have all components apply the overrides, or none. @throws RuntimeException the first objection */
    synchronized void apply(Map<String, String> raw) {
        boolean known = prepared != null && prepared.raw().equals(raw);
        Candidate candidate = known ? prepared : validated(raw);
        List<Component> done = new ArrayList<>();
        try {
            for (Component component : registered) {
                component.apply(candidate);
                done.add(component);
            }
        } catch (RuntimeException e) {
            done.forEach(component -> component.apply(inForce));
            throw e;
        }
        inForce = candidate;
    }

    private Candidate validated(Map<String, String> raw) {
        for (String key : raw.keySet()) {
            if (!whitelist.contains(key)) {
                throw new Refusal(key, "This key is not on the worker's whitelist.");
            }
        }
        Map<String, String> merged = TlsKeys.merged(worker, placeholders.resolve(new LinkedHashMap<>(raw)));
        Candidate candidate = new Candidate(merged, Map.copyOf(raw));
        registered.forEach(component -> component.validate(candidate));
        return candidate;
    }
}
