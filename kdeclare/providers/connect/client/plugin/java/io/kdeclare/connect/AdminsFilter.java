package io.kdeclare.connect;

import java.io.IOException;
import java.io.Reader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.security.MessageDigest;
import java.util.Base64;
import java.util.Map;
import java.util.Properties;

import jakarta.annotation.Priority;
import jakarta.ws.rs.Priorities;
import jakarta.ws.rs.container.ContainerRequestContext;
import jakarta.ws.rs.container.ContainerRequestFilter;
import jakarta.ws.rs.core.HttpHeaders;
import jakarta.ws.rs.core.MediaType;
import jakarta.ws.rs.core.Response;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Admits the clients that {@link Access} allows. Administrators send HTTP Basic credentials. Their names and
 * passwords are in a properties file, which is read again for each request. While the file cannot be read, all
 * requests are denied. Connect forwards the header to the leader.
 */
@AdminsOnly
@Priority(Priorities.AUTHENTICATION)
final class AdminsFilter implements ContainerRequestFilter {
    private static final Logger LOG = LoggerFactory.getLogger(AdminsFilter.class);
    private static final String BASIC = "Basic ";

    private final Access access;

    AdminsFilter(Access access) {
        this.access = access;
    }

    @Override
    public void filter(ContainerRequestContext request) {
        if (access.open()) {
            return;
        }
        if (!access.denial().isEmpty()) {
            request.abortWith(refusal(403, access.denial()));
            return;
        }
        String header = request.getHeaderString(HttpHeaders.AUTHORIZATION);
        if (header == null || !header.regionMatches(true, 0, BASIC, 0, BASIC.length())) {
            request.abortWith(refusal(401, "Administrator access is required: send HTTP Basic credentials."));
        } else if (!isAdmin(header.substring(BASIC.length()).trim())) {
            request.abortWith(refusal(403, "These are not the credentials of an administrator."));
        }
    }

    private boolean isAdmin(String credentials) {
        String[] parts;
        try {
            parts = new String(Base64.getDecoder().decode(credentials), StandardCharsets.UTF_8).split(":", 2);
        } catch (IllegalArgumentException e) {
            return false;
        }
        String expected = passwords().getProperty(parts[0]);
        return parts.length == 2 && expected != null && MessageDigest.isEqual(
                expected.getBytes(StandardCharsets.UTF_8), parts[1].getBytes(StandardCharsets.UTF_8));
    }

    private Properties passwords() {
        Properties known = new Properties();
        try (Reader text = Files.newBufferedReader(access.admins())) {
            known.load(text);
        } catch (IOException | IllegalArgumentException e) {
            LOG.error("The administrators' file cannot be read, so all requests are denied ({}): {}", Messages.kinds(e),
                    Access.ADMINS_FILE);
            known.clear();
        }
        return known;
    }

    private static Response refusal(int code, String message) {
        Response.ResponseBuilder response = Response.status(code)
                .type(MediaType.APPLICATION_JSON_TYPE)
                .entity(Map.of("error_code", code, "message", message));
        return code == 401 ? response.header(HttpHeaders.WWW_AUTHENTICATE, "Basic").build() : response.build();
    }
}
