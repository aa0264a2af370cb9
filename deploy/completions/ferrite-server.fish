complete -c ferrite-server -l check-config -d 'Starts nothing: prints which directives of FILE are ignored or refused, and why' -r -F
complete -c ferrite-server -l check-log -d 'Reads the log in DIR, which no server may use meanwhile, and tells what is wrong with it' -r -f
complete -c ferrite-server -l repair-log -d 'The same, and mends it; what is taken out is kept in DIR/lost' -r -f
complete -c ferrite-server -l bind -d 'The addresses to listen on; * is every IPv4 address and ::* every IPv6 one' -r -f
complete -c ferrite-server -s p -l port -d 'The TCP port to listen on; 0 turns TCP off' -r -f
complete -c ferrite-server -l tcp-backlog -d 'How many connections may wait to be accepted; the kernel may lower it' -r -f
complete -c ferrite-server -l unixsocket -d 'The path of a unix socket to listen on as well; empty for none' -r -F
complete -c ferrite-server -l unixsocketperm -d 'The permissions of the unix socket, in octal; 0 leaves them to the umask' -r -f
complete -c ferrite-server -l timeout -d 'Seconds without a request after which a client is disconnected; 0 is never' -r -f
complete -c ferrite-server -l tcp-keepalive -d 'Seconds between probes that find out whether a silent client is still there; 0 sends none' -r -f
complete -c ferrite-server -l protected-mode -d 'Refuses clients from other machines as long as no password is set' -r -f -a "yes\t''
no\t''"
complete -c ferrite-server -l requirepass -d 'The password that a client has to send before anything else; empty for none' -r -f
complete -c ferrite-server -l enable-debug-command -d 'Who may use DEBUG: nobody, everybody, or clients on this machine' -r -f -a "no\t''
yes\t''
local\t''"
complete -c ferrite-server -l maxclients -d 'The most clients at the same time; further ones are refused' -r -f
complete -c ferrite-server -l client-output-buffer-limit -d 'How many bytes of replies may wait for a client: it is disconnected at the hard limit, or once it was beyond the soft limit for so many seconds; 0 is no limit' -r -f
complete -c ferrite-server -l client-query-buffer-limit -d 'How many bytes of an unfinished request are kept before its client is disconnected' -r -f
complete -c ferrite-server -l tracking-table-max-keys -d 'How many keys are remembered for clients that keep copies of them (CLIENT TRACKING): beyond it, clients are told to drop some; 0 is no limit' -r -f
complete -c ferrite-server -l proto-max-bulk-len -d 'The longest argument of a request and the longest value of a key, in bytes' -r -f
complete -c ferrite-server -l busy-reply-threshold -d 'Milliseconds after which requests that wait for a script are answered BUSY' -r -f
complete -c ferrite-server -s w -l threads -d 'The worker threads that serve clients; 0 takes one for each CPU that the process may use' -r -f
complete -c ferrite-server -l io -d 'How workers wait for the network; auto takes what measured best' -r -f -a "auto\t''
epoll\t''
uring\t''
portable\t''"
complete -c ferrite-server -l shards -d 'The separately locked parts of each database; 0 chooses by the number of threads' -r -f
complete -c ferrite-server -l databases -d 'The number of databases that SELECT can choose from' -r -f
complete -c ferrite-server -s m -l maxmemory -d 'The memory that the process may take, in bytes or as a share such as 80% of what it may use of this machine; 0 is no limit' -r -f -a "SIZE\t''
PERCENT\t''"
complete -c ferrite-server -l maxmemory-policy -d 'What happens at the limit of memory: offload leaves values that were not used lately in the log alone (docs/offload.md), noeviction refuses writes, the others evict keys, of all or of those with an expiry' -r -f
complete -c ferrite-server -l maxmemory-samples -d 'How many keys volatile-ttl compares to find the one that expires first' -r -f
complete -c ferrite-server -l maxmemory-eviction-tenacity -d 'How long a command evicts before it lets others go first: 500 us for 10, longer for more, without end for 100' -r -f
complete -c ferrite-server -l lfu-log-factor -d 'How slowly the count of uses grows that OBJECT FREQ tells' -r -f
complete -c ferrite-server -l lfu-decay-time -d 'The minutes without use after which that count is less by one; 0 is never' -r -f
complete -c ferrite-server -l hash-max-listpack-entries -d 'The fields beyond which OBJECT ENCODING calls a hash hashtable' -r -f
complete -c ferrite-server -l hash-max-listpack-value -d 'The bytes of a field or a value beyond which OBJECT ENCODING calls a hash hashtable' -r -f
complete -c ferrite-server -l hll-sparse-max-bytes -d 'The bytes beyond which PFADD and PFMERGE write a HyperLogLog in the dense form, which has 12304 bytes' -r -f
complete -c ferrite-server -l list-max-listpack-size -d 'The elements up to which OBJECT ENCODING calls a list listpack; or the bytes: -1 is 4 KiB, -2 is 8 KiB, up to -5 for 64 KiB' -r -f
complete -c ferrite-server -l stream-node-max-entries -d 'The entries that XADD and XTRIM remove together where they trim with ~; 0 is no limit' -r -f
complete -c ferrite-server -l stream-node-max-bytes -d 'The bytes of entries that XADD and XTRIM remove together where they trim with ~, about; 0 is no limit' -r -f
complete -c ferrite-server -l set-max-intset-entries -d 'The members up to which OBJECT ENCODING calls a set of integers intset' -r -f
complete -c ferrite-server -l set-max-listpack-entries -d 'The members up to which OBJECT ENCODING calls any other set listpack' -r -f
complete -c ferrite-server -l set-max-listpack-value -d 'The bytes of a member up to which OBJECT ENCODING calls a set listpack' -r -f
complete -c ferrite-server -l zset-max-listpack-entries -d 'The members beyond which OBJECT ENCODING calls a sorted set skiplist' -r -f
complete -c ferrite-server -l zset-max-listpack-value -d 'The bytes of a member beyond which OBJECT ENCODING calls a sorted set skiplist' -r -f
complete -c ferrite-server -l maxmemory-clients -d 'The memory that the buffers of all clients may take, in bytes or as a share such as 5% of maxmemory, before the largest are disconnected; 0 is an eighth of maxmemory' -r -f -a "SIZE\t''
PERCENT\t''"
complete -c ferrite-server -s d -l dir -d 'The directory to work in; relative paths of other settings start there' -r -f -a "(__fish_complete_directories)"
complete -c ferrite-server -l appendonly -d 'Whether writes are kept on disk, in a log that the server starts from' -r -f -a "yes\t''
no\t''"
complete -c ferrite-server -l appendfsync -d 'When the log is made durable: before each reply, once a second, or when the system likes to' -r -f -a "always\t''
everysec\t''
no\t''"
complete -c ferrite-server -l appenddirname -d 'The directory of the log, in `dir`' -r -F
complete -c ferrite-server -l aof-load-truncated -d 'Whether an append-only file of redis-server that ends in the middle of a command is taken over without that command' -r -f -a "yes\t''
no\t''"
complete -c ferrite-server -l backup-dir -d 'The directory that BACKUP makes backups in, each in a directory of its name' -r -F
complete -c ferrite-server -l auto-aof-rewrite-percentage -d 'Accepted, and changes nothing: the log is kept small all the time, a segment after the other' -r -f
complete -c ferrite-server -l auto-aof-rewrite-min-size -d 'Accepted, and changes nothing, as `auto-aof-rewrite-percentage`' -r -f
complete -c ferrite-server -l log-lazy-load-size -d 'With maxmemory-policy offload, a log of at least so many bytes is loaded without its values: the server serves, and they come back in the background; 0 is never' -r -f
complete -c ferrite-server -l log-segment-size -d 'The size of the files that the log consists of' -r -f
complete -c ferrite-server -l log-blob-size -d 'The length from which on a value that SET brings goes to a file of its own in the log\'s directory while it arrives, and GET sends it from there, so that neither takes memory' -r -f
complete -c ferrite-server -l save -d 'When to write a snapshot: after so many seconds if there were at least so many changes' -r -f
complete -c ferrite-server -l dbfilename -d 'The file of the snapshot, in dir' -r -f
complete -c ferrite-server -l rdbcompression -d 'Compresses strings of more than 20 bytes in snapshots' -r -f -a "yes\t''
no\t''"
complete -c ferrite-server -l rdbchecksum -d 'Ends snapshots with a checksum, and compares it when one is loaded' -r -f -a "yes\t''
no\t''"
complete -c ferrite-server -l stop-writes-on-bgsave-error -d 'Refuses writes as long as there are save points and the last snapshot could not be written' -r -f -a "yes\t''
no\t''"
complete -c ferrite-server -l rdb-save-incremental-fsync -d 'Writes a snapshot to the disk while it is made, past the page cache where that can be done, not all of it at its end' -r -f -a "yes\t''
no\t''"
complete -c ferrite-server -l rdb-del-sync-files -d 'Removes snapshots that were only made for replicas' -r -f -a "yes\t''
no\t''"
complete -c ferrite-server -l rdb-key-save-delay -d 'Microseconds to wait at each key that a snapshot in the background writes' -r -f
complete -c ferrite-server -l key-load-delay -d 'Microseconds to wait at each key that is loaded from a snapshot' -r -f
complete -c ferrite-server -l daemonize -d 'Goes on in the background once the server has started' -r -f -a "yes\t''
no\t''"
complete -c ferrite-server -l pidfile -d 'The file that holds the number of the server\'s process while it runs; empty for none' -r -F
complete -c ferrite-server -l loglevel -d 'The least important messages that are still logged' -r -f -a "debug\t''
verbose\t''
notice\t''
warning\t''"
complete -c ferrite-server -l logfile -d 'The file that messages of the server are appended to; empty for the standard output' -r -F
complete -c ferrite-server -l always-show-logo -d 'Shows the logo at the start though messages go to no terminal' -r -f -a "yes\t''
no\t''"
complete -c ferrite-server -l hz -d 'How often per second each worker does its housekeeping' -r -f
complete -c ferrite-server -l http-port -d 'The TCP port of the dashboard, of /metrics for Prometheus, and of /healthz and /readyz; 0 turns HTTP off' -r -f
complete -c ferrite-server -l http-bind -d 'The addresses to listen on for HTTP, as in bind' -r -f
complete -c ferrite-server -l http-hosts -d 'Names under which browsers and monitoring systems may ask for this server over HTTP, beside addresses and localhost: without requirepass a request for any other host is refused (DNS rebinding)' -r -f
complete -c ferrite-server -l slowlog-log-slower-than -d 'Microseconds from which on a command is kept in the slow log; 0 keeps every command, -1 none' -r -f
complete -c ferrite-server -l slowlog-max-len -d 'The most commands that the slow log keeps' -r -f
complete -c ferrite-server -l latency-monitor-threshold -d 'Milliseconds from which on LATENCY keeps an event; 0 turns it off' -r -f
complete -c ferrite-server -l notify-keyspace-events -d 'Which changes of keys are published: K to the channel __keyspace@N__:KEY, E to the channel __keyevent@N__:EVENT, and of which class: g general, $ strings, l lists, s sets, h hashes, z sorted sets, t streams, d modules, x expired, e evicted, A all of these, n new keys, m missed keys' -r -f
complete -c ferrite-server -l cluster-enabled -d 'Serves the hash slots that the map of a cluster gives to this node, and sends clients elsewhere for all others (docs/cluster.md)' -r -f -a "yes\t''
no\t''"
complete -c ferrite-server -l cluster-map -d 'The file that says which node has which hash slots' -r -F
complete -c ferrite-server -l cluster-node -d 'The id of this node in the map; empty: the node whose address and port are those of this server' -r -f
complete -c ferrite-server -l cluster-require-full-coverage -d 'Serves no key at all while some slot has no node' -r -f -a "yes\t''
no\t''"
complete -c ferrite-server -l cluster-allow-reads-when-down -d 'Serves reads even while some slot has no node and cluster-require-full-coverage is set' -r -f -a "yes\t''
no\t''"
complete -c ferrite-server -l cluster-allow-pubsubshard-when-down -d 'Serves shard channels even then' -r -f -a "yes\t''
no\t''"
complete -c ferrite-server -l cluster-announce-ip -d 'The address that this node tells clients of itself; empty: the host in the map' -r -f
complete -c ferrite-server -l cluster-announce-port -d 'The port that this node tells clients of itself; 0: the port in the map' -r -f
complete -c ferrite-server -l cluster-announce-hostname -d 'The name that this node tells clients of its host; empty: the hostname in the map' -r -f
complete -c ferrite-server -l cluster-preferred-endpoint-type -d 'What clients are to connect to: the address of a node, the name of its host, or whatever they are connected to already' -r -f -a "ip\t''
hostname\t''
unknown-endpoint\t''"
complete -c ferrite-server -s h -l help -d 'Prints all flags'
complete -c ferrite-server -s v -l version -d 'Prints the version'
complete -c ferrite-server -l health -d 'Asks a running server for a PING, and ends with 0 if it answers'
