package ferrite;

import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;
import org.springframework.data.redis.cache.RedisCacheManager;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.data.redis.core.StringRedisTemplate;

/** Libraries for Java as their documentation begins, for tests/clients/libraries/measure. One that works ends with 0. */
final class Probes {
  private static final int PORT = Integer.parseInt(System.getenv("LIBRARIES_PORT"));

  public static void main(String[] arguments) {
    int status = 0;
    try {
      switch (arguments[0]) {
        case "redisson" -> redisson();
        case "redisson_lock" -> redissonLock();
        case "spring_cache" -> springCache();
        case "spring_data_redis" -> springDataRedis();
        default -> throw new IllegalArgumentException(arguments[0]);
      }
    } catch (Exception | AssertionError failure) {
      System.out.println("Error: " + failure);
      status = 1;
    }
    // Threads of a client go on.
    System.exit(status);
  }

  private static void equal(Object actual, Object expected) {
    isTrue(Objects.equals(actual, expected), "got " + actual + ", expected " + expected);
  }

  private static void isTrue(boolean condition, String detail) {
    if (!condition) throw new AssertionError(detail);
  }

  private static RedissonClient open() {
    Config config = new Config();
    config.useSingleServer().setAddress("redis://127.0.0.1:" + PORT);
    return Redisson.create(config);
  }

  private static void redisson() throws Exception {
    RedissonClient client = open();
    client.<String, Integer>getMap("map").put("key", 1);
    equal(client.<String, Integer>getMap("map").get("key"), 1);
    client.<String, Integer>getMapCache("cache").put("key", 1, 1, TimeUnit.MINUTES);
    equal(client.<String, Integer>getMapCache("cache").get("key"), 1);
    equal(client.getAtomicLong("number").incrementAndGet(), 1L);
    CompletableFuture<String> heard = new CompletableFuture<>();
    client.getTopic("topic").addListener(String.class, (channel, message) -> heard.complete(message));
    client.getTopic("topic").publish("hello");
    equal(heard.get(10, TimeUnit.SECONDS), "hello");
    client.getQueue("queue").add("first");
    equal(client.getBlockingQueue("queue").take(), "first");
  }

  private static void redissonLock() throws Exception {
    RLock lock = open().getLock("lock");
    lock.lock();
    isTrue(!open().getLock("lock").tryLock(), "two hold one lock");
    lock.unlock();
    isTrue(lock.tryLock(10, 10, TimeUnit.SECONDS), "it stays locked");
    lock.unlock();
  }

  private static LettuceConnectionFactory factory() {
    LettuceConnectionFactory factory = new LettuceConnectionFactory("127.0.0.1", PORT);
    factory.afterPropertiesSet();
    factory.start();
    return factory;
  }

  private static void springCache() {
    RedisCacheManager manager = RedisCacheManager.create(factory());
    manager.afterPropertiesSet();
    manager.getCache("books").put("isbn", "title");
    equal(manager.getCache("books").get("isbn", String.class), "title");
    manager.getCache("books").evict("isbn");
  }

  private static void springDataRedis() {
    StringRedisTemplate template = new StringRedisTemplate(factory());
    template.opsForValue().set("foo", "bar");
    equal(template.opsForValue().get("foo"), "bar");
    template.opsForList().leftPush("list", "value");
    template.opsForHash().putAll("hash", Map.of("a", "1"));
    equal(template.opsForHash().get("hash", "a"), "1");
    equal(template.opsForStream().add("stream", Map.of("a", "1")).getSequence(), 0L);
  }
}
