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
 * Whether the other workers would still talk to this one.
 *
 * <p>Workers forward requests with a client that knows the static configuration only. A certificate that it
 * does not accept, or a truststore that does not accept it, would end forwarding; so the connection is
 * rehearsed, with the new listener on one side and that client on the other.
 */
final class PeerTrust {
    private final Map<String, String> worker;
    private final Advertised advertised;
    private SslContextFactory.Client client;
    private List<Stamp> madeFrom = List.of();

    /** A file as it was: opening a key store takes long, and these change seldom. */
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

    /** @throws Refusal when another worker with the same static configuration could not connect */
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
                            + "). What they trust is in their own files: add the new authority there first.")
                    : new Refusal(TlsKeys.TRUSTSTORE_LOCATION, "The listener would not accept the certificates"
                            + " that the other workers forward requests with (" + e.getMessage() + ").");
        }
    }

    /** The client that Connect would make now: it makes one for each request. */
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
            throw new Refusal("", "The worker's own configuration gives no client to check this with ("
                    + Messages.kinds(e) + ").");
        }
    }
}
