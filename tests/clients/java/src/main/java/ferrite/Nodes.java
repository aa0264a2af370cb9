package ferrite;

import static ferrite.Checks.equal;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.function.Consumer;
import java.util.function.Supplier;
import java.util.stream.IntStream;

/** What the two Java cluster clients share: the nodes, what the runner does on request, and the check of maps that change. */
final class Nodes {
  /** How many keys `key:0`, `key:1`, ... the checks write. */
  static final int KEYS = 10_000;
  /** The port of the first node, and hash tags at home at each of them. */
  static final int PORT = Integer.parseInt(System.getenv("CLIENTS_NODES").split(" ")[0].split(":")[1]);
  static final List<String> TAGS = List.of(System.getenv("CLIENTS_TAGS").split(" "));

  private static final BufferedReader ANSWERS = new BufferedReader(new InputStreamReader(System.in));

  private Nodes() {}

  /** Asks the runner for something, and waits until it is done. */
  static void please(String wish) throws IOException {
    System.out.println("please " + wish);
    equal(ANSWERS.readLine(), "done");
  }

  static String key(int number) {
    return "key:" + number;
  }

  /** The values of all keys with one mark. */
  static List<String> marked(String mark) {
    return IntStream.range(0, KEYS).mapToObj(number -> mark + number).toList();
  }

  /** All values are the keys' own, whatever their mark. */
  static void own(List<String> values) {
    equal(values.stream().map(value -> value.substring(1)).toList(), marked(""));
  }

  /** `write` gives every key a value with a mark, `read` returns all values. */
  static void reload(Consumer<String> write, Supplier<List<String>> read) throws IOException {
    please("swap");
    write.accept("b");
    equal(read.get(), marked("b"));
    please("swap");
    // What has moved lies where it was before, with the values of then.
    List<String> values = read.get();
    own(values);
    long moved = values.stream().filter(value -> value.startsWith("a")).count();
    equal(String.valueOf(moved), System.getenv("CLIENTS_MOVED"));
    please("swap");
    equal(read.get(), marked("b"));
    please("swap");
    equal(read.get(), values);
  }

  /** Asks again every few milliseconds until the call returns this. */
  static void until(Object expected, Callable<?> call) throws InterruptedException {
    for (int i = 0; i < 3000; i++) {
      try {
        if (expected.equals(call.call())) return;
      } catch (Exception failure) {
        // It is not up yet.
      }
      Thread.sleep(10);
    }
    throw new AssertionError("it did not come true");
  }
}
