package io.kdeclare.connect;

import java.io.IOException;
import java.io.InputStream;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Function;

import jakarta.inject.Inject;
import jakarta.servlet.ServletContext;
import jakarta.ws.rs.Consumes;
import jakarta.ws.rs.DELETE;
import jakarta.ws.rs.GET;
import jakarta.ws.rs.PATCH;
import jakarta.ws.rs.POST;
import jakarta.ws.rs.Path;
import jakarta.ws.rs.PathParam;
import jakarta.ws.rs.Produces;
import jakarta.ws.rs.QueryParam;
import jakarta.ws.rs.core.Context;
import jakarta.ws.rs.core.HttpHeaders;
import jakarta.ws.rs.core.MediaType;
import jakarta.ws.rs.core.Response;

import org.apache.kafka.connect.runtime.Herder;
import org.apache.kafka.connect.runtime.rest.RestClient;
import org.apache.kafka.connect.runtime.rest.RestRequestTimeout;
import org.apache.kafka.connect.runtime.rest.errors.ConnectRestException;

/**
 * The endpoints of KIP-1185, and {@code status}, which the draft lacks: without it, no client could find out that
 * a follower could not apply a change that the leader applied.
 */
@Path(WorkerConfigResource.PATH)
@AdminsOnly
@Produces(MediaType.APPLICATION_JSON)
public class WorkerConfigResource {
    static final String PATH = "/admin/dynamic-worker-config";

    private final WorkerConfigs configs;
    private final Leadership leadership;

    @Inject
    WorkerConfigResource(
            WorkerConfigs configs, Herder herder, RestClient client, RestRequestTimeout timeout,
            @Context ServletContext context) {
        this.configs = configs;
        this.leadership = new Leadership(herder, client, timeout);
        configs.attach(context);
    }

    /** The overrides as written, including placeholders. */
    @GET
    public Map<String, String> overrides() {
        Overrides found = configs.overrides().orElseThrow(this::unavailable);
        try {
            return found.raw();
        } catch (StoreException e) {
            throw failed(e);
        }
    }

    /** The status of this worker; 200 even if it has an error. */
    @GET
    @Path("/status")
    public Map<String, Object> status() {
        return StatusReport.of(configs, leadership.isHere());
    }

    /** Whether this worker could apply the change. */
    @POST
    @Path("/validate")
    @Consumes(MediaType.APPLICATION_JSON)
    public Map<String, Object> validate(InputStream body) throws IOException {
        configs.requireAvailable();
        Changes changes = parsed(body);
        Map<String, List<String>> errors = new LinkedHashMap<>();
        try {
            configs.validate(changes);
        } catch (Refusal e) {
            errors.put(e.key(), List.of(e.getMessage()));
        } catch (RuntimeException e) {
            errors.put("", List.of(Messages.of(e)));
        }
        Map<String, Object> answer = new LinkedHashMap<>();
        answer.put("valid", errors.isEmpty());
        answer.put("configs", List.copyOf(changes.byKey().keySet()));
        answer.put("errors", errors);
        return answer;
    }

    /** Merge the change into the overrides; an empty change makes all workers read their files again. */
    @PATCH
    @Consumes(MediaType.APPLICATION_JSON)
    public Map<String, String> patch(
            InputStream body, @Context HttpHeaders headers, @QueryParam("forward") Boolean forward)
            throws Throwable {
        configs.requireAvailable();
        Changes changes = parsed(body);
        return leadership.lead(() -> written(current -> changes), PATH, "PATCH", headers, changes.byKey(), forward);
    }

    /** Remove one override. */
    @DELETE
    @Path("/{name}")
    public Response delete(
            @PathParam("name") String name, @Context HttpHeaders headers, @QueryParam("forward") Boolean forward)
            throws Throwable {
        configs.requireAvailable();
        String path = PATH + "/" + URLEncoder.encode(name, StandardCharsets.UTF_8).replace("+", "%20");
        leadership.lead(() -> removed(name), path, "DELETE", headers, null, forward);
        return Response.noContent().build();
    }

    private Changes parsed(InputStream body) throws IOException {
        try {
            Changes changes = Changes.parse(body);
            configs.check(changes);
            return changes;
        } catch (Refusal e) {
            throw refused(e);
        }
    }

    private Map<String, String> removed(String name) {
        AtomicBoolean found = new AtomicBoolean();
        return written(current -> {
            if (current.containsKey(name)) {
                found.set(true);
                return Changes.removal(name);
            }
            if (found.get()) {
                // An earlier attempt with an unknown outcome has removed it.
                return Changes.none();
            }
            throw new ConnectRestException(Response.Status.NOT_FOUND, "There is no override of " + name + ".");
        });
    }

    private Map<String, String> written(Function<Map<String, String>, Changes> changes) {
        try {
            return configs.update(changes);
        } catch (Refusal e) {
            throw refused(e);
        } catch (ConnectRestException e) {
            throw e;
        } catch (RuntimeException e) {
            throw failed(e);
        }
    }

    /** Without the cause, as below: Connect logs causes, and those can quote the values of placeholders. */
    private static ConnectRestException failed(RuntimeException e) {
        return new ConnectRestException(Response.Status.INTERNAL_SERVER_ERROR, Messages.of(e));
    }

    private static ConnectRestException refused(Refusal e) {
        return new ConnectRestException(Response.Status.BAD_REQUEST, Messages.of(e));
    }

    private ConnectRestException unavailable() {
        return new ConnectRestException(Response.Status.SERVICE_UNAVAILABLE, configs.reason().orElse(""));
    }
}
