package ferrite;

import static ferrite.Checks.equal;
import static ferrite.Checks.isTrue;

import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Callable;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.springframework.cache.Cache;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.data.annotation.Id;
import org.springframework.data.domain.Range;
import org.springframework.data.geo.Distance;
import org.springframework.data.geo.Metrics;
import org.springframework.data.geo.Point;
import org.springframework.data.redis.cache.RedisCacheConfiguration;
import org.springframework.data.redis.cache.RedisCacheManager;
import org.springframework.data.redis.connection.BitFieldSubCommands;
import org.springframework.data.redis.connection.DefaultSortParameters;
import org.springframework.data.redis.connection.RedisConnectionFactory;
import org.springframework.data.redis.connection.RedisGeoCommands;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.data.redis.connection.stream.Consumer;
import org.springframework.data.redis.connection.stream.MapRecord;
import org.springframework.data.redis.connection.stream.ReadOffset;
import org.springframework.data.redis.connection.stream.StreamOffset;
import org.springframework.data.redis.core.RedisHash;
import org.springframework.data.redis.core.RedisOperations;
import org.springframework.data.redis.core.RedisTemplate;
import org.springframework.data.redis.core.ScanOptions;
import org.springframework.data.redis.core.SessionCallback;
import org.springframework.data.redis.core.StringRedisTemplate;
import org.springframework.data.redis.core.TimeToLive;
import org.springframework.data.redis.core.ZSetOperations;
import org.springframework.data.redis.core.index.Indexed;
import org.springframework.data.redis.core.script.RedisScript;
import org.springframework.data.redis.listener.ChannelTopic;
import org.springframework.data.redis.listener.PatternTopic;
import org.springframework.data.redis.listener.RedisMessageListenerContainer;
import org.springframework.data.redis.repository.configuration.EnableRedisRepositories;
import org.springframework.data.redis.stream.StreamMessageListenerContainer;
import org.springframework.data.redis.stream.StreamMessageListenerContainer.StreamMessageListenerContainerOptions;
import org.springframework.data.redis.support.atomic.RedisAtomicLong;
import org.springframework.data.redis.support.collections.DefaultRedisList;
import org.springframework.data.repository.CrudRepository;

/** Spring Data Redis with Lettuce, for tests/clients/restarted.py: all that its templates, caches and listeners do, through a kill. */
public final class SpringDataChecks {
  private static final long PAUSE_MS = 10;
  private static final long PATIENCE_SECONDS = 60;

  private final AnnotationConfigApplicationContext context;
  private final StringRedisTemplate template;
  private final RedisTemplate<String, Object> objects;
  private final RedisConnectionFactory factory;

  /** The beans of an application. */
  @Configuration
  @EnableRedisRepositories(
      considerNestedRepositories = true,
      enableKeyspaceEvents = org.springframework.data.redis.core.RedisKeyValueAdapter.EnableKeyspaceEvents.ON_STARTUP)
  public static class Beans {
    static int port;

    @Bean
    public LettuceConnectionFactory redisConnectionFactory() {
      return new LettuceConnectionFactory("127.0.0.1", port);
    }

    @Bean
    public RedisTemplate<String, Object> redisTemplate(RedisConnectionFactory factory) {
      RedisTemplate<String, Object> template = new RedisTemplate<>();
      template.setConnectionFactory(factory);
      return template;
    }

    @Bean
    public StringRedisTemplate stringRedisTemplate(RedisConnectionFactory factory) {
      return new StringRedisTemplate(factory);
    }
  }

  /** An entity with a secondary index, and one that ends. */
  @RedisHash("people")
  public static class Person {
    @Id public String id;
    @Indexed public String city;
    public String name;
    @TimeToLive public Long seconds;

    public Person(String id, String name, String city, Long seconds) {
      this.id = id;
      this.name = name;
      this.city = city;
      this.seconds = seconds;
    }
  }

  /** The repository of people. */
  public interface People extends CrudRepository<Person, String> {
    List<Person> findByCity(String city);
  }

  private SpringDataChecks(int port) {
    Beans.port = port;
    this.context = new AnnotationConfigApplicationContext(Beans.class);
    this.template = context.getBean(StringRedisTemplate.class);
    this.factory = context.getBean(RedisConnectionFactory.class);
    @SuppressWarnings("unchecked")
    RedisTemplate<String, Object> objects = context.getBean("redisTemplate", RedisTemplate.class);
    this.objects = objects;
  }

