package io.kdeclare.connect;

import java.security.GeneralSecurityException;
import java.util.Arrays;
import java.util.List;
import java.util.Map;

import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLParameters;

import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.config.SslConfigs;

/**
 * Whether the value of an override is valid for its key. Kafka quotes values that it does not allow, and Jetty
 * logs unknown protocols and cipher suites, so both receive only valid values.
 */
final class TlsValues {
    private TlsValues() { }

    /** {@code key}: one of the overrides. @throws Refusal with the key and the written text, not the resolved value */
    static void check(ConfigDef definition, Candidate candidate, String key) {
        String name = key.substring(TlsKeys.PREFIX.length());
        AbstractConfig parsed;
        try {
            parsed = new AbstractConfig(definition, Map.of(name, candidate.merged().get(key)), Map.of(), false);
        } catch (ConfigException e) {
            ConfigDef.Validator allowed = definition.configKeys().get(name).validator;
            String choices = allowed instanceof ConfigDef.ValidString ? " Use one of " + allowed + "." : "";
            throw new Refusal(key, "This value is not valid for this key: " + candidate.describe(key) + "." + choices);
        }
        switch (name) {
            case SslConfigs.SSL_ENABLED_PROTOCOLS_CONFIG ->
                checkKnown(candidate, key, parsed.getList(name), supported(candidate).getProtocols());
            case SslConfigs.SSL_CIPHER_SUITES_CONFIG ->
                checkKnown(candidate, key, parsed.getList(name), supported(candidate).getCipherSuites());
            default -> { }
        }
    }

    private static void checkKnown(Candidate candidate, String key, List<String> values, String[] known) {
        if (values != null && !Arrays.asList(known).containsAll(values)) {
            throw new Refusal(key, "The value names something that this worker's Java does not support: "
                    + candidate.describe(key) + ".");
        }
    }

    private static SSLParameters supported(Candidate candidate) {
        String provider = candidate.merged().get(TlsKeys.PREFIX + SslConfigs.SSL_PROVIDER_CONFIG);
        try {
            SSLContext context = provider == null ? SSLContext.getInstance("TLS")
                    : SSLContext.getInstance("TLS", provider);
            context.init(null, null, null);
            return context.getSupportedSSLParameters();
        } catch (GeneralSecurityException e) {
            throw new Refusal("", "The worker's own " + SslConfigs.SSL_PROVIDER_CONFIG + " cannot be used ("
                    + Messages.kinds(e) + ").");
        }
    }
}
