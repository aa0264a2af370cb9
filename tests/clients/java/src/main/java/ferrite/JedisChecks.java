package ferrite;

import static ferrite.Checks.MEGABYTE;
import static ferrite.Checks.between;
import static ferrite.Checks.equal;
import static ferrite.Checks.fails;
import static ferrite.Checks.isTrue;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.RedisClient;
import redis.clients.jedis.RedisProtocol;
import redis.clients.jedis.Response;
import redis.clients.jedis.args.ExpiryOption;
import redis.clients.jedis.args.GeoUnit;
import redis.clients.jedis.args.ListDirection;
import redis.clients.jedis.exceptions.JedisAccessControlException;
import redis.clients.jedis.exceptions.JedisConnectionException;
import redis.clients.jedis.exceptions.JedisDataException;
import redis.clients.jedis.params.ClientKillParams;
import redis.clients.jedis.params.ScanParams;
import redis.clients.jedis.params.SetParams;
import redis.clients.jedis.resps.ScanResult;
import redis.clients.jedis.resps.Tuple;

/**
 * Jedis against the server: the checks of tests/clients/run on one connection, with the protocol negotiated (its default),
 * RESP2 and RESP3; then what the pooled client does differently.
 */
final class JedisChecks {
  private final RedisProtocol protocol;
  private final Jedis c;

  private JedisChecks(RedisProtocol protocol) {
    this.protocol = protocol;
    this.c = open(config());
  }

  private DefaultJedisClientConfig.Builder config() {
    DefaultJedisClientConfig.Builder config = DefaultJedisClientConfig.builder();
    return protocol == null ? config : config.protocol(protocol);
  }

  private static Jedis open(DefaultJedisClientConfig.Builder config) {
    return new Jedis(new HostAndPort("127.0.0.1", Checks.PORT), config.build());
  }

  public static void main(String[] arguments) {
    System.out.println("version " + Checks.version(Jedis.class, "jedis"));
    boolean passed = new JedisChecks(null).run("default");
    passed &= new JedisChecks(RedisProtocol.RESP2).run("resp2");
    passed &= new JedisChecks(RedisProtocol.RESP3).run("resp3");
    passed &= new JedisChecks(null).scans();
    passed &= new Checks("pooled").check("all", JedisChecks::pooled).passed();
    System.exit(passed ? 0 : 1);
  }

  private boolean run(String mode) {
    c.flushAll();
    return new Checks(mode)
        .check("connect", this::connect)
        .check("text", this::text)
        .check("binary", this::binary)
        .check("empty", this::empty)
        .check("megabyte", this::megabyte)
        .check("set_options", this::setOptions)
        .check("expire", this::expire)
        .check("increment", this::increment)
        .check("multi_key", this::multiKey)
        .check("ranges", this::ranges)
        .check("bits", this::bits)
        .check("collections", this::collections)
        .check("delete", this::delete)
        .check("scan", this::scan)
        .check("pipeline", this::pipeline)
        .check("deep_pipeline", this::deepPipeline)
        .check("select", this::select)
        .check("client_info", this::clientInfo)
        .check("info", this::info)
        .check("config", this::configuration)
        .check("command", this::command)
        .check("not_an_integer", this::notAnInteger)
        .check("unknown_command", this::unknownCommand)
        .check("password", this::password)
        .check("wrong_password", this::wrongPassword)
        .check("no_password", this::noPassword)
        .check("reconnect", this::reconnect)
        .passed();
  }

  private void connect() {
    equal(c.ping(), "PONG");
    equal(c.echo("hello"), "hello");
  }

  private void text() {
    equal(c.set("text", "caf\u00e9 \u2713"), "OK");
    equal(c.get("text"), "caf\u00e9 \u2713");
    equal(c.get("absent"), null);
  }

  private void binary() {
    byte[] key = {0, -1, 13, 10};
    equal(c.set(key, key), "OK");
    equal(c.get(key), key);
  }

