package kdeclare.test;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;

import com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.kafka.common.errors.PolicyViolationException;
import org.apache.kafka.server.policy.AlterConfigPolicy;
import org.apache.kafka.server.policy.CreateTopicPolicy;

/**
 * Both of Kafka's policies: writes down what it is shown, then denies or crashes where the tests want that.
 *
 * <p>Of server.properties it reads kdeclare.test.shown, the file of JSON lines that it appends to, and three
 * lists of words that are looked for in names of new topics and in altered values: kdeclare.test.denied,
 * kdeclare.test.silent (denied without a message) and kdeclare.test.crash.
 */
public final class RecordingPolicy implements CreateTopicPolicy, AlterConfigPolicy {
    private static final ObjectMapper JSON = new ObjectMapper();

    private Map<String, ?> settings;

    @Override
    public void configure(Map<String, ?> configs) {
        settings = configs;
        write("configure", new LinkedHashMap<>());
    }

    @Override
    public void validate(CreateTopicPolicy.RequestMetadata request) {
        Map<String, Object> line = new LinkedHashMap<>();
        line.put("topic", request.topic());
        line.put("numPartitions", request.numPartitions());
        line.put("replicationFactor", request.replicationFactor());
        line.put("replicasAssignments", request.replicasAssignments());
        line.put("configs", request.configs());
        write("create", line);
        judge(List.of(request.topic()), "No topic is called " + request.topic() + " here");
    }

    @Override
    public void validate(AlterConfigPolicy.RequestMetadata request) {
        Map<String, Object> line = new LinkedHashMap<>();
        line.put("type", request.resource().type().name());
        line.put("name", request.resource().name());
        line.put("configs", request.configs());
        write("alter", line);
        judge(request.configs().values(), "No config of " + request.resource().name() + " has that value here");
    }

    @Override
    public void close() {
        write("close", new LinkedHashMap<>());
    }

    private void judge(Collection<String> texts, String message) {
        if (speaksOf("kdeclare.test.denied", texts)) {
            throw new PolicyViolationException(message);
        }
        if (speaksOf("kdeclare.test.silent", texts)) {
            throw new PolicyViolationException(null);
        }
        if (speaksOf("kdeclare.test.crash", texts)) {
            throw new IllegalStateException(message);
        }
    }

    private boolean speaksOf(String words, Collection<String> texts) {
        return Arrays.stream(setting(words).split(","))
            .anyMatch(word -> texts.stream().filter(Objects::nonNull).anyMatch(text -> text.contains(word)));
    }

    private String setting(String name) {
        return (String) settings.get(name);
    }

    private void write(String method, Map<String, Object> line) {
        line.put("method", method);
        line.put("node", setting("node.id"));
        line.put("thread", Thread.currentThread().getName());
        try {
            Files.writeString(Path.of(setting("kdeclare.test.shown")), JSON.writeValueAsString(line) + "\n",
                StandardOpenOption.CREATE, StandardOpenOption.APPEND);
        } catch (IOException problem) {
            throw new UncheckedIOException(problem);
        }
    }
}
