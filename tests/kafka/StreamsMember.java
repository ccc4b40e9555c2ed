package kdeclare.test;

import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.util.List;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.StreamsGroupHeartbeatRequestData;
import org.apache.kafka.common.message.StreamsGroupHeartbeatRequestData.Subtopology;
import org.apache.kafka.common.message.StreamsGroupHeartbeatRequestData.TaskIds;
import org.apache.kafka.common.message.StreamsGroupHeartbeatRequestData.Topology;
import org.apache.kafka.common.message.StreamsGroupHeartbeatResponseData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.requests.ResponseHeader;
import org.apache.kafka.common.requests.StreamsGroupHeartbeatRequest;

/**
 * A member of a streams group (KIP-1071) that processes nothing. The sandbox has no Kafka Streams.
 *
 * <p>Arguments: the brokers as HOST:PORT,HOST:PORT, the group, and its topic. The member leaves when it
 * receives input.
 */
public final class StreamsMember {
    private static final short VERSION = 0;
    private static final int LEAVE = -1;
    private static final int ATTEMPTS = 100;

    private StreamsMember() {}

    public static void main(String[] arguments) throws Exception {
        String memberId = Uuid.randomUuid().toString();
        String[] brokers = arguments[0].split(",");
        for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
            String[] address = brokers[attempt % brokers.length].split(":");
            try (Socket socket = new Socket(address[0], Integer.parseInt(address[1]))) {
                if (stayInGroup(socket, memberId, arguments[1], arguments[2])) {
                    return;
                }
            }
            Thread.sleep(100);
        }
        System.exit(1);
    }

    /** Returns false if this broker is not the coordinator of the group, or not yet. */
    private static boolean stayInGroup(Socket socket, String memberId, String group, String topic)
        throws Exception {
        int epoch = 0;
        List<TaskIds> tasks = List.of();
        for (int number = 0; System.in.available() == 0; number++) {
            StreamsGroupHeartbeatRequestData data = new StreamsGroupHeartbeatRequestData()
                .setGroupId(group).setMemberId(memberId).setMemberEpoch(epoch)
                .setActiveTasks(tasks).setStandbyTasks(List.of()).setWarmupTasks(List.of());
            if (epoch == 0) {
                Subtopology reader = new Subtopology()
                    .setSubtopologyId("0").setSourceTopics(List.of(topic));
                data.setTopology(new Topology().setEpoch(0).setSubtopologies(List.of(reader)))
                    .setRebalanceTimeoutMs(60_000).setProcessId("process").setClientTags(List.of());
            }
            StreamsGroupHeartbeatResponseData answer = send(socket, data, number);
            if (answer.errorCode() != 0) {
                System.out.println(answer);
                return false;
            }
            epoch = answer.memberEpoch();
            if (answer.activeTasks() != null) {
                tasks = answer.activeTasks().stream().map(task -> new TaskIds()
                    .setSubtopologyId(task.subtopologyId()).setPartitions(task.partitions())).toList();
            }
            Thread.sleep(200);
        }
        send(socket, new StreamsGroupHeartbeatRequestData()
            .setGroupId(group).setMemberId(memberId).setMemberEpoch(LEAVE), -1);
        return true;
    }

    private static StreamsGroupHeartbeatResponseData send(
        Socket socket, StreamsGroupHeartbeatRequestData data, int number
    ) throws Exception {
        RequestHeader header = new RequestHeader(ApiKeys.STREAMS_GROUP_HEARTBEAT, VERSION, "streams", number);
        ByteBuffer request =
            new StreamsGroupHeartbeatRequest.Builder(data).build(VERSION).serializeWithHeader(header);
        DataOutputStream out = new DataOutputStream(socket.getOutputStream());
        out.writeInt(request.remaining());
        out.write(request.array(), request.arrayOffset() + request.position(), request.remaining());
        out.flush();
        DataInputStream in = new DataInputStream(socket.getInputStream());
        byte[] response = new byte[in.readInt()];
        in.readFully(response);
        ByteBuffer buffer = ByteBuffer.wrap(response);
        ResponseHeader.parse(buffer, ApiKeys.STREAMS_GROUP_HEARTBEAT.responseHeaderVersion(VERSION));
        return new StreamsGroupHeartbeatResponseData(new ByteBufferAccessor(buffer), VERSION);
    }
}
