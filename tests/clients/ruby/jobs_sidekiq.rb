# Sidekiq, for tests/clients/jobs.py, which says what its parts print.
#
# A job runs at most once: a worker takes it out of its list by BRPOP, and one that a killed worker has taken is lost. So is a job
# with a delay that a worker has taken out of the sorted set, and has not added to a list yet. A request that got no reply is
# sent once more, so that such a job may be added to its list twice. Jobs of one priority are a list of their own.

require "sidekiq"
require "sidekiq/api"

# The threads of a worker, and the one that looks for jobs that are due.
CAPABILITIES = "lost=5 delays doubles order priorities"
PAUSE_SECONDS = 0.01
LOOK_SECONDS = 0.1
# Calls of its own.
Redis.silence_deprecations = true
# A log is no answer.
ANSWERS = $stdout.dup
$stdout.reopen($stderr)

def tell(*words)
  # In one piece, also beside other threads.
  ANSWERS.syswrite(words.join(" ") + "\n")
end

def now
  Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
end

# Words such as `delay=100` as a hash.
def options(words)
  words.to_h { |word| word.split("=") }.transform_values(&:to_i)
end

def queue_of(name, priority)
  priority ? "#{name}-#{priority}" : name
end

# A job: it may be held once its worker has finished enough.
class Perform
  include Sidekiq::Worker

  class << self
    attr_accessor :chosen, :finished
  end

  def perform(job)
    tell("started", now, job)
    chosen = Perform.chosen
    if chosen["hold"] && Perform.finished >= chosen["hold"]
      tell("holding", job)
      sleep
    end
    sleep(chosen["work"] / 1000.0)
    tell("finished", now, job)
    Perform.finished += 1
  end
end

# Adds jobs, and counts those that are left.
class Producer
  def initialize(port)
    # A request that got no reply is not sent again.
    Sidekiq.configure_client { |config| config.redis = { url: "redis://127.0.0.1:#{port}", reconnect_attempts: 0 } }
  end

  def run
    $stdin.each_line do |line|
      request, name, *words = line.split
      case request
      when "add" then add(name, words[0], options(words.drop(1)))
      when "left" then tell("left", name, insist { left(name) })
      end
    end
  end

  def add(name, job, chosen)
    asked = now
    item = { "class" => Perform, "queue" => queue_of(name, chosen["priority"]), "args" => [job] }
    item["at"] = Time.now.to_f + chosen["delay"] / 1000.0 if chosen["delay"]
    tell("added", asked, job, Sidekiq::Client.push(item))
  rescue Redis::BaseConnectionError => error
    warn(error.full_message)
    sleep(PAUSE_SECONDS)
    tell("cut", asked, job)
  end

  # Jobs that wait, have a delay, are to be tried again, or have failed.
  def left(name)
    is_of_queue = ->(queue) { queue == name || queue.start_with?("#{name}-") }
    waiting = Sidekiq::Queue.all.select { |queue| is_of_queue.call(queue.name) }.sum(&:size)
    sets = [Sidekiq::ScheduledSet, Sidekiq::RetrySet, Sidekiq::DeadSet]
    waiting + sets.sum { |set| set.new.count { |job| is_of_queue.call(job.queue) } }
  end

  # Asks until there is an answer.
  def insist
    yield
  rescue Redis::BaseConnectionError => error
    warn(error.full_message)
    sleep(PAUSE_SECONDS)
    retry
  end
end

def work(port, name, chosen)
  # A process with this file is a worker, and configures itself as one.
  require "sidekiq/cli"
  Perform.chosen, Perform.finished = chosen, 0
  priorities = chosen["priorities"] ? (1..chosen["priorities"]).to_a : [nil]
  # Strictly in this order.
  queues = priorities.flat_map { |priority| ["--queue", queue_of(name, priority)] }
  Sidekiq.options[:poll_interval_average] = LOOK_SECONDS
  Sidekiq.configure_server { |config| config.redis = { url: "redis://127.0.0.1:#{port}" } }
  Thread.new do
    $stdin.read
    Process.kill("TERM", Process.pid)
  end
  cli = Sidekiq::CLI.instance
  cli.parse(["--require", __FILE__, "--concurrency", chosen["concurrency"].to_s, *queues])
  cli.run(boot_app: false)
end

part, port, name, *words = ARGV
case part
when "version" then tell("sidekiq", Sidekiq::VERSION)
when "capabilities" then tell(CAPABILITIES)
when "producer" then Producer.new(port).run
when "worker" then work(port, name, options(words))
end
