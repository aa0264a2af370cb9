package ferrite;

import static ferrite.Checks.equal;
import static ferrite.Checks.isTrue;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.IntStream;
import org.redisson.Redisson;
import org.redisson.api.BatchOptions;
import org.redisson.api.BatchResult;
import org.redisson.api.RAtomicLong;
import org.redisson.api.RBatch;
import org.redisson.api.RBlockingQueue;
import org.redisson.api.RBloomFilter;
import org.redisson.api.RDelayedQueue;
import org.redisson.api.RLock;
import org.redisson.api.RMapCache;
import org.redisson.api.RPermitExpirableSemaphore;
import org.redisson.api.RRateLimiter;
import org.redisson.api.RReadWriteLock;
import org.redisson.api.RScoredSortedSet;
import org.redisson.api.RSemaphore;
import org.redisson.api.RateType;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/**
 * Redisson, for tests/clients/restarted.py: locks, collections and messages of two clients, through a kill of the server.
 *
 * <p>{@code RedissonChecks holder PORT} is another process, which takes a lock and holds it until it is killed.
 */
final class RedissonChecks {
  /** The watchdog renews a lock three times in this; a lock whose holder was killed is free after it. */
  private static final int LEASE_MS = 3_000;

  private static final long PAUSE_MS = 10;
  private static final long PATIENCE_SECONDS = 60;

  private final int port;
  private final RedissonClient a;
  private final RedissonClient b;
  private final ExecutorService other = Executors.newCachedThreadPool();

  private RedissonChecks(int port) {
    this.port = port;
    this.a = open(port);
    this.b = open(port);
  }

  private static RedissonClient open(int port) {
    Config config = new Config();
    config.setLockWatchdogTimeout(LEASE_MS);
    config.useSingleServer().setAddress("redis://127.0.0.1:" + port);
    return Redisson.create(config);
  }

  public static void main(String[] arguments) throws Exception {
    if (arguments[0].equals("version")) {
      System.out.println("redisson " + Checks.version(Redisson.class, "redisson"));
    } else if (arguments[0].equals("holder")) {
      open(Integer.parseInt(arguments[1])).getLock("held").lock();
      System.out.println("holding");
      Thread.sleep(Long.MAX_VALUE);
    } else {
      boolean passed = new RedissonChecks(Integer.parseInt(arguments[0])).run(arguments[1]);
      System.exit(passed ? 0 : 1);
    }
  }