  private void empty() {
    equal(c.set("", ""), "OK");
    equal(c.get(""), "");
    equal(c.strlen(""), 0L);
  }

  private void megabyte() {
    equal(c.set("megabyte".getBytes(), MEGABYTE), "OK");
    equal(c.get("megabyte".getBytes()), MEGABYTE);
  }

  private void setOptions() {
    equal(c.set("option", "1", SetParams.setParams().nx()), "OK");
    equal(c.set("option", "2", SetParams.setParams().nx()), null);
    equal(c.set("option", "2", SetParams.setParams().xx()), "OK");
    equal(c.set("option-absent", "2", SetParams.setParams().xx()), null);
    equal(c.setGet("option", "3"), "2");
    equal(c.set("option", "4", SetParams.setParams().ex(100)), "OK");
    between(c.ttl("option"), 90, 100);
    equal(c.setGet("option", "5", SetParams.setParams().px(200_000)), "4");
    between(c.pttl("option"), 190_000, 200_000);
    equal(c.set("option", "6", SetParams.setParams().keepTtl()), "OK");
    between(c.pttl("option"), 190_000, 200_000);
  }

  private void expire() {
    c.set("expire", "x");
    equal(c.expire("expire", 50), 1L);
    between(c.ttl("expire"), 40, 50);
    equal(c.expire("expire", 10, ExpiryOption.GT), 0L);
    equal(c.persist("expire"), 1L);
    equal(c.persist("expire"), 0L);
    equal(c.ttl("expire"), -1L);
    equal(c.ttl("absent"), -2L);
    equal(c.expireAt("expire", 4_102_444_800L), 1L);
    equal(c.expireTime("expire"), 4_102_444_800L);
  }

  private void increment() {
    equal(c.incr("counter"), 1L);
    equal(c.incrBy("counter", 41), 42L);
    equal(c.decrBy("counter", 2), 40L);
    equal(c.incrByFloat("counter", 0.5), 40.5);
  }

  private void multiKey() {
    equal(c.mset("m1", "a", "m2", "b", "m3", ""), "OK");
    List<String> expected = new ArrayList<>(List.of("a", "?", "b", ""));
    expected.set(1, null);
    equal(c.mget("m1", "absent", "m2", "m3"), expected);
    equal(c.msetnx("m4", "x", "m1", "y"), 0L);
  }

  private void ranges() {
    equal(c.append("range", "Hello World"), 11L);
    equal(c.getrange("range", -5, -1), "World");
    equal(c.setrange("range", 6, "Redis"), 11L);
    equal(c.get("range"), "Hello Redis");
  }

  private void bits() {
    equal(c.setbit("bits", 7, true), false);
    equal(c.setbit("bits", 100, true), false);
    equal(c.getbit("bits", 100), true);
    equal(c.bitcount("bits"), 2L);
    equal(c.bitpos("bits", true), 7L);
  }

  private void collections() {
    equal(c.hset("hash", Map.of("f", "v", "n", "1")), 2L);
    equal(c.hincrBy("hash", "n", 4), 5L);
    equal(c.hgetAll("hash"), Map.of("f", "v", "n", "5"));
    equal(c.sadd("set", "a", "b"), 2L);
    equal(c.smembers("set"), Set.of("a", "b"));
    equal(c.zadd("sorted", Map.of("a", 1.0, "b", 2.5)), 2L);
    equal(c.zrangeWithScores("sorted", 0, -1), List.of(new Tuple("a", 1.0), new Tuple("b", 2.5)));
    equal(c.rpush("list", "1", "2", "3"), 3L);
    equal(c.lmove("list", "other", ListDirection.LEFT, ListDirection.RIGHT), "1");
    equal(c.lrange("list", 0, -1), List.of("2", "3"));
    equal(c.geoadd("places", 13.361389, 38.115556, "Palermo"), 1L);
    equal(c.geoadd("places", 15.087269, 37.502669, "Catania"), 1L);
    equal(Math.round(c.geodist("places", "Palermo", "Catania", GeoUnit.KM)), 166L);
    equal(c.pfadd("visits", "x", "y"), 1L);
    equal(c.pfcount("visits"), 2L);
    equal(c.blpop(1, "list"), List.of("list", "2"));
    equal(c.bzpopmin(1, "sorted").getValue(), new Tuple("a", 1.0));
  }

