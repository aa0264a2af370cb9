package ferrite;

import static ferrite.Checks.equal;
import static ferrite.Checks.fails;
import static ferrite.Checks.isTrue;
import static ferrite.Nodes.KEYS;
import static ferrite.Nodes.TAGS;
import static ferrite.Nodes.key;
import static ferrite.Nodes.please;

import io.lettuce.core.KeyValue;
import io.lettuce.core.RedisCommandExecutionException;
import io.lettuce.core.RedisURI;
import io.lettuce.core.cluster.RedisClusterClient;
import io.lettuce.core.cluster.SlotHash;
import io.lettuce.core.cluster.api.StatefulRedisClusterConnection;
import io.lettuce.core.cluster.api.sync.RedisAdvancedClusterCommands;
import io.lettuce.core.cluster.pubsub.RedisClusterPubSubAdapter;
import io.lettuce.core.cluster.models.partitions.RedisClusterNode;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;

/** Lettuce's RedisClusterClient against three nodes: the checks of tests/clients/cluster.py. */
final class LettuceClusterChecks {
  private final RedisClusterClient client = RedisClusterClient.create(RedisURI.create("127.0.0.1", Nodes.PORT));
  private final StatefulRedisClusterConnection<String, String> connection = client.connect();
  private final RedisAdvancedClusterCommands<String, String> c = connection.sync();

  public static void main(String[] arguments) {
    System.out.println("version " + Checks.version(RedisClusterClient.class, "lettuce-core"));
    System.exit(new LettuceClusterChecks().run() ? 0 : 1);
  }

  private boolean run() {
    return new Checks("cluster")
        .check("spread", this::spread)
        .check("hash_tags", this::hashTags)
        .check("pipeline", this::pipeline)
        .check("transaction", this::transaction)
        .check("crossslot", this::crossslot)
        .check("reload", () -> Nodes.reload(this::write, this::read))
        .check("node_down", this::nodeDown)
        .check("sharded_pubsub", this::shardedPubsub)
        .passed();
  }

  private static <T> T reply(Future<T> call) {
    try {
      return call.get(60, TimeUnit.SECONDS);
    } catch (Exception failure) {
      throw new AssertionError(failure);
    }
  }

  /** Gives every key a value: the first thousand one after the other. */
  private void write(String mark) {
    for (int number = 0; number < 1000; number++) equal(c.set(key(number), mark + number), "OK");
    var calls = IntStream.range(1000, KEYS)
        .mapToObj(number -> (Future<String>) connection.async().set(key(number), mark + number)).toList();
    calls.forEach(call -> equal(reply(call), "OK"));
  }

  private List<String> read() {
    var calls = IntStream.range(0, KEYS)
        .mapToObj(number -> (Future<String>) connection.async().get(key(number))).toList();
    return calls.stream().map(LettuceClusterChecks::reply).toList();
  }

  private void spread() {
    write("a");
    equal(read(), Nodes.marked("a"));
    List<Long> sizes = new ArrayList<>();
    for (RedisClusterNode node : connection.getPartitions()) {
      sizes.add(connection.getConnection(node.getNodeId()).sync().dbsize());
    }
    equal(sizes.size(), 3);
    equal(sizes.stream().mapToLong(size -> size).sum(), (long) KEYS);
    isTrue(sizes.stream().allMatch(size -> size > KEYS / 4), sizes);
    equal(c.dbsize(), (long) KEYS);
  }

  private void hashTags() {
    List<String> places = new ArrayList<>(TAGS.stream().map(tag -> "{" + tag + "}").toList());
    // Over several nodes, which this client does by itself.
    places.add("many");
    for (String place : places) {
      Map<String, String> pairs = new TreeMap<>();
      for (int number = 0; number < 100; number++) pairs.put(place + ":" + number, place + number);
      String[] keys = pairs.keySet().toArray(String[]::new);
      equal(c.mset(pairs), "OK");
      equal(c.mget(keys), pairs.entrySet().stream().map(pair -> KeyValue.just(pair.getKey(), pair.getValue())).toList());
      equal(c.del(keys), 100L);
    }
  }

  private void pipeline() {
    connection.setAutoFlushCommands(false);
    List<Future<?>> calls = new ArrayList<>();
    for (int number = 0; number < 500; number++) {
      calls.add(connection.async().incrby("pipe:" + number, number));
      calls.add(connection.async().get("pipe:" + number));
      calls.add(connection.async().del("pipe:" + number));
    }
    connection.flushCommands();
    connection.setAutoFlushCommands(true);
    for (int at = 0; at < calls.size(); at++) {
      long number = at / 3;
      equal(reply(calls.get(at)), List.<Object>of(number, String.valueOf(number), 1L).get(at % 3));
    }
  }

  /** This client has transactions on the connection of a node. */
  private void transaction() {
    for (String tag : TAGS) {
      String count = "{" + tag + "}:count";
      String node = connection.getPartitions().getPartitionBySlot(SlotHash.getSlot(count)).getNodeId();
      var one = connection.getConnection(node).sync();
      equal(one.watch(count), "OK");
      equal(one.multi(), "OK");
      one.set(count, "1");
      one.incr(count);
      one.del(count);
      equal(one.exec().stream().toList(), List.of("OK", 2L, 1L));
    }
  }

  private void crossslot() {
    var failure = fails(RedisCommandExecutionException.class, () -> c.rename("foo", "bar"));
    equal(failure.getMessage(), "CROSSSLOT Keys in request don't hash to the same slot");
  }

  private void nodeDown() throws Exception {
    for (String tag : TAGS) equal(c.set("{" + tag + "}:down", tag), "OK");
    please("down");
    for (String tag : List.of(TAGS.get(0), TAGS.get(2))) {
      for (int i = 0; i < 100; i++) equal(c.get("{" + tag + "}:down"), tag);
    }
    // What is sent to a node that is down waits for it.
    var waiting = connection.async().get("{" + TAGS.get(1) + "}:down");
    please("up");
    equal(reply(waiting), TAGS.get(1));
    Nodes.own(read());
  }

  private void shardedPubsub() throws Exception {
    BlockingQueue<String> heard = new LinkedBlockingQueue<>();
    try (var listener = client.connectPubSub()) {
      listener.addListener(new RedisClusterPubSubAdapter<String, String>() {
        @Override
        public void smessage(RedisClusterNode node, String channel, String message) {
          heard.add(channel + " " + message);
        }
      });
      for (String tag : TAGS) {
        listener.sync().ssubscribe(tag);
        equal(c.spublish(tag, "news"), 1L);
        equal(heard.poll(10, TimeUnit.SECONDS), tag + " news");
      }
    }
  }
}
