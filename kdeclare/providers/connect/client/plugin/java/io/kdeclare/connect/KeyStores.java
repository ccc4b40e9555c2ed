package io.kdeclare.connect;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.security.GeneralSecurityException;
import java.security.InvalidKeyException;
import java.security.KeyStore;
import java.security.KeyStoreException;
import java.security.PrivateKey;
import java.security.Signature;
import java.security.UnrecoverableKeyException;
import java.security.cert.Certificate;
import java.security.cert.CertificateExpiredException;
import java.security.cert.CertificateNotYetValidException;
import java.security.cert.X509Certificate;
import java.util.Collections;
import java.util.Map;

import org.apache.kafka.common.config.types.Password;

/**
 * Validates key stores before Jetty reads them, to report which key is wrong and why. Java's messages about a
 * damaged store are not repeated, because they quote bytes of the file.
 */
final class KeyStores {
    private static final String PEM = "PEM";
    private static final Map<String, String> SIGNATURES =
            Map.of("RSA", "SHA256withRSA", "EC", "SHA256withECDSA", "EdDSA", "EdDSA", "DSA", "SHA256withDSA");
    private static final byte[] PROBE = {1, 2, 3, 4, 5, 6, 7, 8};

    private final Candidate candidate;
    private final Map<String, Object> values;
    private final KeyStoreFiles files;

    /** {@code values}: the TLS values of the candidate, parsed, without their prefix. */
    KeyStores(Candidate candidate, Map<String, Object> values, KeyStoreFiles files) {
        this.candidate = candidate;
        this.values = values;
        this.files = files;
    }

    /** The validated key store that the listener would serve. */
    KeyStore keys() {
        if (text(TlsKeys.KEYSTORE_LOCATION) == null) {
            throw new Refusal(TlsKeys.KEYSTORE_LOCATION, "The listener would have no key store.");
        }
        char[] password = password(TlsKeys.KEYSTORE_PASSWORD);
        if (password == null) {
            throw new Refusal(TlsKeys.KEYSTORE_PASSWORD, "The key store has no password.");
        }
        String location = candidate.describe(TlsKeys.KEYSTORE_LOCATION);
        KeyStore store = load(
                new Keys(TlsKeys.KEYSTORE_LOCATION, TlsKeys.KEYSTORE_PASSWORD, TlsKeys.KEYSTORE_TYPE));
        char[] own = password(TlsKeys.KEY_PASSWORD);
        String blamed = own == null ? TlsKeys.KEYSTORE_PASSWORD : TlsKeys.KEY_PASSWORD;
        try {
            boolean any = false;
            for (String alias : Collections.list(store.aliases())) {
                if (store.isKeyEntry(alias)) {
                    checkEntry(store, alias, own == null ? password : own, blamed, location);
                    any = true;
                }
            }
            if (!any) {
                throw new Refusal(TlsKeys.KEYSTORE_LOCATION, location + " has no private key.");
            }
            return store;
        } catch (KeyStoreException e) {
            throw new Refusal(TlsKeys.KEYSTORE_LOCATION, location + " cannot be used (" + Messages.kinds(e) + ").");
        }
    }

    /** The validated truststore of the listener; null without one, in which case Jetty uses the key store. */
    KeyStore trust() {
        if (text(TlsKeys.TRUSTSTORE_LOCATION) == null) {
            return null;
        }
        String location = candidate.describe(TlsKeys.TRUSTSTORE_LOCATION);
        KeyStore store = load(
                new Keys(TlsKeys.TRUSTSTORE_LOCATION, TlsKeys.TRUSTSTORE_PASSWORD, TlsKeys.TRUSTSTORE_TYPE));
        try {
            if (store.size() == 0) {
                throw new Refusal(TlsKeys.TRUSTSTORE_LOCATION, location + " has no certificate.");
            }
            return store;
        } catch (KeyStoreException e) {
            throw new Refusal(TlsKeys.TRUSTSTORE_LOCATION, location + " cannot be used (" + Messages.kinds(e) + ").");
        }
    }

    private record Keys(String location, String password, String type) { }

