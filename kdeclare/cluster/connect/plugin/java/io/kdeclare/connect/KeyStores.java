package io.kdeclare.connect;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
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

/** Looks into key stores before Jetty does, to say which key is wrong and why. */
final class KeyStores {
    private static final String PEM = "PEM";
    private static final Map<String, String> SIGNATURES =
            Map.of("RSA", "SHA256withRSA", "EC", "SHA256withECDSA", "EdDSA", "EdDSA", "DSA", "SHA256withDSA");
    private static final byte[] PROBE = {1, 2, 3, 4, 5, 6, 7, 8};

    private KeyStores() { }

    /** What the listener would serve, checked. {@code values}: the TLS values without their prefix. */
    static KeyStore keys(Map<String, Object> values) {
        String location = text(values, TlsKeys.KEYSTORE_LOCATION);
        if (location == null) {
            throw new Refusal(TlsKeys.KEYSTORE_LOCATION, "The listener would have no key store.");
        }
        char[] password = password(values, TlsKeys.KEYSTORE_PASSWORD);
        if (password == null) {
            throw new Refusal(TlsKeys.KEYSTORE_PASSWORD, "The key store has no password to open it with.");
        }
        KeyStore store = load(
                location, password, text(values, TlsKeys.KEYSTORE_TYPE),
                new Keys(TlsKeys.KEYSTORE_LOCATION, TlsKeys.KEYSTORE_PASSWORD, TlsKeys.KEYSTORE_TYPE));
        char[] own = password(values, TlsKeys.KEY_PASSWORD);
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
                throw new Refusal(TlsKeys.KEYSTORE_LOCATION, location + " holds no private key.");
            }
            return store;
        } catch (KeyStoreException e) {
            throw new Refusal(TlsKeys.KEYSTORE_LOCATION, location + " cannot be used: " + e.getMessage());
        }
    }

    /** What the listener would trust, checked; null without a truststore: Jetty takes the key store then. */
    static KeyStore trust(Map<String, Object> values) {
        String location = text(values, TlsKeys.TRUSTSTORE_LOCATION);
        if (location == null) {
            return null;
        }
        KeyStore store = load(
                location, password(values, TlsKeys.TRUSTSTORE_PASSWORD), text(values, TlsKeys.TRUSTSTORE_TYPE),
                new Keys(TlsKeys.TRUSTSTORE_LOCATION, TlsKeys.TRUSTSTORE_PASSWORD, TlsKeys.TRUSTSTORE_TYPE));
        try {
            if (store.size() == 0) {
                throw new Refusal(TlsKeys.TRUSTSTORE_LOCATION, location + " holds no certificate.");
            }
            return store;
        } catch (KeyStoreException e) {
            throw new Refusal(TlsKeys.TRUSTSTORE_LOCATION, location + " cannot be used: " + e.getMessage());
        }
    }

    private record Keys(String location, String password, String type) { }

    private static KeyStore load(String location, char[] password, String type, Keys keys) {
        KeyStore store;
        try {
            store = KeyStore.getInstance(type);
        } catch (KeyStoreException e) {
            String instead = PEM.equalsIgnoreCase(type) ? " Connect's listener takes JKS and PKCS12." : "";
            throw new Refusal(keys.type(), "There is no type of key store '" + type + "' here." + instead);
        }
        Path path = Path.of(location);
        if (!Files.exists(path)) {
            throw new Refusal(keys.location(), "There is no file " + location + " on this worker.");
        }
        try (InputStream content = Files.newInputStream(path)) {
            store.load(content, password);
        } catch (IOException e) {
            if (e.getCause() instanceof UnrecoverableKeyException) {
                throw new Refusal(keys.password(), "The password does not open " + location + ".");
            }
            throw new Refusal(keys.location(), location + " cannot be read as " + type + ": " + e.getMessage());
        } catch (GeneralSecurityException e) {
            throw new Refusal(keys.location(), location + " cannot be read as " + type + ": " + e.getMessage());
        }
        return store;
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
                    + " does not belong to its certificate, " + name(leaf) + ".");
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
            // As with a signature of another size than the certificate's key makes.
            return false;
        }
    }

    private static String name(X509Certificate certificate) {
        return certificate.getSubjectX500Principal().getName();
    }

    private static String text(Map<String, Object> values, String key) {
        return (String) values.get(key.substring(TlsKeys.PREFIX.length()));
    }

    private static char[] password(Map<String, Object> values, String key) {
        Password password = (Password) values.get(key.substring(TlsKeys.PREFIX.length()));
        return password == null || password.value() == null ? null : password.value().toCharArray();
    }
}
