package io.kdeclare.connect;

import java.util.Map;
import java.util.UUID;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Supplier;

import jakarta.ws.rs.core.HttpHeaders;
import jakarta.ws.rs.core.Response;

import com.fasterxml.jackson.core.type.TypeReference;

import org.apache.kafka.connect.errors.NotFoundException;
import org.apache.kafka.connect.runtime.Herder;
import org.apache.kafka.connect.runtime.distributed.NotLeaderException;
import org.apache.kafka.connect.runtime.rest.HerderRequestHandler;
import org.apache.kafka.connect.runtime.rest.RestClient;
import org.apache.kafka.connect.runtime.rest.RestRequestTimeout;
import org.apache.kafka.connect.runtime.rest.errors.ConnectRestException;
import org.apache.kafka.connect.util.FutureCallback;

/**
 * Finds the leader with the means that Connect offers. When asked to delete a connector that cannot exist, a
 * leader responds that it does not exist, and a follower names the leader. A standalone worker responds like a leader.
 */
final class Leadership {
    private static final long PROBE_MS = 2_000;
    private static final int NOT_FOUND = Response.Status.NOT_FOUND.getStatusCode();
    // Jersey's message for a path that is not registered.
    private static final String NO_SUCH_PATH = "HTTP 404";

    private final Herder herder;
    private final HerderRequestHandler requests;

    Leadership(Herder herder, RestClient client, RestRequestTimeout timeout) {
        this.herder = herder;
        this.requests = new HerderRequestHandler(client, timeout);
    }

    /** Whether this worker is the leader, or null if this is unknown now, as during a rebalance. */
    Boolean isHere() {
        try {
            probe().get(PROBE_MS, TimeUnit.MILLISECONDS);
            return null;
        } catch (ExecutionException e) {
            if (e.getCause() instanceof NotFoundException) {
                return true;
            }
            return e.getCause() instanceof NotLeaderException ? Boolean.FALSE : null;
        } catch (TimeoutException e) {
            return null;
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return null;
        }
    }

    /**
     * Have the leader handle the request, either here or by forwarding it, through at most two more workers.
     *
     * @param forward the request parameter of this name, set by a worker that forwards a request
     */
    Map<String, String> lead(
            Supplier<Map<String, String>> work, String path, String method, HttpHeaders headers, Object body,
            Boolean forward) throws Throwable {
        try {
            return requests.completeOrForwardRequest(
                    probe(), path, method, headers, body, new TypeReference<Map<String, String>>() { }, forward);
        } catch (NotFoundException thisIsTheLeader) {
            return work.get();
        } catch (ConnectRestException e) {
            if (e.statusCode() == NOT_FOUND && e.getMessage().startsWith(NO_SUCH_PATH)) {
                throw new ConnectRestException(Response.Status.SERVICE_UNAVAILABLE,
                        "The leader has no such endpoint: this plug-in is not installed on it.", e);
            }
            throw e;
        }
    }

    /** Always throws an exception: that of a follower, that of a leader, or another one. */
    private FutureCallback<Map<String, String>> probe() {
        FutureCallback<Map<String, String>> answer = new FutureCallback<>();
        herder.deleteConnectorConfig(
                "kdeclare-" + UUID.randomUUID(), (failure, deleted) -> answer.onCompletion(failure, null));
        return answer;
    }
}
