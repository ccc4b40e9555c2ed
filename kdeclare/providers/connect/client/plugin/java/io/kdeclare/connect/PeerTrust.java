package io.kdeclare.connect;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.stream.Stream;

import org.apache.kafka.connect.runtime.rest.util.SSLUtils;

import org.eclipse.jetty.util.ssl.SslContextFactory;

/**
 * Whether the other workers could still connect to this one.
 *
 * <p>Workers forward requests with a client that uses only the static configuration. If this client did not accept
 * a new certificate, or a new truststore did not accept the client, forwarding would fail. Therefore a handshake
 * between the new listener and this client is tested first.
 */
final class PeerTrust {
    private final Map<String, String> worker;
    private final Advertised advertised;
    private SslContextFactory.Client client;
    private List<Stamp> madeFrom = List.of();

    /** The identity of a file's content, so that key stores, which are slow to open, are opened only after changes. */
    private record Stamp(Path path, FileTime changed, long size) {
        static Stamp of(String location) {
            Path path = Path.of(location);
            try {
                return new Stamp(path, Files.getLastModifiedTime(path), Files.size(path));
            } catch (IOException e) {
                return new Stamp(path, FileTime.fromMillis(0), -1);
            }
        }
    }

    PeerTrust(Map<String, String> worker, Advertised advertised) {
        this.worker = worker;
        this.advertised = advertised;
    }

    /** @throws Refusal if another worker with the same static configuration could not connect */
    void check(SslContextFactory.Server candidate) {
        if (!advertised.isHttps()) {
            return;
        }
        try {
            Handshake.between(
                    peer().newSSLEngine(advertised.host(), advertised.port()), candidate.newSSLEngine());
        } catch (Handshake.Rejected e) {
            throw e.byClient()
                    ? new Refusal(TlsKeys.KEYSTORE_LOCATION, "The other workers would not accept this certificate"
                            + " and could not forward requests to this one (" + e.getMessage()
                            + "). Their truststores are static files: add the new CA certificate there first.")
                    : new Refusal(TlsKeys.TRUSTSTORE_LOCATION, "The listener would not accept the certificates"
                            + " with which the other workers forward requests (" + e.getMessage() + ").");
        }
    }

    /** The client that Connect would create now: it creates one for each request. */
    private synchronized SslContextFactory.Client peer() {
        List<Stamp> stamps = Stream.of("ssl.keystore.location", "ssl.truststore.location")
                .flatMap(key -> Stream.of(key, TlsKeys.PREFIX + key))
                .map(worker::get)
                .filter(Objects::nonNull)
                .map(Stamp::of)
                .toList();
        if (client == null || !stamps.equals(madeFrom)) {
            client = made();
            madeFrom = stamps;
        }
        return client;
    }

    private SslContextFactory.Client made() {
        SslContextFactory.Client made = SSLUtils.createClientSideSslContextFactory(TlsMaterial.parsed(worker));
        try {
            made.start();
            return made;
        } catch (Exception e) {
            throw new Refusal("", "A client for this check cannot be created from the worker's own configuration ("
                    + Messages.kinds(e) + ").");
        }
    }
}
