# shellcheck shell=sh
# What the scripts of `cluster deploy` share. They run on the hosts, by any POSIX sh. `dir` is set before.

# Sets `pid` to the process of the node that runs here. Fails if none does.
is_running() {
    pid=$(cat "$dir/ferrite.pid" 2>/dev/null) || return 1
    case $pid in
        '' | *[!0-9]*) return 1 ;;
    esac
    kill -0 "$pid" 2>/dev/null || return 1
    # The number may be another process's by now.
    if [ -r "/proc/$pid/cmdline" ]; then
        tr '\0' '\n' <"/proc/$pid/cmdline" | grep -Fqx -e "$dir/ferrite.conf"
    else
        ps -p "$pid" -o args= | grep -Fq -e "$dir/ferrite.conf"
    fi
}

# Whether the node that runs here answers PING.
serves() {
    is_running && "$dir/ferrite-server" --health "$dir/ferrite.conf" >/dev/null 2>&1
}

# A moment, where sleep knows parts of a second.
pause() {
    sleep 0.1 2>/dev/null || sleep 1
}

# The user's service manager is where its environment says, which a login without a terminal lacks.
find_manager() {
    : "${XDG_RUNTIME_DIR:=/run/user/$(id -u)}"
    export XDG_RUNTIME_DIR
}
