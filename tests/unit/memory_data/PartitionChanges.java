package org.apache.kafka.controller;

import java.util.*;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.metadata.PartitionChangeRecord;
import org.apache.kafka.metadata.*;
import org.apache.kafka.metadata.placement.PartitionAssignment;
import org.apache.kafka.server.common.MetadataVersion;

/**
 * Wrote partition_changes.jsonl: random reassignments, cancels and catching up, as Kafka's own classes
 * decide them. Compile and run with the jars of Kafka 4.3.1 on the class path; the argument is how many
 * partitions to play with. The file here is a selection from 3000.
 */
public class PartitionChanges {
    static final List<Integer> BROKERS = List.of(1, 2, 3, 4, 5, 6, 7);
    static final Random RANDOM = new Random(7);

    static PartitionRegistration created(List<Integer> replicas) {
        Uuid[] directories = new Uuid[replicas.size()];
        Arrays.fill(directories, Uuid.randomUuid());
        int[] ids = replicas.stream().mapToInt(i -> i).toArray();
        return new PartitionRegistration.Builder().setReplicas(ids).setDirectories(directories).setIsr(ids)
            .setLeader(ids[0]).setLeaderRecoveryState(LeaderRecoveryState.RECOVERED)
            .setLeaderEpoch(1).setPartitionEpoch(1).build();
    }

    static PartitionChangeBuilder change(PartitionRegistration p, Set<Integer> active) {
        return new PartitionChangeBuilder(p, Uuid.ONE_UUID, 0, active::contains,
            MetadataVersion.latestProduction(), 1, true).setDefaultDirProvider(i -> Uuid.randomUuid());
    }

    static PartitionRegistration apply(PartitionRegistration p, PartitionChangeBuilder builder) {
        return builder.build().map(r -> p.merge((PartitionChangeRecord) r.message())).orElse(p);
    }

    static PartitionRegistration reassign(PartitionRegistration p, Set<Integer> active, List<Integer> target) {
        List<Integer> current = Replicas.toList(p.replicas);
        PartitionReassignmentReplicas r = new PartitionReassignmentReplicas(
            new PartitionAssignment(current, i -> Uuid.randomUuid()),
            new PartitionAssignment(target, i -> Uuid.randomUuid()));
        // as ReplicationControlManager.changePartitionReassignment
        PartitionChangeBuilder builder = change(p, active);
        if (!r.replicas().equals(current)) builder.setTargetReplicas(r.replicas());
        if (!r.removing().isEmpty()) builder.setTargetRemoving(r.removing());
        if (!r.adding().isEmpty()) builder.setTargetAdding(r.adding());
        return apply(p, builder);
    }

    static List<Integer> someTarget(PartitionRegistration p) {
        List<Integer> listed = new ArrayList<>(Replicas.toList(p.replicas));
        switch (RANDOM.nextInt(6)) {
            case 0:
                return listed;
            case 1:
                List<Integer> original = new ArrayList<>(listed);
                original.removeAll(Replicas.toList(p.addingReplicas));
                return original.isEmpty() ? listed : original;
            case 2:
                Collections.sort(listed);
                return listed;
            default:
                List<Integer> all = new ArrayList<>(BROKERS);
                Collections.shuffle(all, RANDOM);
                return all.subList(0, 1 + RANDOM.nextInt(4));
        }
    }

    static String json(PartitionRegistration p) {
        return String.format("{\"replicas\":%s,\"isr\":%s,\"leader\":%d,\"adding\":%s,\"removing\":%s}",
            Arrays.toString(p.replicas), Arrays.toString(p.isr), p.leader,
            Arrays.toString(p.addingReplicas), Arrays.toString(p.removingReplicas));
    }

    public static void main(String[] args) {
        for (int n = 0; n < Integer.parseInt(args[0]); n++) {
            List<Integer> all = new ArrayList<>(BROKERS);
            Collections.shuffle(all, RANDOM);
            PartitionRegistration p = created(all.subList(0, 1 + RANDOM.nextInt(3)));
            Set<Integer> active = new TreeSet<>(BROKERS);
            int lost = 1 + RANDOM.nextInt(7);
            if (RANDOM.nextInt(3) == 0 && !(p.isr.length == 1 && p.isr[0] == lost)) {
                active.remove(lost);
                List<Integer> isr = new ArrayList<>(Replicas.toList(p.isr));
                isr.remove((Integer) lost);
                p = apply(p, change(p, active).setTargetIsr(isr));
            }
            for (int step = 0; step < 6; step++) {
                String before = json(p);
                String op;
                int which = RANDOM.nextInt(4);
                if (which < 2) {
                    List<Integer> target = someTarget(p);
                    op = "\"op\":\"reassign\",\"target\":" + target;
                    p = reassign(p, active, target);
                } else if (which == 2) {
                    if (p.addingReplicas.length + p.removingReplicas.length == 0) continue;
                    op = "\"op\":\"cancel\"";
                    PartitionReassignmentRevert revert = new PartitionReassignmentRevert(p);
                    p = apply(p, change(p, active).setTargetIsr(revert.isr()).setTargetReplicas(revert.replicas())
                        .setTargetRemoving(List.of()).setTargetAdding(List.of()));
                } else {
                    List<Integer> isr = new ArrayList<>(Replicas.toList(p.isr));
                    for (int r : p.replicas) if (active.contains(r) && !isr.contains(r)) isr.add(r);
                    if (isr.isEmpty() || p.leader < 0) continue;
                    op = "\"op\":\"catch_up\"";
                    p = apply(p, change(p, active).setTargetIsr(isr));
                }
                System.out.printf("{\"active\":%s,\"before\":%s,%s,\"after\":%s}%n", active, before, op, json(p));
            }
        }
    }
}
