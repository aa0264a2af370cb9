package ferrite;

import static ferrite.Checks.MEGABYTE;
import static ferrite.Checks.between;
import static ferrite.Checks.equal;
import static ferrite.Checks.fails;
import static ferrite.Checks.isTrue;

import io.lettuce.core.ClientOptions;
import io.lettuce.core.ExpireArgs;
import io.lettuce.core.GeoArgs;
import io.lettuce.core.KeyValue;
import io.lettuce.core.KillArgs;
import io.lettuce.core.LMoveArgs;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisCommandExecutionException;
import io.lettuce.core.RedisConnectionException;
import io.lettuce.core.RedisURI;
import io.lettuce.core.ScanArgs;
import io.lettuce.core.ScanIterator;
import io.lettuce.core.ScoredValue;
import io.lettuce.core.SetArgs;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.api.sync.RedisCommands;
import io.lettuce.core.codec.ByteArrayCodec;
import io.lettuce.core.codec.StringCodec;
import io.lettuce.core.models.command.CommandDetailParser;
import io.lettuce.core.output.StatusOutput;
import io.lettuce.core.protocol.CommandArgs;
import io.lettuce.core.protocol.ProtocolKeyword;
import io.lettuce.core.protocol.ProtocolVersion;
import java.nio.charset.StandardCharsets;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Future;
import java.util.stream.IntStream;

/**
 * Lettuce against the server: the checks of tests/clients/run with the protocol that it negotiates by default, with RESP2
 * and with RESP3. It keeps one connection that everything is pipelined through, and replaces that by itself.
 */
final class LettuceChecks implements AutoCloseable {
  private final RedisClient client;
  private final StatefulRedisConnection<String, String> connection;
  private final RedisCommands<String, String> c;

  private LettuceChecks(ProtocolVersion protocol) {
    client = RedisClient.create();
    if (protocol != null) client.setOptions(ClientOptions.builder().protocolVersion(protocol).build());
    connection = client.connect(uri(Checks.PORT).build());
    c = connection.sync();
  }

  private static RedisURI.Builder uri(int port) {
    return RedisURI.builder().withHost("127.0.0.1").withPort(port);
  }

  @Override
  public void close() {
    connection.close();
    client.shutdown();
  }

  public static void main(String[] arguments) {
    System.out.println("version " + Checks.version(RedisClient.class, "lettuce-core"));
    boolean passed = run("default", null);
    passed &= run("resp2", ProtocolVersion.RESP2);
    passed &= run("resp3", ProtocolVersion.RESP3);
    System.exit(passed ? 0 : 1);
  }

  private static boolean run(String mode, ProtocolVersion protocol) {
    try (LettuceChecks checks = new LettuceChecks(protocol)) {
      checks.c.flushall();
      return checks.all(new Checks(mode));
    }
  }

  private boolean all(Checks checks) {
    return checks
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
    try (var binary = client.connect(ByteArrayCodec.INSTANCE, uri(Checks.PORT).build())) {
      equal(binary.sync().set(key, key), "OK");
      equal(binary.sync().get(key), key);
    }
  }

  private void empty() {
    equal(c.set("", ""), "OK");
    equal(c.get(""), "");
    equal(c.strlen(""), 0L);
  }

  private void megabyte() {
    try (var binary = client.connect(ByteArrayCodec.INSTANCE, uri(Checks.PORT).build())) {
      byte[] key = "megabyte".getBytes(StandardCharsets.US_ASCII);
      equal(binary.sync().set(key, MEGABYTE), "OK");
      equal(binary.sync().get(key), MEGABYTE);
    }
  }

  private void setOptions() {
    equal(c.set("option", "1", SetArgs.Builder.nx()), "OK");
    equal(c.set("option", "2", SetArgs.Builder.nx()), null);
    equal(c.set("option", "2", SetArgs.Builder.xx()), "OK");
    equal(c.set("option-absent", "2", SetArgs.Builder.xx()), null);
    equal(c.setGet("option", "3"), "2");
    equal(c.set("option", "4", SetArgs.Builder.ex(100)), "OK");
    between(c.ttl("option"), 90, 100);
    equal(c.setGet("option", "5", SetArgs.Builder.px(200_000)), "4");
    between(c.pttl("option"), 190_000, 200_000);
    equal(c.set("option", "6", SetArgs.Builder.keepttl()), "OK");
    between(c.pttl("option"), 190_000, 200_000);
  }

