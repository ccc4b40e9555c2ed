import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import java.util.stream.Collectors;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.metadata.placement.ClusterDescriber;
import org.apache.kafka.metadata.placement.PartitionAssignment;
import org.apache.kafka.metadata.placement.PlacementSpec;
import org.apache.kafka.metadata.placement.StripedReplicaPlacer;
import org.apache.kafka.metadata.placement.UsableBroker;

/**
 * Kafka's own placer, called as the controller and kafka-reassign-partitions --generate call it: topic by
 * topic, with only the brokers as input. It uses a fixed seed, so that figures can be reproduced.
 *
 * <p>Reads lines "broker ID RACK" and "topic PARTITIONS FACTOR", prints one line of ids per partition, in
 * order, and then "seconds S": the time of the placement without the start of Java.
 */
public final class StripedPlacement implements ClusterDescriber {
    private final List<UsableBroker> brokers = new ArrayList<>();

    @Override
    public Iterator<UsableBroker> usableBrokers() {
        return brokers.iterator();
    }

    @Override
    public Uuid defaultDir(int brokerId) {
        return Uuid.ZERO_UUID;
    }

    public static void main(String[] arguments) throws IOException {
        StripedPlacement cluster = new StripedPlacement();
        List<PlacementSpec> topics = new ArrayList<>();
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] words = line.split(" ");
            int first = Integer.parseInt(words[1]);
            if (words[0].equals("broker")) {
                cluster.brokers.add(new UsableBroker(first, Optional.of(words[2]), false));
            } else {
                topics.add(new PlacementSpec(0, first, Short.parseShort(words[2])));
            }
        }
        StripedReplicaPlacer placer = new StripedReplicaPlacer(new Random(0));
        List<PartitionAssignment> placed = new ArrayList<>();
        long begun = System.nanoTime();
        for (PlacementSpec topic : topics) {
            placed.addAll(placer.place(topic, cluster).assignments());
        }
        double seconds = (System.nanoTime() - begun) / 1e9;
        for (PartitionAssignment partition : placed) {
            System.out.println(partition.replicas().stream().map(String::valueOf).collect(Collectors.joining(" ")));
        }
        System.out.println("seconds " + seconds);
    }
}
