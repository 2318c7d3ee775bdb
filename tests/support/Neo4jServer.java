import java.nio.file.Path;
import java.time.Duration;
import org.neo4j.configuration.GraphDatabaseSettings;
import org.neo4j.configuration.connectors.BoltConnector;
import org.neo4j.configuration.helpers.SocketAddress;
import org.neo4j.dbms.api.DatabaseManagementService;
import org.neo4j.dbms.api.DatabaseManagementServiceBuilder;

/** A real Neo4j with Bolt and log-in, for the tests: HOME PORT. It ends when its standard input does. */
public class Neo4jServer {
    public static void main(String[] arguments) throws Exception {
        var address = new SocketAddress("127.0.0.1", Integer.parseInt(arguments[1]));
        DatabaseManagementService service = new DatabaseManagementServiceBuilder(Path.of(arguments[0]))
                .setConfig(BoltConnector.enabled, true)
                .setConfig(BoltConnector.listen_address, address)
                .setConfig(BoltConnector.advertised_address, address)
                .setConfig(GraphDatabaseSettings.auth_enabled, true)
                .setConfig(GraphDatabaseSettings.pagecache_memory, 64L * 1024 * 1024)
                .setConfig(GraphDatabaseSettings.preallocate_logical_logs, false)
                // Data that comes and goes with each test would have every statement planned again.
                .setConfig(GraphDatabaseSettings.query_statistics_divergence_threshold, 1.0)
                .setConfig(GraphDatabaseSettings.cypher_min_replan_interval, Duration.ofHours(1))
                .build();
        Runtime.getRuntime().addShutdownHook(new Thread(service::shutdown));
        System.out.println("ready");
        while (System.in.read() >= 0) {
            // whoever started us still lives
        }
        System.exit(0);
    }
}
