complete -c ferrite-bench -s h -l host -l server -d 'The server\'s name or address' -r -f -a "(__fish_print_hostnames)"
complete -c ferrite-bench -s p -l port -d 'The server\'s port' -r -f
complete -c ferrite-bench -s s -l socket -l unix-socket -d 'The server\'s socket file; counts more than host and port' -r -F
complete -c ferrite-bench -s u -l uri -d 'All of it as redis://USER:PASSWORD@HOST:PORT/DATABASE or unix:///PATH?db=N' -r -f
complete -c ferrite-bench -s a -l pass -l password -d 'Says AUTH first' -r -f
complete -c ferrite-bench -l user -d 'The user that the password is for' -r -f
complete -c ferrite-bench -l authenticate -d 'Both in one, or the password alone' -r -f
complete -c ferrite-bench -l dbnum -l select-db -d 'Says SELECT first' -r -f
complete -c ferrite-bench -l server-pid -d 'The server\'s process, whose processor time and memory are reported' -r -f
complete -c ferrite-bench -l target -d 'A server by a name of its own; may be repeated' -r -f
complete -c ferrite-bench -s t -l tests -d 'The tests to run, by name and separated by commas; listed below' -r -f
complete -c ferrite-bench -s n -l requests -d 'How many requests each test sends' -r -f
complete -c ferrite-bench -l test-time -l duration -d 'Ends each test after a time instead: 10, 1.5s, 200ms, 5m' -r -f
complete -c ferrite-bench -l warmup -d 'Sends requests for so long before they count' -r -f
complete -c ferrite-bench -s c -l clients -d 'Connections in all' -r -f
complete -c ferrite-bench -s P -l pipeline -d 'Requests that a connection sends together' -r -f
complete -c ferrite-bench -l threads -d 'Threads that share the connections' -r -f
complete -c ferrite-bench -s k -l keepalive -d '0: each batch gets a connection of its own, and its time counts too' -r -f -a "0\t''
1\t''"
complete -c ferrite-bench -l reconnect-interval -d 'Gives a connection up after so many requests and opens another in its place' -r -f
complete -c ferrite-bench -l subscribers -d 'Connections that listen to what the test pubsub publishes' -r -f
complete -c ferrite-bench -l seed -d 'Makes keys, values and their order the same in every run' -r -f
complete -c ferrite-bench -l run-count -d 'Runs each test so often, and reports the best run, the worst run and the average' -r -f
complete -c ferrite-bench -l timeout -d 'Gives up when the server has said nothing for so long' -r -f
complete -c ferrite-bench -l reconnect -d 'Opens broken connections again, until none could be opened for so long; their requests count as lost' -r -f
complete -c ferrite-bench -l cpus -d 'Pins the threads to these processors in turn: 1 or 0,2-3' -r -f
complete -c ferrite-bench -l rate -d 'Sends so many requests a second in all, by a timetable that does not wait for replies' -r -f
complete -c ferrite-bench -l rate-limiting -d 'The same for each connection' -r -f
complete -c ferrite-bench -l arrivals -d 'At equal distances, or at random' -r -f -a "even\t''
poisson\t''"
complete -c ferrite-bench -l p99 -d 'The bound of --find-rate' -r -f
complete -c ferrite-bench -l step-time -d 'How long each run of --find-rate takes' -r -f
complete -c ferrite-bench -s r -l keyspace -d 'Random keys: key:000000000000 and so many in all' -r -f
complete -c ferrite-bench -l key-minimum -d 'The first number of the range' -r -f
complete -c ferrite-bench -l key-maximum -d 'The last number of the range' -r -f
complete -c ferrite-bench -l key-prefix -d 'What stands before the number' -r -f
complete -c ferrite-bench -l key-digits -d 'Digits that the number is filled up to; 0: none' -r -f
complete -c ferrite-bench -l key-pattern -d 'How keys are chosen: uniform (R), zipf (Z), gaussian (G), sequential (S), parallel (P: each connection its own part), latest (L: writes append, reads prefer what is new), hot (H: one key)' -r -f
complete -c ferrite-bench -l key-zipf-exp -d 'The exponent of zipf and latest' -r -f
complete -c ferrite-bench -l key-median -d 'The centre of gaussian, counted from the first key' -r -f
complete -c ferrite-bench -l key-stddev -d 'The deviation of gaussian' -r -f
complete -c ferrite-bench -l hot-share -d 'How much of hot goes to the one key; the rest is uniform' -r -f
complete -c ferrite-bench -l multi-keys -l multi-key-get -d 'Keys of MSET and MGET, commands of MULTI' -r -f
complete -c ferrite-bench -s d -l data-size -d 'Bytes of a value: 16, 64kb, 1gb' -r -f
complete -c ferrite-bench -l data-size-range -d 'Any size of a range' -r -f
complete -c ferrite-bench -l data-size-list -d 'Sizes with weights' -r -f
complete -c ferrite-bench -l expiry-range -d 'Gives SETs an expiry of so many seconds' -r -f
complete -c ferrite-bench -l expiry-share -d 'How many of them get one' -r -f
complete -c ferrite-bench -l ratio -d 'A mix of both instead of the tests' -r -f
complete -c ferrite-bench -l command -d 'A command of a mix; may be repeated' -r -f
complete -c ferrite-bench -l command-ratio -d 'The weight of the command before it' -r -f
complete -c ferrite-bench -l command-key-pattern -d 'The key pattern of the command before it' -r -f
complete -c ferrite-bench -l precision -d 'Digits behind the point of milliseconds' -r -f
complete -c ferrite-bench -l print-percentiles -d 'The percentiles of the summary and of the table of commands: 50,90,99.9' -r -f
complete -c ferrite-bench -s o -l out-file -d 'Writes the report into a file instead of to the standard output' -r -F
complete -c ferrite-bench -l json -l json-out-file -d 'Writes everything that was measured into a file' -r -F
complete -c ferrite-bench -l html -d 'Writes a page with curves: the rate over time, latencies by percentile' -r -F
complete -c ferrite-bench -l hdr -d 'Writes HdrHistogram\'s log with the latencies of every second, or the distribution if the name ends in .hgrm' -r -F
complete -c ferrite-bench -l hdr-file-prefix -d 'Writes the distribution of each run\'s latencies into PREFIX_FULL_RUN_1.txt and .hgrm, and of each command\'s into PREFIX_SET_command_run_1.txt and .hgrm; with several tests their names come behind the prefix' -r -f
complete -c ferrite-bench -l compare -d 'Compares two files that --json wrote, and does nothing else' -r -f
complete -c ferrite-bench -l may-lose -d 'What the server may lose when it goes away: what was acknowledged in the last TIME' -r -f
complete -c ferrite-bench -l verify-file -d 'Keeps the notes at the end ' -r -F
complete -c ferrite-bench -l verify-check -d '' -r -F
complete -c ferrite-bench -l rounds -d 'How many times each server goes through all cells; medians are reported' -r -f
complete -c ferrite-bench -l cells -d 'The loads to compare, separated by commas' -r -f
complete -c ferrite-bench -l server-cpus -d 'The processors of the servers; --cpus has those of the load' -r -f
complete -c ferrite-bench -l memory-keys -d 'How many keys are weighed; 0: none' -r -f
complete -c ferrite-bench -l docs -d 'Writes benchmarks.md and its charts there' -r -f -a "(__fish_complete_directories)"
complete -c ferrite-bench -l reply -d 'What `ferrite-bench floor --port N` answers to everything' -r -f -a "SIZE\t''
ok\t''"
complete -c ferrite-bench -s 3 -l resp3 -d 'Speaks RESP3 (HELLO 3)'
complete -c ferrite-bench -l enable-tracking -d 'Says CLIENT TRACKING on first'
complete -c ferrite-bench -l cluster -l cluster-mode -d 'The server is a node of a cluster: all nodes are loaded, each with keys that are its own'
complete -c ferrite-bench -s l -l loop -d 'Repeats the tests until it is stopped'
complete -c ferrite-bench -s I -l idle -d 'Opens the connections and does nothing with them until it is stopped'
complete -c ferrite-bench -s x -l stdin -d 'Reads the last argument of the command from the standard input'
complete -c ferrite-bench -l randomize -d 'Takes the seed at random, which is the default here: takes back a --seed before it'
complete -c ferrite-bench -l distinct-client-seed -d 'Gives each connection random numbers of its own, made of the seed and its place: with --seed what a connection sends does not depend on how fast the others are'
complete -c ferrite-bench -l find-rate -d 'Looks for the highest rate that keeps p99 within --p99, in runs of --step-time'
complete -c ferrite-bench -s R -l random-data -d 'Makes values differ; otherwise all begin alike'
complete -c ferrite-bench -s q -l quiet -d 'One line a test'
complete -c ferrite-bench -l csv -d 'One line a test, in redis-benchmark\'s columns'
complete -c ferrite-bench -s e -l show-errors -d 'Shows error replies on the standard output when they come, at most one a second'
complete -c ferrite-bench -l hide-histogram -d 'Leaves the two distributions of latencies out of the report'
complete -c ferrite-bench -l no-progress -d 'No line of progress; there is one on a terminal only'
complete -c ferrite-bench -l help -d 'Prints this text'
complete -c ferrite-bench -s v -l version -d 'Prints the version'
complete -c ferrite-bench -l verify -d 'Writes to -r groups of keys, notes what is acknowledged, and reads everything back at the end'
complete -c ferrite-bench -l quick -d 'One short round with few keys, to see that everything works'
complete -c ferrite-bench -l log -d 'Compares what a log costs that is synced every second; --cells and the servers have other defaults then'
complete -c ferrite-bench -n '__fish_is_nth_token 1' -a 'side-by-side floor'