  private boolean run(String mode) {
    return new Checks(mode)
        .check("lock_excludes", this::lockExcludes)
        .check("lock_is_renewed", this::lockIsRenewed)
        .check("holder_killed", this::holderKilled)
        .check("lock_sums", this::lockSums)
        .check("fair_lock", this::fairLock)
        .check("read_write_lock", this::readWriteLock)
        .check("map_cache", this::mapCache)
        .check("queues", this::queues)
        .check("delayed_queue", this::delayedQueue)
        .check("semaphore", this::semaphore)
        .check("expirable_permits", this::expirablePermits)
        .check("counters", this::counters)
        .check("topic", this::topic)
        .check("batch", this::batch)
        .check("sorted_set", this::sortedSet)
        .check("rate_limiter", this::rateLimiter)
        .check("bloom_filter", this::bloomFilter)
        .check("kept", this::kept)
        .check("answered_kept", this::answeredKept)
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

  private static <T> T soon(Future<T> future) throws Exception {
    return future.get(PATIENCE_SECONDS, TimeUnit.SECONDS);
  }

  // Locks.

  private void lockExcludes() throws Exception {
    RLock lock = a.getLock("excludes");
    RLock same = b.getLock("excludes");
    lock.lock();
    lock.lock();
    isTrue(!same.tryLock(), "two hold one lock");
    lock.unlock();
    isTrue(!same.tryLock(), "it was taken twice, and released once");
    Future<Boolean> waits =
        other.submit(
            () -> {
              boolean has = same.tryLock(PATIENCE_SECONDS, TimeUnit.SECONDS);
              same.unlock();
              return has;
            });
    Thread.sleep(50);
    isTrue(!waits.isDone(), "two hold one lock");
    lock.unlock();
    isTrue(soon(waits), "a free lock is not taken");
  }

  private void lockIsRenewed() throws Exception {
    RLock lock = a.getLock("renewed");
    lock.lock();
    long[] least = {LEASE_MS};
    until(
        () -> {
          long left = lock.remainTimeToLive();
          isTrue(left > 0, "the lock has ended");
          boolean wasRenewed = left > least[0] + LEASE_MS / 6;
          least[0] = Math.min(left, least[0]);
          return wasRenewed;
        });
    lock.unlock();
    isTrue(!b.getLock("renewed").isLocked(), "it stays locked");
  }

  private void holderKilled() throws Exception {
    Process holder =
        new ProcessBuilder("java", "-cp", System.getProperty("java.class.path"), "ferrite.RedissonChecks", "holder", "" + port)
            .redirectError(ProcessBuilder.Redirect.INHERIT)
            .start();
    RLock lock = b.getLock("held");
    try {
      equal(new BufferedReader(new InputStreamReader(holder.getInputStream())).readLine(), "holding");
      isTrue(!lock.tryLock(), "two processes hold one lock");
    } finally {
      holder.destroyForcibly().waitFor();
    }
    isTrue(lock.tryLock(PATIENCE_SECONDS, TimeUnit.SECONDS), "it stays locked");
    lock.unlock();
  }

  /** Eight threads of two clients add to a number that each reads and writes. */
  private void lockSums() throws Exception {
    List<Future<?>> adding = new ArrayList<>();
    for (int thread = 0; thread < 8; thread++) {
      RedissonClient client = thread % 2 == 0 ? a : b;
      adding.add(
          other.submit(
              () -> {
                for (int i = 0; i < 25; i++) {
                  RLock lock = client.getLock("sum lock");
                  lock.lock();
                  Integer before = client.<Integer>getBucket("sum").get();
                  client.<Integer>getBucket("sum").set(before == null ? 1 : before + 1);
                  lock.unlock();
                }
              }));
    }
    for (Future<?> each : adding) soon(each);
    equal(a.<Integer>getBucket("sum").get(), 200);
  }

  private void fairLock() throws Exception {
    RLock lock = a.getFairLock("fair");
    lock.lock();
    List<Integer> order = Collections.synchronizedList(new ArrayList<>());
    List<Future<?>> waiting = new ArrayList<>();
    for (int number = 0; number < 4; number++) {
      int serial = number;
      RLock mine = (number % 2 == 0 ? b : a).getFairLock("fair");
      waiting.add(
          other.submit(
              () -> {
                mine.lock();
                order.add(serial);
                mine.unlock();
              }));
      until(() -> a.getList("redisson_lock_queue:{fair}").size() == serial + 1);
    }
    lock.unlock();
    for (Future<?> each : waiting) soon(each);
    equal(order, List.of(0, 1, 2, 3));
  }

  private void readWriteLock() throws Exception {
    RReadWriteLock one = a.getReadWriteLock("read write");
    RReadWriteLock same = b.getReadWriteLock("read write");
    one.readLock().lock();
    isTrue(same.readLock().tryLock(), "two cannot read");
    isTrue(!other.submit(() -> same.writeLock().tryLock()).get(), "one writes while others read");
    one.readLock().unlock();
    same.readLock().unlock();
    one.writeLock().lock();
    isTrue(!same.readLock().tryLock(), "one reads while another writes");
    one.writeLock().unlock();
  }

  // Collections.

  private void mapCache() throws Exception {
    RMapCache<String, String> map = a.getMapCache("cache");
    RMapCache<String, String> same = b.getMapCache("cache");
    map.put("stays", "1");
    isTrue(map.fastPut("ends", "2", 300, TimeUnit.MILLISECONDS), "it was there");
    equal(same.get("ends"), "2");
    equal(same.getAll(Set.of("stays", "ends", "none")).size(), 2);
    until(() -> same.get("ends") == null);
    equal(map.putIfAbsent("stays", "3"), "1");
    isTrue(map.replace("stays", "1", "4"), "it was changed");
    equal(same.readAllMap(), java.util.Map.of("stays", "4"));
    equal(a.<String, Integer>getMapCache("numbers").addAndGet("number", 5), 5);
    equal(b.<String, Integer>getMapCache("numbers").addAndGet("number", -2), 3);
  }

  private void queues() throws Exception {
    RBlockingQueue<Integer> queue = a.getBlockingQueue("queue");
    Future<List<Integer>> taken =
        other.submit(
            () -> {
              List<Integer> found = new ArrayList<>();
              for (int i = 0; i < 100; i++) found.add(b.<Integer>getBlockingQueue("queue").take());
              return found;
            });
    for (int i = 0; i < 100; i++) queue.offer(i);
    equal(soon(taken), IntStream.range(0, 100).boxed().toList());
    equal(queue.poll(10, TimeUnit.MILLISECONDS), null);
    a.<String>getQueue("plain").addAll(List.of("one", "two", "three"));
    equal(b.<String>getQueue("plain").poll(2), List.of("one", "two"));
    equal(b.<String>getDeque("plain").pollLast(), "three");
    a.<Integer>getQueue("from").add(1);
    equal(a.<Integer>getQueue("from").pollLastAndOfferFirstTo("to"), 1);
    equal(b.<Integer>getQueue("to").peek(), 1);
  }

  @SuppressWarnings("deprecation")
  private void delayedQueue() throws Exception {
    RBlockingQueue<String> due = b.getBlockingQueue("due");
    RDelayedQueue<String> delayed = a.getDelayedQueue(a.getBlockingQueue("due"));
    long began = System.nanoTime();
    delayed.offer("late", 600, TimeUnit.MILLISECONDS);
    delayed.offer("early", 200, TimeUnit.MILLISECONDS);
    equal(due.poll(PATIENCE_SECONDS, TimeUnit.SECONDS), "early");
    isTrue(System.nanoTime() - began >= 190_000_000L, "before its time");
    equal(due.poll(PATIENCE_SECONDS, TimeUnit.SECONDS), "late");
    isTrue(System.nanoTime() - began >= 590_000_000L, "before its time");
    delayed.destroy();
  }

  private void semaphore() throws Exception {
    RSemaphore semaphore = a.getSemaphore("semaphore");
    RSemaphore same = b.getSemaphore("semaphore");
    isTrue(semaphore.trySetPermits(3), "it is there");
    semaphore.acquire(2);
    isTrue(same.tryAcquire(), "one is left");
    isTrue(!same.tryAcquire(), "none is left");
    Future<Boolean> waits = other.submit(() -> same.tryAcquire(2, Duration.ofSeconds(PATIENCE_SECONDS)));
    semaphore.release(2);
    isTrue(soon(waits), "free permits are not taken");
    equal(semaphore.availablePermits(), 0);
  }

  private void expirablePermits() throws Exception {
    RPermitExpirableSemaphore semaphore = a.getPermitExpirableSemaphore("permits");
    isTrue(semaphore.trySetPermits(2), "it is there");
    String ends = semaphore.acquire(300, TimeUnit.MILLISECONDS);
    String stays = b.getPermitExpirableSemaphore("permits").acquire();
    isTrue(semaphore.tryAcquire() == null, "none is left");
    String next = semaphore.tryAcquire(PATIENCE_SECONDS, TimeUnit.SECONDS);
    isTrue(next != null && !next.equals(ends), "a permit does not end");
    isTrue(!semaphore.tryRelease(ends), "an ended permit was released");
    semaphore.release(next);
    semaphore.release(stays);
    equal(semaphore.availablePermits(), 2);
  }

  private void counters() throws Exception {
    List<Future<?>> adding = new ArrayList<>();
    for (int thread = 0; thread < 4; thread++) {
      RedissonClient client = thread % 2 == 0 ? a : b;
      adding.add(
          other.submit(
              () -> {
                for (int i = 0; i < 100; i++) client.getAtomicLong("long").incrementAndGet();
                for (int i = 0; i < 100; i++) client.getAtomicDouble("double").addAndGet(0.5);
              }));
    }
    for (Future<?> each : adding) soon(each);
    equal(a.getAtomicLong("long").get(), 400L);
    equal(b.getAtomicDouble("double").get(), 200.0);
    isTrue(a.getAtomicLong("long").compareAndSet(400, 1), "it was changed");
    equal(b.getAtomicLong("long").getAndDelete(), 1L);
    a.getCountDownLatch("latch").trySetCount(2);
    Future<Boolean> waits = other.submit(() -> b.getCountDownLatch("latch").await(PATIENCE_SECONDS, TimeUnit.SECONDS));
    a.getCountDownLatch("latch").countDown();
    b.getCountDownLatch("latch").countDown();
    isTrue(soon(waits), "the latch stays shut");
  }

  private void topic() throws Exception {
    BlockingQueue<Integer> heard = new LinkedBlockingQueue<>();
    BlockingQueue<String> patterns = new LinkedBlockingQueue<>();
    b.getTopic("topic").addListener(Integer.class, (channel, message) -> heard.add(message));
    b.getPatternTopic("to*").addListener(Integer.class, (pattern, channel, message) -> patterns.add(channel.toString()));
    for (int i = 0; i < 100; i++) equal(a.getTopic("topic").publish(i), 2L);
    List<Integer> all = new ArrayList<>();
    while (all.size() < 100) all.add(heard.poll(PATIENCE_SECONDS, TimeUnit.SECONDS));
    all.sort(null);
    equal(all, IntStream.range(0, 100).boxed().toList());
    for (int i = 0; i < 100; i++) equal(patterns.poll(PATIENCE_SECONDS, TimeUnit.SECONDS), "topic");
    b.getTopic("topic").removeAllListeners();
  }

  private void batch() {
    for (BatchOptions.ExecutionMode mode : BatchOptions.ExecutionMode.values()) {
      if (mode.name().startsWith("REDIS_WRITE")) continue;
      RBatch batch = a.createBatch(BatchOptions.defaults().executionMode(mode));
      for (int i = 0; i < 1_000; i++) batch.getMap("batch").fastPutAsync(i, mode.name());
      batch.getAtomicLong("batches").incrementAndGetAsync();
      BatchResult<?> result = batch.execute();
      equal(result.getResponses().size(), 1_001);
      equal(b.getMap("batch").size(), 1_000);
      equal(b.getMap("batch").get(999), mode.name());
    }
  }

  private void sortedSet() {
    RScoredSortedSet<String> set = a.getScoredSortedSet("sorted");
    for (int i = 0; i < 100; i++) set.add(i, "member" + i);
    equal(b.<String>getScoredSortedSet("sorted").rank("member42"), 42);
    equal(set.addScoreAndGetRank("member0", 1_000), 99);
    equal(set.pollFirst(), "member1");
    equal(set.valueRangeReversed(0, 1), List.of("member0", "member99"));
    a.<Integer>getSet("set").addAll(IntStream.range(0, 5_000).boxed().toList());
    equal(b.<Integer>getSet("set").stream().mapToInt(Integer::intValue).sum(), 5_000 * 4_999 / 2);
    equal(a.getKeys().getKeysStream().filter("set"::equals).count(), 1L);
  }

  private void rateLimiter() {
    RRateLimiter limiter = a.getRateLimiter("limiter");
    isTrue(limiter.trySetRate(RateType.OVERALL, 5, Duration.ofHours(1)), "it is there");
    for (int i = 0; i < 5; i++) isTrue((i % 2 == 0 ? limiter : b.getRateLimiter("limiter")).tryAcquire(), i);
    isTrue(!b.getRateLimiter("limiter").tryAcquire(), "more than the limit");
  }

  private void bloomFilter() {
    RBloomFilter<Integer> filter = a.getBloomFilter("filter");
    isTrue(filter.tryInit(1_000, 0.01), "it is there");
    for (int i = 0; i < 1_000; i++) filter.add(i);
    RBloomFilter<Integer> same = b.getBloomFilter("filter");
    for (int i = 0; i < 1_000; i++) isTrue(same.contains(i), i);
    isTrue(IntStream.range(1_000, 2_000).filter(same::contains).count() < 100, "it contains all");
  }

  // A kill of the server.

  private void kept() throws Exception {
    a.<String>getBucket("kept").set("value");
    a.<String, Integer>getMap("kept map").put("key", 7);
    a.<String, String>getMapCache("kept cache").put("key", "long", 1, TimeUnit.HOURS);
    a.<String, String>getMapCache("kept cache").put("soon", "short", 300, TimeUnit.MILLISECONDS);
    a.<Integer>getQueue("kept queue").addAll(List.of(1, 2, 3));
    a.getSemaphore("kept semaphore").trySetPermits(5);
    a.getSemaphore("kept semaphore").acquire(2);
    RLock lock = a.getLock("kept lock");
    lock.lock(1, TimeUnit.HOURS);
    RLock renewed = a.getLock("kept renewed");
    renewed.lock();
    AtomicBoolean heard = new AtomicBoolean();
    b.getTopic("kept topic").addListener(String.class, (channel, message) -> heard.set(true));
    Future<Integer> taken = other.submit(() -> b.<Integer>getBlockingQueue("kept blocking").take());
    restart();
    equal(b.<String>getBucket("kept").get(), "value");
    equal(b.<String, Integer>getMap("kept map").get("key"), 7);
    equal(b.<String, String>getMapCache("kept cache").get("key"), "long");
    until(() -> b.<String, String>getMapCache("kept cache").get("soon") == null);
    equal(b.<Integer>getQueue("kept queue").readAll(), List.of(1, 2, 3));
    equal(b.getSemaphore("kept semaphore").availablePermits(), 3);
    isTrue(!b.getLock("kept lock").tryLock(), "two hold one lock");
    isTrue(lock.isHeldByCurrentThread(), "the lock is lost");
    lock.unlock();
    isTrue(b.getLock("kept lock").tryLock(), "it stays locked");
    // The watchdog goes on: the lock is there when its first lease has ended.
    long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(LEASE_MS + 500);
    while (System.nanoTime() < end) {
      isTrue(!b.getLock("kept renewed").tryLock(), "two hold one lock");
      Thread.sleep(100);
    }
    renewed.unlock();
    // Listeners subscribe again, and a queue is waited for again.
    until(
        () -> {
          a.getTopic("kept topic").publish("message");
          return heard.get();
        });
    a.<Integer>getBlockingQueue("kept blocking").offer(8);
    equal(soon(taken), 8);
  }

  /** Numbers that are counted while the server is killed: none that was answered is missing. */
  private void answeredKept() throws Exception {
    RAtomicLong number = a.getAtomicLong("answered");
    AtomicBoolean ended = new AtomicBoolean();
    CountDownLatch begun = new CountDownLatch(100);
    Future<Long> last =
        other.submit(
            () -> {
              long found = 0;
              while (!ended.get()) {
                try {
                  long next = number.incrementAndGet();
                  isTrue(next > found, next + " after " + found);
                  found = next;
                  begun.countDown();
                } catch (org.redisson.client.RedisException error) {
                  System.err.println(error);
                }
              }
              return found;
            });
    isTrue(begun.await(PATIENCE_SECONDS, TimeUnit.SECONDS), "nothing is counted");
    restart();
    long after = b.getAtomicLong("answered").get();
    until(() -> b.getAtomicLong("answered").get() > after + 100 || last.isDone());
    ended.set(true);
    long found = soon(last);
    isTrue(number.get() >= found, number.get() + " after " + found);
  }
}