  public static void main(String[] arguments) {
    if (arguments[0].equals("version")) {
      System.out.println("spring-data-redis " + Checks.version(StringRedisTemplate.class, "spring-data-redis"));
    } else {
      boolean passed = new SpringDataChecks(Integer.parseInt(arguments[0])).run(arguments[1]);
      System.exit(passed ? 0 : 1);
    }
  }

  private boolean run(String mode) {
    return new Checks(mode)
        .check("values", this::values)
        .check("lists", this::lists)
        .check("hashes", this::hashes)
        .check("sets", this::sets)
        .check("sorted_sets", this::sortedSets)
        .check("geo_and_counts", this::geoAndCounts)
        .check("streams", this::streams)
        .check("keys", this::keys)
        .check("objects", this::objects)
        .check("cache", this::cache)
        .check("repository", this::repository)
        .check("repository_expires", this::repositoryExpires)
        .check("transaction", this::transaction)
        .check("pipeline", this::pipeline)
        .check("scripts", this::scripts)
        .check("collections", this::collections)
        .check("messages", this::messages)
        .check("stream_listener", this::streamListener)
        .check("kept", this::kept)
        .passed();
  }

  private static void restart() throws IOException {
    System.out.println("please restart");
    while (System.in.read() != '\n') {}
  }

  private static void until(Callable<Boolean> condition) throws Exception {
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(PATIENCE_SECONDS);
    while (!condition.call()) {
      isTrue(System.nanoTime() < end, "it does not happen");
      Thread.sleep(PAUSE_MS);
    }
  }

  private void values() throws Exception {
    var values = template.opsForValue();
    values.set("value", "one");
    equal(values.get("value"), "one");
    equal(values.getAndSet("value", "two"), "one");
    equal(values.setIfAbsent("value", "three"), false);
    equal(values.setIfPresent("value", "three", Duration.ofHours(1)), true);
    isTrue(template.getExpire("value") > 3_590, "no time to live");
    equal(values.getAndExpire("value", Duration.ofHours(2)), "three");
    equal(values.getAndPersist("value"), "three");
    equal(template.getExpire("value"), -1L);
    values.set("ends", "soon", Duration.ofMillis(100));
    until(() -> values.get("ends") == null);
    equal(values.append("value", "!"), 6);
    equal(values.get("value", 0, 1), "th");
    values.set("value", "X", 1);
    equal(values.get("value"), "tXree!");
    equal(values.increment("number", 41), 41L);
    equal(values.increment("number"), 42L);
    equal(values.decrement("number", 2), 40L);
    equal(values.increment("double", 0.5), 0.5);
    values.multiSet(Map.of("m1", "1", "m2", "2"));
    equal(values.multiSetIfAbsent(Map.of("m2", "3", "m3", "3")), false);
    equal(values.multiGet(List.of("m1", "m2", "m3")), java.util.Arrays.asList("1", "2", null));
    equal(values.setBit("bits", 7, true), false);
    equal(values.getBit("bits", 7), true);
    var fields = BitFieldSubCommands.create().incr(BitFieldSubCommands.BitFieldType.UINT_8).valueAt(0).by(5);
    equal(values.bitField("bits", fields), List.of(6L));
    equal(values.getAndDelete("value"), "tXree!");
  }

  private void lists() {
    var lists = template.opsForList();
    equal(lists.rightPushAll("list", "a", "b", "c", "b"), 4L);
    equal(lists.leftPush("list", "z"), 5L);
    equal(lists.range("list", 0, -1), List.of("z", "a", "b", "c", "b"));
    equal(lists.indexOf("list", "b"), 2L);
    equal(lists.lastIndexOf("list", "b"), 4L);
    equal(lists.leftPush("list", "c", "before c"), 6L);
    equal(lists.remove("list", -1, "b"), 1L);
    lists.set("list", 0, "first");
    equal(lists.index("list", 0), "first");
    lists.trim("list", 0, 2);
    equal(lists.leftPop("list", 2), List.of("first", "a"));
    equal(lists.rightPopAndLeftPush("list", "other"), "b");
    equal(lists.rightPop("list", Duration.ofSeconds(1)), null);
    equal(lists.move("other", org.springframework.data.redis.connection.RedisListCommands.Direction.LEFT, "list",
        org.springframework.data.redis.connection.RedisListCommands.Direction.RIGHT), "b");
    equal(lists.leftPop("list", Duration.ofSeconds(1)), "b");
  }

