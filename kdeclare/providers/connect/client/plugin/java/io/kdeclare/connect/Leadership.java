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
 * Who leads, found out with what Connect offers: asked to delete a connector that cannot exist, a leader says
 * that there is none and a follower says who leads. A standalone worker says the former.
 */
final class Leadership {
    private static final long PROBE_MS = 2_000;
    private static final int NOT_FOUND = Response.Status.NOT_FOUND.getStatusCode();
    // Jersey's words for a path that nothing is registered for.
    private static final String NO_SUCH_PATH = "HTTP 404";

    private final Herder herder;
    private final HerderRequestHandler requests;

    Leadership(Herder herder, RestClient client, RestRequestTimeout timeout) {
        this.herder = herder;
        this.requests = new HerderRequestHandler(client, timeout);
    }

    /** Whether this worker leads, or null where it cannot say so now, as during a rebalance. */
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
     * Have the leader do it: here, or there by the same request, at most two workers further.
     *
     * @param forward the request's parameter of this name, which a worker that forwards sets
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
                        "The worker that leads has no such endpoint: this plug-in is not installed there.", e);
            }
            throw e;
        }
    }

    /** Ends with an exception in every case: that of a follower or that of a leader, if not another. */
    private FutureCallback<Map<String, String>> probe() {
        FutureCallback<Map<String, String>> answer = new FutureCallback<>();
        herder.deleteConnectorConfig(
                "kdeclare-" + UUID.randomUUID(), (failure, deleted) -> answer.onCompletion(failure, null));
        return answer;
    }
}
