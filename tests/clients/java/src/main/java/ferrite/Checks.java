package ferrite;

import java.util.Arrays;
import java.util.Objects;
import java.util.concurrent.Callable;

/** What the two Java clients share: where the servers are, assertions, and the printing of one line per check. */
final class Checks {
  static final int PORT = Integer.parseInt(System.getenv("CLIENTS_PORT"));
  static final int LOCKED_PORT = Integer.parseInt(System.getenv("CLIENTS_LOCKED_PORT"));
  static final String PASSWORD = System.getenv("CLIENTS_PASSWORD");
  private static final int DEEPEST = Integer.parseInt(System.getenv("CLIENTS_DEEPEST"));
  /** Pipelines: how many requests, and the bytes of the value that each is answered with. */
  static final int[][] DEPTHS = {
    {1, 1}, {DEEPEST, 1}, {DEEPEST / 10, 1_000}, {DEEPEST / 1_000, 100_000}, {DEEPEST / 10_000, 1_000_000}
  };
  static final byte[] MEGABYTE = megabyte();

  private final String mode;
  private boolean passed = true;

  Checks(String mode) {
    this.mode = mode;
  }

  interface Body {
    void run() throws Exception;
  }

  /** Runs one check and prints its line. */
  Checks check(String name, Body body) {
    try {
      body.run();
      System.out.println("ok " + mode + " " + name);
    } catch (Exception | AssertionError failure) {
      failure.printStackTrace();
      System.out.println("not ok " + mode + " " + name + ": " + failure);
      passed = false;
    }
    return this;
  }

  boolean passed() {
    return passed;
  }

  static void equal(Object actual, Object expected) {
    if (!Objects.deepEquals(actual, expected)) {
      throw new AssertionError("got " + show(actual) + ", expected " + show(expected));
    }
  }

  private static String show(Object value) {
    String shown = value instanceof byte[] bytes ? Arrays.toString(bytes) : String.valueOf(value);
    return shown.length() > 200 ? shown.substring(0, 200) + "..." : shown;
  }

  static void isTrue(boolean condition, Object detail) {
    if (!condition) throw new AssertionError(show(detail));
  }

  /** Fails unless low < actual <= high. */
  static void between(long actual, long low, long high) {
    isTrue(actual > low && actual <= high, "got " + actual + ", expected above " + low + ", at most " + high);
  }

  /** Returns the exception of exactly this class that the call throws. */
  static <E extends Exception> E fails(Class<E> kind, Callable<?> call) {
    Object result;
    try {
      result = call.call();
    } catch (Exception failure) {
      if (failure.getClass() == kind) return kind.cast(failure);
      throw new AssertionError("threw " + failure + ", expected " + kind.getName(), failure);
    }
    throw new AssertionError("returned " + show(result) + ", expected " + kind.getName());
  }

  private static byte[] megabyte() {
    byte[] bytes = new byte[1 << 20];
    for (int i = 0; i < bytes.length; i++) bytes[i] = (byte) i;
    return bytes;
  }

  /** The version in the name of the jar that a class came from. */
  static String version(Class<?> of, String artifact) {
    String jar = of.getProtectionDomain().getCodeSource().getLocation().getPath();
    return jar.replaceAll(".*/" + artifact + "-(.*)\\.jar", "$1");
  }
}