  private void hashes() {
    var hashes = template.<String, String>opsForHash();
    hashes.putAll("hash", Map.of("a", "1", "b", "2"));
    equal(hashes.putIfAbsent("hash", "a", "3"), false);
    equal(hashes.increment("hash", "n", 5), 5L);
    equal(hashes.increment("hash", "d", 0.5), 0.5);
    equal(hashes.multiGet("hash", List.of("a", "none")), java.util.Arrays.asList("1", null));
    equal(hashes.keys("hash"), Set.of("a", "b", "n", "d"));
    equal(hashes.lengthOfValue("hash", "d"), 3L);
    equal(hashes.delete("hash", "n", "d"), 2L);
    equal(hashes.entries("hash"), Map.of("a", "1", "b", "2"));
    isTrue(hashes.randomKey("hash") != null, "no key");
    for (int i = 0; i < 2_000; i++) hashes.put("large", "field" + i, "" + i);
    int sum = 0;
    try (var cursor = hashes.scan("large", ScanOptions.scanOptions().count(100).build())) {
      while (cursor.hasNext()) sum += Integer.parseInt(cursor.next().getValue());
    }
    equal(sum, 1_999_000);
  }

  private void sets() {
    var sets = template.opsForSet();
    equal(sets.add("set", "a", "b", "c"), 3L);
    sets.add("others", "b", "d");
    equal(sets.isMember("set", "a", "d"), Map.of("a", true, "d", false));
    equal(sets.intersect("set", "others"), Set.of("b"));
    equal(sets.unionAndStore("set", "others", "union"), 4L);
    equal(sets.difference("set", "others"), Set.of("a", "c"));
    equal(sets.move("set", "a", "others"), true);
    equal(sets.members("others"), Set.of("a", "b", "d"));
    equal(sets.distinctRandomMembers("union", 10).size(), 4);
    equal(sets.pop("union", 4).size(), 4);
  }

  private void sortedSets() {
    var sorted = template.opsForZSet();
    for (int i = 0; i < 10; i++) sorted.add("sorted", "m" + i, i);
    equal(sorted.addIfAbsent("sorted", "m1", 5), false);
    equal(sorted.incrementScore("sorted", "m1", 0.5), 1.5);
    equal(sorted.rank("sorted", "m3"), 3L);
    equal(sorted.reverseRank("sorted", "m3"), 6L);
    equal(sorted.reverseRange("sorted", 0, 1), Set.of("m9", "m8"));
    equal(sorted.rangeByScore("sorted", 2, 3), Set.of("m2", "m3"));
    equal(sorted.count("sorted", 0, 4), 5L);
    equal(sorted.score("sorted", "m1", "none"), java.util.Arrays.asList(1.5, null));
    equal(sorted.popMin("sorted").getValue(), "m0");
    equal(sorted.removeRangeByScore("sorted", 8, 9), 2L);
    template.opsForZSet().add("sorted 2", Set.of(ZSetOperations.TypedTuple.of("m2", 10.0)));
    equal(sorted.intersectWithScores("sorted", "sorted 2").iterator().next().getScore(), 12.0);
    equal(sorted.unionAndStore("sorted", "sorted 2", "sorted 3"), 7L);
    equal(sorted.difference("sorted", "sorted 2").size(), 6);
    equal(sorted.rangeByLex("sorted 3", Range.unbounded()).size(), 7);
    equal(sorted.rangeAndStoreByScore("sorted", "sorted 4", Range.closed(2.0, 3.0)), 2L);
  }

  private void geoAndCounts() {
    var places = template.opsForGeo();
    places.add("places", Map.of("Palermo", new Point(13.361389, 38.115556), "Catania", new Point(15.087269, 37.502669)));
    Distance distance = places.distance("places", "Palermo", "Catania", Metrics.KILOMETERS);
    isTrue(Math.abs(distance.getValue() - 166.274) < 0.01, distance);
    var near = places.search("places", org.springframework.data.redis.domain.geo.GeoReference.fromMember("Palermo"),
        new Distance(200, Metrics.KILOMETERS), RedisGeoCommands.GeoSearchCommandArgs.newGeoSearchArgs().includeDistance().sortAscending());
    equal(near.getContent().stream().map(each -> each.getContent().getName()).toList(), List.of("Palermo", "Catania"));
    equal(places.hash("places", "Palermo"), List.of("sqc8b49rny0"));
    var counts = template.opsForHyperLogLog();
    for (int i = 0; i < 100; i++) counts.add("count", "" + i);
    isTrue(Math.abs(counts.size("count") - 100) < 5, counts.size("count"));
    equal(counts.union("counts", "count"), counts.size("count"));
  }

