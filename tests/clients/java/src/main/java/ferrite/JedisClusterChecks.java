package ferrite;

import static ferrite.Checks.equal;
import static ferrite.Checks.fails;
import static ferrite.Checks.isTrue;
import static ferrite.Nodes.KEYS;
import static ferrite.Nodes.TAGS;
import static ferrite.Nodes.key;
import static ferrite.Nodes.please;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.JedisCluster;
import redis.clients.jedis.JedisShardedPubSub;
import redis.clients.jedis.Response;
import redis.clients.jedis.exceptions.JedisClusterOperationException;
import redis.clients.jedis.exceptions.JedisDataException;
import redis.clients.jedis.util.JedisClusterCRC16;

/** JedisCluster against three nodes: the checks of tests/clients/cluster.py. */
final class JedisClusterChecks {
  private final JedisCluster c = new JedisCluster(new HostAndPort("127.0.0.1", Nodes.PORT));

  public static void main(String[] arguments) {
    System.out.println("version " + Checks.version(Jedis.class, "jedis"));
    System.exit(new JedisClusterChecks().run() ? 0 : 1);
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

  private void write(String mark) {
    for (int number = 0; number < KEYS; number++) equal(c.set(key(number), mark + number), "OK");
  }

  private List<String> read() {
    return IntStream.range(0, KEYS).mapToObj(number -> c.get(key(number))).toList();
  }

  private void spread() {
    write("a");
    equal(read(), Nodes.marked("a"));
    List<Long> sizes = new ArrayList<>();
    for (var node : c.getClusterNodes().values()) {
      try (Jedis one = new Jedis(node.getResource())) {
        sizes.add(one.dbSize());
      }
    }
    equal(sizes.size(), 3);
    equal(sizes.stream().mapToLong(size -> size).sum(), (long) KEYS);
    isTrue(sizes.stream().allMatch(size -> size > KEYS / 4), sizes);
  }

  private void hashTags() {
    for (String tag : TAGS) {
      String[] keys = IntStream.range(0, 100).mapToObj(number -> "{" + tag + "}:" + number).toArray(String[]::new);
      equal(c.mset(Arrays.stream(keys).flatMap(key -> List.of(key, key).stream()).toArray(String[]::new)), "OK");
      equal(c.mget(keys), List.of(keys));
      equal(c.del(keys), 100L);
    }
  }

  private void pipeline() {
    List<Response<?>> replies = new ArrayList<>();
    try (var pipe = c.pipelined()) {
      for (int number = 0; number < 500; number++) {
        replies.add(pipe.incrBy("pipe:" + number, number));
        replies.add(pipe.get("pipe:" + number));
        replies.add(pipe.del("pipe:" + number));
      }
      pipe.sync();
    }
    for (int at = 0; at < replies.size(); at++) {
      long number = at / 3;
      equal(replies.get(at).get(), List.<Object>of(number, String.valueOf(number), 1L).get(at % 3));
    }
  }

  /** This client has transactions on the connection of a node. */
  private void transaction() {
    for (String tag : TAGS) {
      String count = "{" + tag + "}:count";
      try (Jedis node = new Jedis(c.getConnectionFromSlot(JedisClusterCRC16.getSlot(count)))) {
        node.watch(count);
        var transaction = node.multi();
        transaction.set(count, "1");
        transaction.incr(count);
        transaction.del(count);
        equal(transaction.exec(), List.of("OK", 2L, 1L));
      }
    }
  }

  private void crossslot() {
    try (Jedis node = new Jedis("127.0.0.1", Nodes.PORT)) {
      var failure = fails(JedisDataException.class, () -> node.rename("foo", "bar"));
      equal(failure.getMessage(), "CROSSSLOT Keys in request don't hash to the same slot");
    }
    // This client sees it by itself.
    var failure = fails(JedisClusterOperationException.class, () -> c.mset("foo", "1", "bar", "2"));
    isTrue(failure.getMessage().contains("multiple hash slots"), failure);
  }

  private void nodeDown() throws Exception {
    for (String tag : TAGS) equal(c.set("{" + tag + "}:down", tag), "OK");
    please("down");
    for (String tag : List.of(TAGS.get(0), TAGS.get(2))) {
      for (int i = 0; i < 100; i++) equal(c.get("{" + tag + "}:down"), tag);
    }
    please("up");
    Nodes.until(TAGS.get(1), () -> c.get("{" + TAGS.get(1) + "}:down"));
    Nodes.own(read());
  }

  private void shardedPubsub() throws Exception {
    for (String tag : TAGS) {
      BlockingQueue<String> heard = new LinkedBlockingQueue<>();
      var listener = new JedisShardedPubSub() {
        @Override
        public void onSSubscribe(String channel, int channels) {
          heard.add("subscribed " + channel);
        }

        @Override
        public void onSMessage(String channel, String message) {
          heard.add(channel + " " + message);
        }
      };
      Thread thread = new Thread(() -> c.ssubscribe(listener, tag));
      thread.start();
      equal(heard.poll(10, TimeUnit.SECONDS), "subscribed " + tag);
      equal(c.spublish(tag, "news"), 1L);
      equal(heard.poll(10, TimeUnit.SECONDS), tag + " news");
      listener.sunsubscribe();
      thread.join(10_000);
      isTrue(!thread.isAlive(), "the listener goes on");
    }
  }
}
