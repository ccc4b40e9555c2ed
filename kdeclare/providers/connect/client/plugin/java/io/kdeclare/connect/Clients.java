package io.kdeclare.connect;

import java.util.HashMap;
import java.util.Map;
import java.util.Set;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Kafka clients with the worker's own connection settings: brokers, security, timeouts. */
final class Clients {
    private static final String CLIENT_ID = "kdeclare-worker-config";
    private static final int MAX_BLOCK_MS = 20_000;
    // If a writer dies with an open transaction, readers are blocked for this long, unless another writer starts.
    private static final int TRANSACTION_TIMEOUT_MS = 10_000;
    // Settings of the worker's own clients only, or that would make clients report the same twice.
    private static final Set<String> NOT_SHARED =
            Set.of("client.id", "group.id", "group.instance.id", "metric.reporters", "interceptor.classes");

    private final Settings settings;

    Clients(Settings settings) {
        this.settings = settings;
    }

    /** A consumer that reads only committed records, belongs to no group, and never creates a topic. */
    Consumer<byte[], byte[]> consumer() {
        Map<String, Object> configs = shared(ConsumerConfig.configNames());
        configs.put(ConsumerConfig.CLIENT_ID_CONFIG, CLIENT_ID);
        configs.put(ConsumerConfig.ENABLE_AUTO_COMMIT_CONFIG, false);
        configs.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest");
        configs.put(ConsumerConfig.ISOLATION_LEVEL_CONFIG, "read_committed");
        // The broker would create it with cleanup.policy=delete, with which workers refuse to start.
        configs.put(ConsumerConfig.ALLOW_AUTO_CREATE_TOPICS_CONFIG, false);
        return new KafkaConsumer<>(configs, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    /** For requests besides a consumer's, because the consumer's own wait until its long poll ends. */
    Admin admin() {
        Map<String, Object> configs = shared(AdminClientConfig.configNames());
        configs.put(AdminClientConfig.CLIENT_ID_CONFIG, CLIENT_ID);
        configs.put(AdminClientConfig.DEFAULT_API_TIMEOUT_MS_CONFIG, MAX_BLOCK_MS);
        configs.put(AdminClientConfig.REQUEST_TIMEOUT_MS_CONFIG, MAX_BLOCK_MS / 2);
        return Admin.create(configs);
    }

    /** A producer with the transactional id that all writers of the cluster share: the last one fences the others. */
    Producer<byte[], byte[]> producer() {
        Map<String, Object> configs = shared(ProducerConfig.configNames());
        configs.put(ProducerConfig.CLIENT_ID_CONFIG, CLIENT_ID);
        configs.put(ProducerConfig.TRANSACTIONAL_ID_CONFIG, settings.transactionalId());
        configs.put(ProducerConfig.TRANSACTION_TIMEOUT_CONFIG, TRANSACTION_TIMEOUT_MS);
        configs.put(ProducerConfig.ENABLE_IDEMPOTENCE_CONFIG, true);
        configs.put(ProducerConfig.ACKS_CONFIG, "all");
        configs.put(ProducerConfig.MAX_BLOCK_MS_CONFIG, MAX_BLOCK_MS);
        configs.put(ProducerConfig.REQUEST_TIMEOUT_MS_CONFIG, MAX_BLOCK_MS / 2);
        configs.put(ProducerConfig.DELIVERY_TIMEOUT_MS_CONFIG, MAX_BLOCK_MS);
        return new KafkaProducer<>(configs, new ByteArraySerializer(), new ByteArraySerializer());
    }

    private Map<String, Object> shared(Set<String> known) {
        Map<String, Object> configs = new HashMap<>();
        settings.worker().forEach((key, value) -> {
            // Login modules and callback handlers can have their own keys.
            boolean security = key.startsWith("sasl.") || key.startsWith("ssl.") || key.startsWith("security.");
            if ((known.contains(key) || security) && !NOT_SHARED.contains(key)) {
                configs.put(key, value);
            }
        });
        return configs;
    }
}
