complete -c ferrite-cli -s h -l host -d 'The server\'s name or address (127.0.0.1)' -r -f -a "(__fish_print_hostnames)"
complete -c ferrite-cli -s p -l port -d 'The server\'s port (6379)' -r -f
complete -c ferrite-cli -s s -l socket -d 'The server\'s unix socket, instead of host and port' -r -F
complete -c ferrite-cli -s u -l uri -d 'redis://[[USER:]PASSWORD@]HOST[:PORT][/DB], or unix://[[USER:]PASSWORD@]PATH[?db=DB]' -r -f
complete -c ferrite-cli -s a -l pass -d 'The password' -r -f
complete -c ferrite-cli -l user -d 'The user to whom the password belongs, if not the default user' -r -f
complete -c ferrite-cli -s n -l db -d 'The database (0)' -r -f
complete -c ferrite-cli -s t -l timeout -d 'How long to try to connect (as long as the system does)' -r -f
complete -c ferrite-cli -s r -l repeat -d 'Runs the command COUNT times, for ever if negative; or ends --stat and its like after COUNT lines' -r -f
complete -c ferrite-cli -s i -l interval -d 'Pause between repetitions, like 0.1; between lines of --stat, --scan and --latency; per 100 SCANs of --bigkeys and its like' -r -f
complete -c ferrite-cli -s X -l stdin-tag -d 'The argument TAG stands for what standard input holds' -r -f
complete -c ferrite-cli -l eval -d 'Runs the script in FILE; keys and arguments follow: KEY' -r -F
complete -c ferrite-cli -s d -l delimiter -d 'What --raw puts between elements (a line break)' -r -f
complete -c ferrite-cli -s D -l reply-delimiter -d 'What --raw puts behind a reply (a line break)' -r -f
complete -c ferrite-cli -l show-pushes -d 'Whether RESP3 messages that nobody asked for are shown (yes on a terminal)' -r -f -a "yes\t''
no\t''"
complete -c ferrite-cli -l intrinsic-latency -d 'How long this machine keeps a program from running at most; needs no server' -r -f
complete -c ferrite-cli -l lru-test -d 'Writes and reads KEYS keys as a cache does, 80 % of it at 20 % of them, and tells the share of hits' -r -f
complete -c ferrite-cli -l memkeys-samples -d 'The same, from a look at COUNT elements of each value' -r -f
complete -c ferrite-cli -l keystats-samples -d 'The same, from a look at COUNT elements of each value' -r -f
complete -c ferrite-cli -l pattern -d 'Only keys that match, like \'user:*\'' -r -f
complete -c ferrite-cli -l quoted-pattern -d 'The same, quoted, so that it may hold any byte' -r -f
complete -c ferrite-cli -l count -d 'How many keys a SCAN looks at' -r -f
complete -c ferrite-cli -l cursor -d 'Where --keystats begins (0): it names the place when it is interrupted' -r -f
complete -c ferrite-cli -l top -d 'How many of the largest keys --keystats lists (10)' -r -f
complete -c ferrite-cli -l pipe-timeout -d 'How long --pipe waits for a reply once all is sent (30); for ever if 0' -r -f
complete -c ferrite-cli -l rdb -d 'Saves the data as an RDB file, as a replica gets it, at one point in time; - is standard output' -r -F
complete -c ferrite-cli -l functions-rdb -d 'Saves the libraries of functions as an RDB file; Ferrite has them, too' -r -F
complete -c ferrite-cli -l config -d 'Reads flags from FILE, one a line, without dashes, like `port 7000`' -r -F
complete -c ferrite-cli -l cluster -d 'Administration of a cluster of Redis' -r -f
complete -c ferrite-cli -l askpass -d 'Asks for the password'
complete -c ferrite-cli -l no-auth-warning -d 'No warning about a password on the command line'
complete -c ferrite-cli -s 2 -l resp2 -d 'RESP2, the protocol without types (usual)'
complete -c ferrite-cli -s 3 -l resp3 -d 'RESP3, the protocol with types'
complete -c ferrite-cli -s 4 -l ipv4 -d 'Tries addresses of IPv4 first'
complete -c ferrite-cli -s 6 -l ipv6 -d 'Tries addresses of IPv6 first'
complete -c ferrite-cli -s c -l follow -d 'Follows MOVED and ASK to other nodes of a cluster, outside of transactions; --scan, --bigkeys and its like, and export go through all nodes; import writes each key to its node'
complete -c ferrite-cli -s x -l stdin -d 'The last argument is what standard input holds'
complete -c ferrite-cli -l quoted-input -d 'Arguments may be quoted: \'"a\\x00b"\' is three bytes'
complete -c ferrite-cli -s e -l exit-on-error -d 'An error reply goes to standard error, and ends with code 1; so does a line of standard input with an open quote'
complete -c ferrite-cli -l non-interactive -d 'Never a prompt: without a command, a PING whose answer is the exit code'
complete -c ferrite-cli -l raw -d 'The bytes (usual where the output is no terminal)'
complete -c ferrite-cli -l no-raw -d 'Types, indices and quotes (usual on a terminal)'
complete -c ferrite-cli -l csv -d 'Values between commas'
complete -c ferrite-cli -l json -d 'JSON; over RESP3 if the server speaks it, unless -2 says otherwise'
complete -c ferrite-cli -l quoted-json -d 'JSON of ASCII: strings keep the escapes of --no-raw'
complete -c ferrite-cli -l stat -d 'A line per second: keys, memory, clients, requests'
complete -c ferrite-cli -l replica -d 'The changes that a replica is told, one a line'
complete -c ferrite-cli -l latency -d 'The time a PING takes, in milliseconds, again and again; where the output is no terminal, for a second (-i) only'
complete -c ferrite-cli -l latency-history -d 'The same, a line every 15 seconds (-i)'
complete -c ferrite-cli -l latency-dist -d 'The same as a spectrum in colors, a line per second (-i)'
complete -c ferrite-cli -l scan -d 'Lists all keys'
complete -c ferrite-cli -l bigkeys -d 'The keys of each type with most elements'
complete -c ferrite-cli -l memkeys -d 'The keys of each type that take most memory'
complete -c ferrite-cli -l keystats -d 'Both, with the largest keys of all and how sizes are distributed'
complete -c ferrite-cli -l hotkeys -d 'The keys used most; a server other than Ferrite needs a policy of LFU'
complete -c ferrite-cli -l pipe -d 'Sends standard input, which holds requests, as it is, and counts the replies'
complete -c ferrite-cli -l skip-unsupported -d 'import and export leave out keys of other types than strings, hashes, sets, sorted sets, lists and streams, instead of ending there'
complete -c ferrite-cli -l keep-existing -d 'import leaves alone the keys that the server has'
complete -c ferrite-cli -l verbose -d 'Tells on standard error what the connection does'
complete -c ferrite-cli -l help -d 'Prints this text'
complete -c ferrite-cli -s v -l version -d 'Prints the version'
complete -c ferrite-cli -l tls -d 'A connection with TLS'
complete -c ferrite-cli -l ldb -d 'The debugger of scripts'
complete -c ferrite-cli -n '__fish_is_nth_token 1' -a 'APPEND ASKING AUTH BACKUP BGREWRITEAOF BGSAVE BIGKEYS BITCOUNT BITFIELD BITFIELD_RO BITOP BITPOS BLMOVE BLMPOP BLPOP BRPOP BRPOPLPUSH BZMPOP BZPOPMAX BZPOPMIN CLIENT CLUSTER COMMAND CONFIG COPY DBSIZE DEBUG DECR DECRBY DEL DELEX DELIFEQ DIGEST DISCARD DUMP ECHO EVAL EVALSHA EVALSHA_RO EVAL_RO EXEC EXISTS EXPIRE EXPIREAT EXPIRETIME FCALL FCALL_RO FLUSHALL FLUSHDB FUNCTION GEOADD GEODIST GEOHASH GEOPOS GEORADIUS GEORADIUSBYMEMBER GEORADIUSBYMEMBER_RO GEORADIUS_RO GEOSEARCH GEOSEARCHSTORE GET GETBIT GETDEL GETEX GETRANGE GETSET HDEL HELLO HEXISTS HEXPIRE HEXPIREAT HEXPIRETIME HGET HGETALL HGETDEL HGETEX HINCRBY HINCRBYFLOAT HKEYS HLEN HMGET HMSET HOTKEYS HPERSIST HPEXPIRE HPEXPIREAT HPEXPIRETIME HPTTL HRANDFIELD HSCAN HSET HSETEX HSETNX HSTRLEN HTTL HVALS INCR INCRBY INCRBYFLOAT INFO KEYS LASTSAVE LATENCY LCS LINDEX LINSERT LLEN LMOVE LMPOP LOLWUT LPOP LPOS LPUSH LPUSHX LRANGE LREM LSET LTRIM MEMORY MGET MIGRATE MODULE MONITOR MOVE MSET MSETEX MSETNX MULTI OBJECT PERSIST PEXPIRE PEXPIREAT PEXPIRETIME PFADD PFCOUNT PFDEBUG PFMERGE PFSELFTEST PING PREFIXES PSETEX PSUBSCRIBE PTTL PUBLISH PUBSUB PUNSUBSCRIBE QUIT RANDOMKEY READONLY READWRITE RENAME RENAMENX REPLCONF RESET RESTORE RESTORE-ASKING ROLE RPOP RPOPLPUSH RPUSH RPUSHX SADD SAVE SCAN SCARD SCRIPT SDIFF SDIFFSTORE SELECT SET SETBIT SETEX SETNX SETRANGE SHUTDOWN SINTER SINTERCARD SINTERSTORE SISMEMBER SLOWLOG SMEMBERS SMISMEMBER SMOVE SORT SORT_RO SPOP SPUBLISH SRANDMEMBER SREM SSCAN SSUBSCRIBE STRLEN SUBSCRIBE SUBSTR SUNION SUNIONSTORE SUNSUBSCRIBE SWAPDB SYNC TIME TOUCH TTL TYPE UNLINK UNSUBSCRIBE UNWATCH WAIT WAITAOF WATCH XACK XACKDEL XADD XAUTOCLAIM XCFGSET XCLAIM XDEL XDELEX XGROUP XINFO XLEN XPENDING XRANGE XREAD XREADGROUP XREVRANGE XSETID XTRIM ZADD ZCARD ZCOUNT ZDIFF ZDIFFSTORE ZINCRBY ZINTER ZINTERCARD ZINTERSTORE ZLEXCOUNT ZMPOP ZMSCORE ZPOPMAX ZPOPMIN ZRANDMEMBER ZRANGE ZRANGEBYLEX ZRANGEBYSCORE ZRANGESTORE ZRANK ZREM ZREMRANGEBYLEX ZREMRANGEBYRANK ZREMRANGEBYSCORE ZREVRANGE ZREVRANGEBYLEX ZREVRANGEBYSCORE ZREVRANK ZSCAN ZSCORE ZUNION ZUNIONSTORE check-log cluster export help import peek'
complete -c ferrite-cli -n '__fish_seen_subcommand_from cluster; and __fish_is_nth_token 2' -a 'local deploy status bench stop rebalance'
complete -c ferrite-cli -n '__fish_seen_subcommand_from cluster; and __fish_seen_subcommand_from local' -l port -r
complete -c ferrite-cli -n '__fish_seen_subcommand_from cluster; and __fish_seen_subcommand_from local' -l dir -r
complete -c ferrite-cli -n '__fish_seen_subcommand_from cluster; and __fish_seen_subcommand_from local' -l bench
complete -c ferrite-cli -n '__fish_seen_subcommand_from cluster; and __fish_seen_subcommand_from deploy' -l port -r
complete -c ferrite-cli -n '__fish_seen_subcommand_from cluster; and __fish_seen_subcommand_from deploy' -l threads -r
complete -c ferrite-cli -n '__fish_seen_subcommand_from cluster; and __fish_seen_subcommand_from deploy' -l memory -r
complete -c ferrite-cli -n '__fish_seen_subcommand_from cluster; and __fish_seen_subcommand_from deploy' -l build
complete -c ferrite-cli -n '__fish_seen_subcommand_from cluster; and __fish_seen_subcommand_from deploy' -l source -r
complete -c ferrite-cli -n '__fish_seen_subcommand_from cluster; and __fish_seen_subcommand_from deploy' -l server -r
complete -c ferrite-cli -n '__fish_seen_subcommand_from cluster; and __fish_seen_subcommand_from deploy' -l dir -r
complete -c ferrite-cli -n '__fish_seen_subcommand_from cluster; and __fish_seen_subcommand_from deploy' -l name -r
complete -c ferrite-cli -n '__fish_seen_subcommand_from cluster; and __fish_seen_subcommand_from deploy' -l deal
complete -c ferrite-cli -n '__fish_seen_subcommand_from cluster; and __fish_seen_subcommand_from deploy' -l detached
complete -c ferrite-cli -n '__fish_seen_subcommand_from cluster; and __fish_seen_subcommand_from deploy' -l ssh-config -r
complete -c ferrite-cli -n '__fish_seen_subcommand_from cluster; and __fish_seen_subcommand_from status' -l port -r
complete -c ferrite-cli -n '__fish_seen_subcommand_from cluster; and __fish_seen_subcommand_from status' -l watch
complete -c ferrite-cli -n '__fish_seen_subcommand_from cluster; and __fish_seen_subcommand_from status' -l json
complete -c ferrite-cli -n '__fish_seen_subcommand_from cluster; and __fish_seen_subcommand_from bench' -l port -r
complete -c ferrite-cli -n '__fish_seen_subcommand_from cluster; and __fish_seen_subcommand_from stop' -l port -r
complete -c ferrite-cli -n '__fish_seen_subcommand_from cluster; and __fish_seen_subcommand_from stop' -l save
complete -c ferrite-cli -n '__fish_seen_subcommand_from cluster; and __fish_seen_subcommand_from stop' -l timeout -r
complete -c ferrite-cli -n '__fish_seen_subcommand_from cluster; and __fish_seen_subcommand_from rebalance' -l port -r
complete -c ferrite-cli -n '__fish_seen_subcommand_from cluster; and __fish_seen_subcommand_from rebalance' -l plan