  private void expire() {
    c.set("expire", "x");
    equal(c.expire("expire", 50), true);
    between(c.ttl("expire"), 40, 50);
    equal(c.expire("expire", 10, ExpireArgs.Builder.gt()), false);
    equal(c.persist("expire"), true);
    equal(c.persist("expire"), false);
    equal(c.ttl("expire"), -1L);
    equal(c.ttl("absent"), -2L);
    equal(c.expireat("expire", 4_102_444_800L), true);
    equal(c.expiretime("expire"), 4_102_444_800L);
  }

  private void increment() {
    equal(c.incr("counter"), 1L);
    equal(c.incrby("counter", 41), 42L);
    equal(c.decrby("counter", 2), 40L);
    equal(c.incrbyfloat("counter", 0.5), 40.5);
  }

  private void multiKey() {
    equal(c.mset(Map.of("m1", "a", "m2", "b", "m3", "")), "OK");
    List<KeyValue<String, String>> expected =
        List.of(KeyValue.just("m1", "a"), KeyValue.empty("absent"), KeyValue.just("m2", "b"), KeyValue.just("m3", ""));
    equal(c.mget("m1", "absent", "m2", "m3"), expected);
    equal(c.msetnx(Map.of("m4", "x", "m1", "y")), false);
  }

  private void ranges() {
    equal(c.append("range", "Hello World"), 11L);
    equal(c.getrange("range", -5, -1), "World");
    equal(c.setrange("range", 6, "Redis"), 11L);
    equal(c.get("range"), "Hello Redis");
  }

  private void bits() {
    equal(c.setbit("bits", 7, 1), 0L);
    equal(c.setbit("bits", 100, 1), 0L);
    equal(c.getbit("bits", 100), 1L);
    equal(c.bitcount("bits"), 2L);
    equal(c.bitpos("bits", true), 7L);
  }

  private void collections() {
    equal(c.hset("hash", Map.of("f", "v", "n", "1")), 2L);
    equal(c.hincrby("hash", "n", 4), 5L);
    equal(c.hgetall("hash"), Map.of("f", "v", "n", "5"));
    equal(c.sadd("set", "a", "b"), 2L);
    equal(c.smembers("set"), Set.of("a", "b"));
    equal(c.zadd("sorted", ScoredValue.just(1, "a"), ScoredValue.just(2.5, "b")), 2L);
    equal(c.zrangeWithScores("sorted", 0, -1), List.of(ScoredValue.just(1, "a"), ScoredValue.just(2.5, "b")));
    equal(c.rpush("list", "1", "2", "3"), 3L);
    equal(c.lmove("list", "other", LMoveArgs.Builder.leftRight()), "1");
    equal(c.lrange("list", 0, -1), List.of("2", "3"));
    equal(c.geoadd("places", 13.361389, 38.115556, "Palermo"), 1L);
    equal(c.geoadd("places", 15.087269, 37.502669, "Catania"), 1L);
    equal(Math.round(c.geodist("places", "Palermo", "Catania", GeoArgs.Unit.km)), 166L);
    equal(c.pfadd("visits", "x", "y"), 1L);
    equal(c.pfcount("visits"), 2L);
    equal(c.blpop(1, "list"), KeyValue.just("list", "2"));
    equal(c.bzpopmin(1, "sorted").getValue(), ScoredValue.just(1, "a"));
  }

  private void delete() {
    c.mset(Map.of("d1", "1", "d2", "2", "d3", "3"));
    equal(c.exists("d1", "d2", "d3", "d1", "absent"), 4L);
    equal(c.del("d1", "absent"), 1L);
    equal(c.unlink("d2", "d3"), 2L);
  }

  private void scan() {
    Set<String> expected = new HashSet<>();
    for (int i = 0; i < 1000; i++) expected.add("scan:" + i);
    expected.forEach(key -> c.set(key, "x"));
    Set<String> seen = new HashSet<>();
    ScanIterator.scan(c, ScanArgs.Builder.matches("scan:*").limit(50)).forEachRemaining(seen::add);
    equal(seen, expected);
  }

