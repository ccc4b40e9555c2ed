package io.kdeclare.connect;

import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

import org.apache.kafka.common.config.ConfigTransformer;
import org.apache.kafka.common.config.provider.ConfigProvider;
import org.apache.kafka.common.utils.Utils;

/**
 * Resolves <code>${provider:path:key}</code> with the worker's own config providers.
 *
 * <p>Connect removes {@code config.providers} from what an extension is given, so their names are taken from
 * {@code config.providers.NAME.class}.
 */
final class Placeholders implements AutoCloseable {
    private static final Pattern CLASS = Pattern.compile("config\\.providers\\.([^.]+)\\.class");

    private final Map<String, ConfigProvider> providers;
    private final ConfigTransformer transformer;

    private Placeholders(Map<String, ConfigProvider> providers) {
        this.providers = providers;
        this.transformer = new ConfigTransformer(providers);
    }

    /** {@code loader}: one that knows the plug-ins, since providers can be such. */
    static Placeholders of(Map<String, String> worker, ClassLoader loader) {
        Map<String, ConfigProvider> providers = new HashMap<>();
        worker.forEach((key, name) -> {
            Matcher matcher = CLASS.matcher(key);
            if (matcher.matches()) {
                providers.put(matcher.group(1), provider(worker, matcher.group(1), name.trim(), loader));
            }
        });
        return new Placeholders(providers);
    }

    /** The overrides with values instead of placeholders. @throws Refusal when one cannot be resolved */
    Map<String, String> resolve(Map<String, String> raw) {
        Map<String, String> resolved = new TreeMap<>();
        raw.forEach((key, value) -> resolved.put(key, resolve(key, value)));
        return resolved;
    }

    private String resolve(String key, String value) {
        String resolved;
        try {
            // A map of one, so that what goes wrong can be said of the key.
            resolved = transformer.transform(new LinkedHashMap<>(Map.of(key, value))).data().get(key);
        } catch (RuntimeException e) {
            throw new Refusal(key, "A placeholder cannot be resolved on this worker: " + e.getMessage());
        }
        Matcher open = ConfigTransformer.DEFAULT_PATTERN.matcher(value);
        while (open.find()) {
            if (resolved != null && resolved.contains(open.group())) {
                throw new Refusal(key, unresolved(open.group(), open.group(1)));
            }
        }
        return resolved;
    }

    private String unresolved(String placeholder, String provider) {
        return providers.containsKey(provider)
                ? "This worker's config provider '" + provider + "' knows nothing of " + placeholder + "."
                : "This worker has no config provider '" + provider + "' for " + placeholder + ".";
    }

    private static ConfigProvider provider(
            Map<String, String> worker, String name, String type, ClassLoader loader) {
        String prefix = "config.providers." + name + ".param.";
        Map<String, String> params = new HashMap<>();
        worker.forEach((key, value) -> {
            if (key.startsWith(prefix)) {
                params.put(key.substring(prefix.length()), value);
            }
        });
        try {
            ConfigProvider made = Class.forName(type, true, loader)
                    .asSubclass(ConfigProvider.class).getDeclaredConstructor().newInstance();
            made.configure(params);
            return made;
        } catch (ReflectiveOperationException | RuntimeException e) {
            throw new Refusal("config.providers." + name, "The config provider cannot be made: " + e);
        }
    }

    @Override
    public void close() {
        providers.forEach((name, provider) -> Utils.closeQuietly(provider, "config provider " + name));
    }
}
