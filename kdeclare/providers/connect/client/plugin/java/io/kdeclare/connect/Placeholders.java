package io.kdeclare.connect;

import java.lang.reflect.InvocationTargetException;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.regex.MatchResult;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

import org.apache.kafka.common.config.ConfigData;
import org.apache.kafka.common.config.ConfigTransformer;
import org.apache.kafka.common.config.provider.ConfigProvider;
import org.apache.kafka.common.utils.Utils;

/**
 * Resolves <code>${provider:path:key}</code> with the worker's own config providers. Each provider is created for
 * its first placeholder, so a provider that cannot be created does no harm before.
 *
 * <p>Connect removes {@code config.providers} from the configuration of extensions, so the names are taken from
 * {@code config.providers.NAME.class}.
 */
final class Placeholders implements AutoCloseable {
    private static final Pattern CLASS = Pattern.compile("config\\.providers\\.([^.]+)\\.class");

    private final Map<String, Lazy> providers;
    private final ConfigTransformer transformer;

    private Placeholders(Map<String, Lazy> providers) {
        this.providers = providers;
        this.transformer = new ConfigTransformer(Map.copyOf(providers));
    }

    /** {@code loader}: a class loader that knows the plug-ins, because providers can be plug-ins. */
    static Placeholders of(Map<String, String> worker, ClassLoader loader) {
        Map<String, Lazy> providers = new HashMap<>();
        worker.forEach((key, name) -> {
            Matcher matcher = CLASS.matcher(key);
            if (matcher.matches()) {
                providers.put(matcher.group(1), new Lazy(worker, matcher.group(1), name.trim(), loader));
            }
        });
        return new Placeholders(providers);
    }

    /** The overrides with resolved placeholders. @throws Refusal if one cannot be resolved */
    Map<String, String> resolve(Map<String, String> raw) {
        Map<String, String> resolved = new TreeMap<>();
        raw.forEach((key, value) -> resolved.put(key, resolve(key, value)));
        return resolved;
    }

    private String resolve(String key, String value) {
        String resolved;
        try {
            // A map with one entry, so that an error can be attributed to the key.
            resolved = transformer.transform(new LinkedHashMap<>(Map.of(key, value))).data().get(key);
        } catch (RuntimeException | LinkageError e) {
            throw new Refusal(key, "A placeholder cannot be resolved on this worker, " + shown(value) + ": "
                    + reason(e) + ".");
        }
        Matcher open = ConfigTransformer.DEFAULT_PATTERN.matcher(value);
        while (open.find()) {
            if (resolved != null && resolved.contains(open.group())) {
                throw new Refusal(key, unresolved(open.group(), open.group(1)));
            }
        }
        return resolved;
    }

    /** Does not repeat the provider's message, which can contain its credentials or the data that it read. */
    private static String reason(Throwable failure) {
        return failure instanceof Refusal unmade ? unmade.getMessage()
                : "its config provider failed (" + Messages.kinds(failure) + ")";
    }

    /** The placeholders of a value, without the text around them, which may be a password. */
    private static String shown(String value) {
        return ConfigTransformer.DEFAULT_PATTERN.matcher(value).results()
                .map(MatchResult::group).collect(Collectors.joining(" "));
    }

    private String unresolved(String placeholder, String provider) {
        return providers.containsKey(provider)
                ? "This worker's config provider '" + provider + "' has no value for " + placeholder + "."
                : "This worker has no config provider '" + provider + "' for " + placeholder + ".";
    }

    @Override
    public void close() {
        providers.values().forEach(Lazy::close);
    }

    /** A provider that is created when it is first used. */
    private static final class Lazy implements ConfigProvider {
        private final Map<String, String> params = new HashMap<>();
        private final String name;
        private final String type;
        private final ClassLoader loader;
        private ConfigProvider made;

        Lazy(Map<String, String> worker, String name, String type, ClassLoader loader) {
            this.name = name;
            this.type = type;
            this.loader = loader;
            String prefix = "config.providers." + name + ".param.";
            worker.forEach((key, value) -> {
                if (key.startsWith(prefix)) {
                    params.put(key.substring(prefix.length()), value);
                }
            });
        }

        @Override
        public void configure(Map<String, ?> configs) {
            // Its parameters are already set.
        }

        @Override
        public ConfigData get(String path) {
            return made().get(path);
        }

        @Override
        public ConfigData get(String path, Set<String> keys) {
            return made().get(path, keys);
        }

        @Override
        public synchronized void close() {
            if (made != null) {
                Utils.closeQuietly(made, "config provider " + name);
            }
        }

        private synchronized ConfigProvider made() {
            if (made == null) {
                made = configured(fresh());
            }
            return made;
        }

        private ConfigProvider fresh() {
            try {
                return Class.forName(type, true, loader)
                        .asSubclass(ConfigProvider.class).getDeclaredConstructor().newInstance();
            } catch (InvocationTargetException e) {
                throw failed(e.getCause());
            } catch (ReflectiveOperationException | RuntimeException | LinkageError e) {
                throw failed(e);
            }
        }

        private ConfigProvider configured(ConfigProvider fresh) {
            try {
                fresh.configure(params);
                return fresh;
            } catch (RuntimeException | LinkageError e) {
                Utils.closeQuietly(fresh, "config provider " + name);
                throw failed(e);
            }
        }

        private Refusal failed(Throwable cause) {
            return new Refusal("", "the config provider '" + name + "', " + type + ", cannot be created ("
                    + Messages.kinds(cause) + ")");
        }
    }
}