    private KeyStore load(Keys keys) {
        String type = text(keys.type());
        KeyStore store;
        try {
            store = KeyStore.getInstance(type);
        } catch (KeyStoreException e) {
            String instead = PEM.equalsIgnoreCase(type) ? " Connect's listener supports JKS and PKCS12." : "";
            throw new Refusal(keys.type(), "The key store type '" + candidate.describe(keys.type())
                    + "' is not supported on this worker." + instead);
        }
        byte[] content = files.read(candidate, keys.location(), text(keys.location()));
        String location = candidate.describe(keys.location());
        try {
            store.load(new ByteArrayInputStream(content), password(keys.password()));
        } catch (IOException e) {
            if (e.getCause() instanceof UnrecoverableKeyException) {
                throw new Refusal(keys.password(), "The password does not open " + location + ".");
            }
            throw unreadable(keys, store);
        } catch (GeneralSecurityException | RuntimeException e) {
            throw unreadable(keys, store);
        }
        return store;
    }

    /** Java's name of the type, because the configured text could be anything. */
    private Refusal unreadable(Keys keys, KeyStore store) {
        return new Refusal(keys.location(), candidate.describe(keys.location()) + " cannot be read as "
                + store.getType() + ": it is damaged, or of another type.");
    }

    private static void checkEntry(KeyStore store, String alias, char[] password, String blamed, String location)
            throws KeyStoreException {
        PrivateKey key;
        try {
            key = (PrivateKey) store.getKey(alias, password);
        } catch (GeneralSecurityException | ClassCastException e) {
            throw new Refusal(blamed, "The password does not open the private key '" + alias + "' in " + location
                    + ".");
        }
        if (!(store.getCertificate(alias) instanceof X509Certificate leaf)) {
            throw new Refusal(TlsKeys.KEYSTORE_LOCATION,
                    "The private key '" + alias + "' in " + location + " has no X.509 certificate.");
        }
        checkDates(store.getCertificateChain(alias), location);
        if (!belongTogether(key, leaf)) {
            throw new Refusal(TlsKeys.KEYSTORE_LOCATION, "The private key '" + alias + "' in " + location
                    + " does not match its certificate, " + name(leaf) + ".");
        }
    }

    private static void checkDates(Certificate[] chain, String location) {
        for (Certificate one : chain) {
            X509Certificate certificate = (X509Certificate) one;
            try {
                certificate.checkValidity();
            } catch (CertificateExpiredException e) {
                throw new Refusal(TlsKeys.KEYSTORE_LOCATION, "The certificate " + name(certificate) + " in "
                        + location + " expired at " + certificate.getNotAfter().toInstant() + ".");
            } catch (CertificateNotYetValidException e) {
                throw new Refusal(TlsKeys.KEYSTORE_LOCATION, "The certificate " + name(certificate) + " in "
                        + location + " is not valid before " + certificate.getNotBefore().toInstant() + ".");
            }
        }
    }

    private static boolean belongTogether(PrivateKey key, X509Certificate leaf) {
        String algorithm = SIGNATURES.get(key.getAlgorithm());
        if (algorithm == null) {
            return true;
        }
        try {
            Signature signing = Signature.getInstance(algorithm);
            signing.initSign(key);
            signing.update(PROBE);
            Signature verifying = Signature.getInstance(algorithm);
            verifying.initVerify(leaf.getPublicKey());
            verifying.update(PROBE);
            return verifying.verify(signing.sign());
        } catch (InvalidKeyException e) {
            return false;
        } catch (GeneralSecurityException e) {
            // For example, a signature of another size than the certificate's key produces.
            return false;
        }
    }

    private static String name(X509Certificate certificate) {
        return certificate.getSubjectX500Principal().getName();
    }

    private String text(String key) {
        return (String) values.get(key.substring(TlsKeys.PREFIX.length()));
    }

    private char[] password(String key) {
        Password password = (Password) values.get(key.substring(TlsKeys.PREFIX.length()));
        return password == null || password.value() == null ? null : password.value().toCharArray();
    }
}