  private void delete() {
    c.mset("d1", "1", "d2", "2", "d3", "3");
    equal(c.exists("d1", "d2", "d3", "d1", "absent"), 4L);
    equal(c.del("d1", "absent"), 1L);
    equal(c.unlink("d2", "d3"), 2L);
  }

  private void scan() {
    Set<String> expected = new HashSet<>();
    for (int i = 0; i < 1000; i++) expected.add("scan:" + i);
    c.mset(expected.stream().flatMap(key -> List.of(key, "x").stream()).toArray(String[]::new));
    ScanParams few = new ScanParams().match("scan:*").count(50);
    equal(scanned(cursor -> c.scan(cursor, few), key -> key), expected);
  }

  /** Scans of 20,000 elements of each type show all of them. */
  private boolean scans() {
    c.flushAll();
    return new Checks("scans").check("all", this::scanLarge).passed();
  }

  private void scanLarge() {
    Set<String> names = new HashSet<>();
    for (int i = 0; i < 20_000; i++) names.add("element:" + i);
    c.mset(names.stream().flatMap(name -> Stream.of(name, "x")).toArray(String[]::new));
    c.hset("scanned:hash", names.stream().collect(Collectors.toMap(name -> name, name -> "x")));
    c.sadd("scanned:set", names.toArray(String[]::new));
    c.zadd("scanned:sorted", names.stream().collect(Collectors.toMap(name -> name, name -> (double) name.hashCode())));
    ScanParams few = new ScanParams().match("element:*").count(100);
    equal(scanned(cursor -> c.scan(cursor, few), key -> key), names);
    equal(scanned(cursor -> c.hscan("scanned:hash", cursor, few), Map.Entry::getKey), names);
    equal(scanned(cursor -> c.sscan("scanned:set", cursor, few), member -> member), names);
    equal(scanned(cursor -> c.zscan("scanned:sorted", cursor, few), Tuple::getElement), names);
  }

  /** All that the calls of a scan show. */
  private static <T> Set<String> scanned(Function<String, ScanResult<T>> scan, Function<T, String> name) {
    Set<String> seen = new HashSet<>();
    String cursor = ScanParams.SCAN_POINTER_START;
    do {
      ScanResult<T> page = scan.apply(cursor);
      page.getResult().forEach(item -> seen.add(name.apply(item)));
      cursor = page.getCursor();
    } while (!cursor.equals(ScanParams.SCAN_POINTER_START));
    return seen;
  }

  private void pipeline() {
    var pipe = c.pipelined();
    List<Response<Long>> replies = new ArrayList<>();
    for (int i = 0; i < 1000; i++) replies.add(pipe.incr("pipe-counter"));
    pipe.sync();
    for (int i = 0; i < 1000; i++) equal(replies.get(i).get(), i + 1L);
  }

  private void deepPipeline() {
    for (int[] depth : Checks.DEPTHS) {
      String value = "x".repeat(depth[1]);
      c.set("deep", value);
      var pipe = c.pipelined();
      List<Response<String>> replies = new ArrayList<>();
      for (int i = 0; i < depth[0]; i++) replies.add(pipe.get("deep"));
      pipe.sync();
      for (var reply : replies) isTrue(value.equals(reply.get()), "a reply is not the value");
    }
  }

  private void select() {
    c.set("where", "zero");
    try (Jedis other = open(config().database(3))) {
      equal(other.get("where"), null);
      equal(other.set("where", "three"), "OK");
      equal(c.get("where"), "zero");
      equal(other.dbSize(), 1L);
      equal(other.flushDB(), "OK");
    }
  }

