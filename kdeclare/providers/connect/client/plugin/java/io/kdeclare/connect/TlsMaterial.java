package io.kdeclare.connect;

import java.security.KeyStore;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;

import javax.net.ssl.SSLContext;

import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.config.SslClientAuth;
import org.apache.kafka.common.config.SslConfigs;
import org.apache.kafka.common.config.internals.BrokerSecurityConfigs;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.connect.runtime.rest.util.SSLUtils;

import org.eclipse.jetty.util.ssl.SslContextFactory;

/**
 * The key material and settings that an HTTPS listener serves, separate from the listener: built and checked
 * before any listener uses them, so that the switch can hardly fail.
 */
record TlsMaterial(SSLContext context, String[] protocols, String[] ciphers, boolean needs, boolean wants) {
    private static final ConfigDef DEFINITION = new ConfigDef()
            .withClientSslSupport()
            .define(
                    BrokerSecurityConfigs.SSL_CLIENT_AUTH_CONFIG,
                    ConfigDef.Type.STRING,
                    BrokerSecurityConfigs.SSL_CLIENT_AUTH_DEFAULT,
                    ConfigDef.ValidString.in(Utils.enumOptions(SslClientAuth.class)),
                    ConfigDef.Importance.LOW,
                    "");
    private static final Map<String, Object> DEFAULT_TYPES = Map.of(
            SslConfigs.SSL_KEYSTORE_TYPE_CONFIG, SslConfigs.DEFAULT_SSL_KEYSTORE_TYPE,
            SslConfigs.SSL_TRUSTSTORE_TYPE_CONFIG, SslConfigs.DEFAULT_SSL_TRUSTSTORE_TYPE);

    /** The current material of a listener. */
    static TlsMaterial of(SslContextFactory.Server live) {
        return new TlsMaterial(
                live.getSslContext(),
                live.getIncludeProtocols(),
                live.getIncludeCipherSuites(),
                live.getNeedClientAuth(),
                live.getWantClientAuth());
    }

    /** A started factory of a listener with this configuration. @throws Refusal if there cannot be one */
    static SslContextFactory.Server factory(Candidate candidate, KeyStoreFiles files) {
        candidate.raw().keySet().forEach(key -> TlsValues.check(DEFINITION, candidate, key));
        Map<String, Object> values = parsed(candidate.merged()).valuesWithPrefixAllOrNothing(TlsKeys.PREFIX);
        DEFAULT_TYPES.forEach(values::putIfAbsent);
        KeyStores stores = new KeyStores(candidate, values, files);
        KeyStore keys = stores.keys();
        KeyStore trust = stores.trust();
        // Without the paths, which Jetty would log with each certificate. The key stores are set as they were
        // checked and not read again, which would take just as long again.
        Map<String, String> without = new HashMap<>(candidate.merged());
        without.keySet().removeAll(Set.of(TlsKeys.KEYSTORE_LOCATION, TlsKeys.TRUSTSTORE_LOCATION));
        SslContextFactory.Server factory = SSLUtils.createServerSideSslContextFactory(parsed(without));
        factory.setKeyStore(keys);
        factory.setTrustStore(trust == null ? keys : trust);
        try {
            factory.start();
            return factory;
        } catch (Exception e) {
            throw new Refusal("", "The listener cannot use this (" + Messages.kinds(e) + ").");
        }
    }

    /** The configuration as Connect parses it; not logged. */
    static AbstractConfig parsed(Map<String, String> merged) {
        try {
            AbstractConfig config = new AbstractConfig(DEFINITION, merged, Map.of(), false);
            config.valuesWithPrefixAllOrNothing(TlsKeys.PREFIX);
            return config;
        } catch (ConfigException e) {
            throw new Refusal("", "A TLS setting in the worker's own configuration has a value that Kafka does not"
                    + " allow.");
        }
    }

    /**
     * Have a listener serve new connections with this material. The context is passed on unchanged: nothing is read
     * from files, and no previous value remains, because the listener's own paths no longer apply.
     */
    void into(SslContextFactory.Server live) throws Exception {
        live.reload(factory -> {
            live.setSslContext(context);
            live.setIncludeProtocols(protocols);
            live.setIncludeCipherSuites(ciphers);
            live.setWantClientAuth(wants);
            live.setNeedClientAuth(needs);
        });
    }
}