  private void streams() {
    var streams = template.<String, String>opsForStream();
    for (int i = 0; i < 10; i++) streams.add("stream", Map.of("n", "" + i));
    equal(streams.size("stream"), 10L);
    equal(streams.createGroup("stream", ReadOffset.from("0"), "group"), "OK");
    List<MapRecord<String, String, String>> read = streams.read(Consumer.from("group", "one"),
        org.springframework.data.redis.connection.stream.StreamReadOptions.empty().count(4),
        StreamOffset.create("stream", ReadOffset.lastConsumed()));
    equal(read.stream().map(each -> each.getValue().get("n")).toList(), List.of("0", "1", "2", "3"));
    equal(streams.acknowledge("group", read.get(0)), 1L);
    equal(streams.pending("stream", "group").getTotalPendingMessages(), 3L);
    equal(streams.pending("stream", Consumer.from("group", "one"), Range.unbounded(), 10).size(), 3);
    equal(streams.claim("stream", "group", "two", Duration.ZERO, read.get(1).getId()).size(), 1);
    equal(streams.info("stream").streamLength(), 10L);
    equal(streams.groups("stream").get(0).groupName(), "group");
    equal(streams.consumers("stream", "group").size(), 2);
    equal(streams.trim("stream", 5), 5L);
    equal(streams.range("stream", Range.unbounded()).size(), 5);
    equal(streams.reverseRange("stream", Range.unbounded()).get(0).getValue().get("n"), "9");
    equal(streams.delete("stream", streams.range("stream", Range.unbounded()).get(0).getId()), 1L);
    equal(streams.destroyGroup("stream", "group"), true);
  }

  private void keys() {
    for (int i = 0; i < 1_000; i++) template.opsForValue().set("scan:" + i, "" + i);
    try (var cursor = template.scan(ScanOptions.scanOptions().match("scan:*").count(100).build())) {
      equal(cursor.stream().distinct().count(), 1_000L);
    }
    equal(template.keys("scan:99*").size(), 11);
    equal(template.countExistingKeys(List.of("scan:1", "scan:2", "none")), 2L);
    equal(template.type("scan:1").code(), "string");
    template.rename("scan:1", "renamed");
    equal(template.renameIfAbsent("scan:2", "scan:3"), false);
    equal(template.copy("scan:2", "copied", false), true);
    equal(template.expire("copied", Duration.ofSeconds(100)), true);
    byte[] dumped = template.dump("renamed");
    template.restore("restored", dumped, 0, TimeUnit.SECONDS);
    equal(template.opsForValue().get("restored"), "1");
    equal(template.unlink("restored"), true);
    template.opsForList().rightPushAll("sortable", "3", "1", "2");
    byte[] sortable = "sortable".getBytes();
    var numbers = new DefaultSortParameters().desc();
    List<byte[]> sorted = factory.getConnection().keyCommands().sort(sortable, numbers);
    equal(sorted.stream().map(String::new).toList(), List.of("3", "2", "1"));
  }

  private void objects() {
    objects.opsForValue().set("object", new ArrayList<>(List.of("serialized", 1)));
    equal(objects.opsForValue().get("object"), List.of("serialized", 1));
    objects.opsForHash().put("objects", "field", Map.of("a", 1));
    equal(objects.opsForHash().get("objects", "field"), Map.of("a", 1));
  }

  private void cache() throws Exception {
    RedisCacheConfiguration ends = RedisCacheConfiguration.defaultCacheConfig().entryTtl(Duration.ofMillis(200));
    RedisCacheManager manager =
        RedisCacheManager.builder(factory).withCacheConfiguration("short", ends).transactionAware().enableStatistics().build();
    manager.afterPropertiesSet();
    Cache cache = manager.getCache("books");
    equal(cache.get("isbn", () -> "computed"), "computed");
    equal(cache.get("isbn", () -> "again"), "computed");
    equal(cache.putIfAbsent("isbn", "other").get(), "computed");
    cache.put("nothing", null);
    isTrue(cache.get("nothing") != null && cache.get("nothing").get() == null, "null is not cached");
    cache.evict("isbn");
    equal(cache.get("isbn"), null);
    for (int i = 0; i < 100; i++) cache.put("key" + i, i);
    cache.clear();
    // Without a reply.
    until(() -> template.keys("books::*").isEmpty());
    manager.getCache("short").put("key", "value");
    until(() -> manager.getCache("short").get("key") == null);
  }