  private void clientInfo() {
    try (Jedis named = open(config().clientName("checks"))) {
      equal(named.clientGetname(), "checks");
      isTrue(named.clientInfo().startsWith("id=" + named.clientId() + " addr=127.0.0.1:"), named.clientInfo());
      equal(c.clientList().lines().filter(line -> line.contains(" name=checks ")).count(), 1L);
    }
  }

  private void info() {
    String info = c.info();
    for (String line : List.of("\r\nredis_version:", "\r\nrole:master\r\n", "\r\nloading:0\r\n", "\r\ndb0:keys=")) {
      isTrue(info.contains(line), "INFO lacks " + line);
    }
  }

  private void configuration() {
    equal(c.configGet("databases"), Map.of("databases", "16"));
  }

  private void command() {
    var get = c.command().get("get");
    equal(List.of(get.getArity(), get.getFirstKey(), get.getLastKey(), get.getStep()), List.of(2L, 1L, 1L, 1L));
    isTrue(get.getFlags().contains("readonly"), get.getFlags());
    equal(c.commandGetKeys("MSET", "a", "1", "b", "2"), List.of("a", "b"));
    isTrue(c.commandCount() >= 60, c.commandCount());
  }

  private void notAnInteger() {
    c.set("word", "abc");
    JedisDataException failure = fails(JedisDataException.class, () -> c.incr("word"));
    equal(failure.getMessage(), "ERR value is not an integer or out of range");
  }

  private void unknownCommand() {
    JedisDataException failure =
        fails(JedisDataException.class, () -> c.sendCommand(() -> "NOSUCHCOMMAND".getBytes(), "x"));
    isTrue(failure.getMessage().startsWith("ERR unknown command"), failure);
    equal(c.ping(), "PONG");
  }

  private String pingLocked(DefaultJedisClientConfig.Builder config) {
    try (Jedis locked = new Jedis(new HostAndPort("127.0.0.1", Checks.LOCKED_PORT), config.build())) {
      return locked.ping();
    }
  }

  private void password() {
    equal(pingLocked(config().password(Checks.PASSWORD)), "PONG");
    equal(pingLocked(config().user("default").password(Checks.PASSWORD)), "PONG");
  }

  private void wrongPassword() {
    var failure = fails(JedisAccessControlException.class, () -> pingLocked(config().password("no")));
    isTrue(failure.getMessage().startsWith("WRONGPASS"), failure);
  }

  private void noPassword() {
    var failure = fails(JedisAccessControlException.class, () -> pingLocked(config()));
    isTrue(failure.getMessage().startsWith("NOAUTH"), failure);
  }

  private void reconnect() {
    try (Jedis victim = open(config())) {
      long before = victim.clientId();
      equal(c.clientKill(new ClientKillParams().id(String.valueOf(before))), 1L);
      fails(JedisConnectionException.class, victim::ping);
      victim.disconnect();
      isTrue(victim.clientId() > before, "the killed connection answered");
    }
  }

  /** The client that applications hold: a pool, from which a dead connection is dropped. */
  private static void pooled() {
    try (RedisClient client = RedisClient.create("127.0.0.1", Checks.PORT); Jedis killer = open(DefaultJedisClientConfig.builder())) {
      equal(client.flushAll(), "OK");
      equal(client.set("pooled".getBytes(), MEGABYTE), "OK");
      equal(client.get("pooled".getBytes()), MEGABYTE);
      try (var pipe = client.pipelined()) {
        for (int i = 0; i < 1000; i++) pipe.set("pooled:" + i, "x");
        pipe.sync();
      }
      equal(client.scanIteration(100, "pooled:*").collect(new HashSet<>()).size(), 1000);
      isTrue(killer.clientKill(new ClientKillParams().skipMe(ClientKillParams.SkipMe.YES)) >= 1, "nothing was killed");
      fails(JedisConnectionException.class, client::ping);
      equal(client.ping(), "PONG");
    }
  }
}
