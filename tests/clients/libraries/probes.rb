# What well-known libraries for Ruby do with a server, each as its documentation begins. The first argument is the name of one.
# A library that works ends with 0.

require "sidekiq"
require "sidekiq/api"

URL = "redis://127.0.0.1:#{ENV.fetch("LIBRARIES_PORT")}"

# A job that notes its argument.
class Noted
  include Sidekiq::Worker

  def perform(word)
    Sidekiq.redis { |redis| redis.lpush("noted", word) }
  end
end

# A worker of Sidekiq does a job at once, and one that is due later.
def sidekiq
  redis = Redis.new(url: URL)
  Sidekiq.configure_client { |config| config.redis = { url: URL } }
  Noted.perform_async("now")
  Noted.perform_in(1, "later")
  worker = fork do
    require "sidekiq/cli"
    Sidekiq.options[:poll_interval_average] = 0.1
    Sidekiq.configure_server { |config| config.redis = { url: URL } }
    cli = Sidekiq::CLI.instance
    cli.parse(["--require", __FILE__, "--concurrency", "1"])
    cli.run(boot_app: false)
  end
  noted = 2.times.map { redis.brpop("noted", timeout: 30)&.last }
  Process.kill("TERM", worker)
  Process.wait(worker)
  raise "Error: #{noted}" if noted != %w[now later]
end

send(ARGV.fetch(0))