  private void repository() {
    People people = context.getBean(People.class);
    people.saveAll(List.of(new Person("1", "Rand", "Andor", null), new Person("2", "Mat", "Andor", null), new Person("3", "Lan", "Malkier", null)));
    equal(people.count(), 3L);
    equal(people.findById("1").map(person -> person.name), Optional.of("Rand"));
    equal(people.findByCity("Andor").stream().map(person -> person.name).sorted().toList(), List.of("Mat", "Rand"));
    people.save(new Person("1", "Rand", "Tear", null));
    equal(people.findByCity("Andor").size(), 1);
    people.deleteById("2");
    equal(people.findByCity("Andor").size(), 0);
    isTrue(people.existsById("3") && !people.existsById("2"), "the wrong one is deleted");
    people.deleteAll();
    equal(people.count(), 0L);
  }

  /** What ends is taken out of its index by a listener of events of keys. */
  private void repositoryExpires() throws Exception {
    People people = context.getBean(People.class);
    people.save(new Person("9", "Birgitte", "Gaidin", 1L));
    equal(template.opsForSet().size("people:city:Gaidin"), 1L);
    until(() -> people.findById("9").isEmpty() && template.opsForSet().size("people:city:Gaidin") == 0);
  }

  private void transaction() {
    List<Object> results =
        template.execute(
            new SessionCallback<List<Object>>() {
              @Override
              @SuppressWarnings({"unchecked", "rawtypes"})
              public List<Object> execute(RedisOperations operations) {
                operations.watch("watched");
                operations.multi();
                operations.opsForValue().set("watched", "1");
                operations.opsForValue().increment("watched");
                operations.opsForList().rightPush("of transaction", "x");
                return operations.exec();
              }
            });
    equal(results, List.of(true, 2L, 1L));
    List<Object> broken =
        template.execute(
            new SessionCallback<List<Object>>() {
              @Override
              @SuppressWarnings({"unchecked", "rawtypes"})
              public List<Object> execute(RedisOperations operations) {
                operations.watch("watched");
                new StringRedisTemplate(new LettuceConnectionFactoryOf(Beans.port)).opsForValue().set("watched", "7");
                operations.multi();
                operations.opsForValue().increment("watched");
                return operations.exec();
              }
            });
    isTrue(broken == null || broken.isEmpty(), broken);
    equal(template.opsForValue().get("watched"), "7");
  }

  /** A factory of its own, so that a key is changed by another connection. */
  private static final class LettuceConnectionFactoryOf extends LettuceConnectionFactory {
    LettuceConnectionFactoryOf(int port) {
      super("127.0.0.1", port);
      afterPropertiesSet();
      start();
    }
  }

  private void pipeline() {
    List<Object> results =
        template.executePipelined(
            (org.springframework.data.redis.core.RedisCallback<Object>)
                connection -> {
                  for (int i = 0; i < 1_000; i++) connection.stringCommands().incr("pipelined".getBytes());
                  return null;
                });
    equal(results, IntStream.rangeClosed(1, 1_000).mapToObj(Long::valueOf).toList());
  }

  private void scripts() {
    RedisScript<Long> add = RedisScript.of("return redis.call('INCRBY', KEYS[1], ARGV[1])", Long.class);
    equal(template.execute(add, List.of("scripted"), "5"), 5L);
    equal(template.execute(add, List.of("scripted"), "5"), 10L);
    RedisScript<List> list = RedisScript.of("return {KEYS[1], ARGV[1], redis.call('GET', KEYS[1])}", List.class);
    equal(template.execute(list, List.of("scripted"), "x"), List.of("scripted", "x", "10"));
  }

  private void collections() {
    var list = new DefaultRedisList<>("collection", template);
    list.add("a");
    list.addAll(List.of("b", "c"));
    equal(new ArrayList<>(list), List.of("a", "b", "c"));
    equal(list.poll(), "a");
    var number = new RedisAtomicLong("atomic", factory);
    equal(number.addAndGet(5), 5L);
    equal(number.compareAndSet(5, 7), true);
    equal(number.getAndUpdate(value -> value * 2), 7L);
    equal(number.get(), 14L);
  }