  private void pipeline() throws Exception {
    var calls = IntStream.range(0, 1000).mapToObj(i -> (Future<Long>) connection.async().incr("pipe-counter")).toList();
    for (int i = 0; i < 1000; i++) equal(calls.get(i).get(), i + 1L);
  }

  private void deepPipeline() throws Exception {
    for (int[] depth : Checks.DEPTHS) {
      String value = "x".repeat(depth[1]);
      c.set("deep", value);
      var calls = IntStream.range(0, depth[0]).mapToObj(i -> (Future<String>) connection.async().get("deep")).toList();
      for (var call : calls) isTrue(value.equals(call.get()), "a reply is not the value");
    }
  }

  private void select() {
    c.set("where", "zero");
    try (var other = client.connect(uri(Checks.PORT).withDatabase(3).build())) {
      equal(other.sync().get("where"), null);
      equal(other.sync().set("where", "three"), "OK");
      equal(c.get("where"), "zero");
      equal(other.sync().dbsize(), 1L);
      equal(other.sync().flushdb(), "OK");
    }
  }

  private void clientInfo() {
    try (var named = client.connect(uri(Checks.PORT).withClientName("checks").build())) {
      equal(named.sync().clientGetname(), "checks");
      String me = named.sync().clientInfo();
      isTrue(me.startsWith("id=" + named.sync().clientId() + " addr=127.0.0.1:"), me);
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
    var details = CommandDetailParser.parse(c.command());
    equal((long) details.size(), c.commandCount());
    var get = details.stream().filter(detail -> detail.getName().equals("get")).findFirst().orElseThrow();
    equal(List.of(get.getArity(), get.getFirstKeyPosition(), get.getLastKeyPosition()), List.of(2, 1, 1));
  }

  private void notAnInteger() {
    c.set("word", "abc");
    var failure = fails(RedisCommandExecutionException.class, () -> c.incr("word"));
    equal(failure.getMessage(), "ERR value is not an integer or out of range");
  }

  private void unknownCommand() {
    ProtocolKeyword word = () -> "NOSUCHCOMMAND".getBytes(StandardCharsets.US_ASCII);
    var failure = fails(
        RedisCommandExecutionException.class,
        () -> c.dispatch(word, new StatusOutput<>(StringCodec.UTF8), new CommandArgs<>(StringCodec.UTF8).add("x")));
    isTrue(failure.getMessage().startsWith("ERR unknown command"), failure);
    equal(c.ping(), "PONG");
  }

  private String pingLocked(RedisURI.Builder uri) {
    try (var locked = client.connect(uri.build())) {
      return locked.sync().ping();
    }
  }

  private void password() {
    char[] password = Checks.PASSWORD.toCharArray();
    equal(pingLocked(uri(Checks.LOCKED_PORT).withPassword(password)), "PONG");
    equal(pingLocked(uri(Checks.LOCKED_PORT).withAuthentication("default", password)), "PONG");
  }

  /**
   * The refusal that connecting meets. Lettuce closes the connection upon it, and when that overtakes the report of why,
   * then the cause is an exception of its own; such an attempt says nothing about the server, so it is made again.
   */
  private void refused(RedisURI.Builder uri, String code) {
    Throwable cause = null;
    for (int attempt = 0; attempt < 20 && !(cause instanceof RedisCommandExecutionException); attempt++) {
      cause = fails(RedisConnectionException.class, () -> pingLocked(uri)).getCause();
    }
    isTrue(String.valueOf(cause.getMessage()).startsWith(code), cause);
  }

  private void wrongPassword() {
    refused(uri(Checks.LOCKED_PORT).withPassword("no".toCharArray()), "WRONGPASS");
  }

  private void noPassword() {
    refused(uri(Checks.LOCKED_PORT), "NOAUTH");
  }

  private void reconnect() throws Exception {
    try (var victim = client.connect(uri(Checks.PORT).build())) {
      long before = victim.sync().clientId();
      equal(c.clientKill(KillArgs.Builder.id(before)), 1L);
      isTrue(victim.sync().clientId() > before, "the killed connection answered");
    }
  }
}
