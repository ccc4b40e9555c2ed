package kdeclare.test;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.internals.PluginMetricsImpl;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.utils.SecurityUtils;
import org.apache.kafka.metadata.authorizer.StandardAcl;
import org.apache.kafka.metadata.authorizer.StandardAuthorizer;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;

/** Asks Kafka's StandardAuthorizer whether bindings allow a request. No broker is needed. */
public final class Authorizations {

    private record Request(KafkaPrincipal principal, InetAddress clientAddress) implements AuthorizableRequestContext {
        public String listenerName() { return "PLAINTEXT"; }
        public SecurityProtocol securityProtocol() { return SecurityProtocol.PLAINTEXT; }
        public int requestType() { return 0; }
        public int requestVersion() { return 0; }
        public String clientId() { return ""; }
        public int correlationId() { return 0; }
    }

    /**
     * A line is a request and then bindings, with tabs between. A request is the default without ACLs, principal, host,
     * operation, type, name. A binding is type, name, pattern, principal, host, operation, permission. Words are
     * separated by blanks.
     */
    public static void main(String[] none) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] parts = line.split("\t");
            String[] asked = parts[0].split(" ");
            try (Metrics metrics = new Metrics(); StandardAuthorizer authorizer = new StandardAuthorizer()) {
                authorizer.configure(Map.of("allow.everyone.if.no.acl.found", asked[0]));
                authorizer.withPluginMetrics(new PluginMetricsImpl(metrics, Map.of()));
                Map<Uuid, StandardAcl> acls = new HashMap<>();
                for (int i = 1; i < parts.length; i++) {
                    String[] b = parts[i].split(" ");
                    acls.put(new Uuid(1, i), new StandardAcl(ResourceType.fromString(b[0]), b[1],
                        PatternType.fromString(b[2]), b[3], b[4], AclOperation.fromString(b[5]),
                        AclPermissionType.fromString(b[6])));
                }
                authorizer.loadSnapshot(acls);
                authorizer.completeInitialLoad();
                Action action = new Action(AclOperation.fromString(asked[3]),
                    new ResourcePattern(ResourceType.fromString(asked[4]), asked[5], PatternType.LITERAL), 1, true, true);
                Request request = new Request(SecurityUtils.parseKafkaPrincipal(asked[1]), InetAddress.getByName(asked[2]));
                System.out.println(authorizer.authorize(request, List.of(action)).get(0));
                System.out.flush();
            }
        }
    }
}