  private RedisMessageListenerContainer listen(BlockingQueue<String> heard, String channel, String pattern) {
    RedisMessageListenerContainer container = new RedisMessageListenerContainer();
    container.setConnectionFactory(factory);
    container.setRecoveryInterval(50);
    container.addMessageListener((message, of) -> heard.add(new String(message.getBody())), new ChannelTopic(channel));
    container.addMessageListener((message, of) -> heard.add(new String(of)), new PatternTopic(pattern));
    container.afterPropertiesSet();
    container.start();
    return container;
  }

  private void messages() throws Exception {
    BlockingQueue<String> heard = new LinkedBlockingQueue<>();
    RedisMessageListenerContainer container = listen(heard, "channel", "ch*");
    for (int i = 0; i < 50; i++) equal(template.convertAndSend("channel", "message" + i), 2L);
    List<String> all = new ArrayList<>();
    while (all.size() < 100) all.add(heard.poll(PATIENCE_SECONDS, TimeUnit.SECONDS));
    equal(all.stream().filter("ch*"::equals).count(), 50L);
    equal(all.stream().filter(each -> each.startsWith("message")).distinct().count(), 50L);
    container.stop();
  }

  private StreamMessageListenerContainer<String, MapRecord<String, String, String>> follow(String key, BlockingQueue<String> heard) {
    var options = StreamMessageListenerContainerOptions.builder().pollTimeout(Duration.ofMillis(100)).build();
    var container = StreamMessageListenerContainer.create(factory, options);
    var request =
        StreamMessageListenerContainer.StreamReadRequest.builder(StreamOffset.create(key, ReadOffset.lastConsumed()))
            .consumer(Consumer.from("followers", "one"))
            .autoAcknowledge(true)
            .cancelOnError(error -> false)
            .errorHandler(error -> System.err.println(error))
            .build();
    container.register(request, record -> heard.add(record.getValue().get("n")));
    container.start();
    return container;
  }

  private void streamListener() throws Exception {
    template.opsForStream().createGroup("followed", ReadOffset.from("0"), "followers");
    BlockingQueue<String> heard = new LinkedBlockingQueue<>();
    var container = follow("followed", heard);
    for (int i = 0; i < 50; i++) template.opsForStream().add("followed", Map.of("n", "" + i));
    List<String> all = new ArrayList<>();
    while (all.size() < 50) all.add(heard.poll(PATIENCE_SECONDS, TimeUnit.SECONDS));
    equal(all, IntStream.range(0, 50).mapToObj(String::valueOf).toList());
    until(() -> template.opsForStream().pending("followed", "followers").getTotalPendingMessages() == 0);
    container.stop();
  }

  // A kill of the server.

  private void kept() throws Exception {
    People people = context.getBean(People.class);
    people.save(new Person("kept", "Moiraine", "Cairhien", 3_600L));
    template.opsForHash().put("kept hash", "field", "value");
    template.opsForValue().set("kept ends", "value", Duration.ofMillis(300));
    BlockingQueue<String> heard = new LinkedBlockingQueue<>();
    BlockingQueue<String> followed = new LinkedBlockingQueue<>();
    RedisMessageListenerContainer messages = listen(heard, "kept channel", "none*");
    // A stream of its own: a request of a listener that has ended may wait still, and is sent again after the kill.
    template.opsForStream().createGroup("kept followed", ReadOffset.from("0"), "followers");
    var stream = follow("kept followed", followed);
    restart();
    // The first request may find the connection that broke.
    until(
        () -> {
          try {
            return "value".equals(template.opsForHash().get("kept hash", "field"));
          } catch (org.springframework.dao.DataAccessException error) {
            System.err.println(error);
            return false;
          }
        });
    equal(people.findByCity("Cairhien").get(0).name, "Moiraine");
    isTrue(people.findById("kept").get().seconds > 3_500, "no time to live");
    until(() -> template.opsForValue().get("kept ends") == null);
    until(
        () -> {
          template.convertAndSend("kept channel", "message");
          return "message".equals(heard.poll());
        });
    template.opsForStream().add("kept followed", Map.of("n", "after"));
    equal(followed.poll(PATIENCE_SECONDS, TimeUnit.SECONDS), "after");
    RedisScript<String> script = RedisScript.of("return redis.call('HGET', KEYS[1], 'field')", String.class);
    equal(template.execute(script, List.of("kept hash")), "value");
    messages.stop();
    stream.stop();
  }
}
