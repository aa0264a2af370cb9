# shellcheck shell=sh
# Takes the new files, and starts the node with them. If it does not serve then, the files before come back,
# and what ran before runs again.
#
# `manager` is system, user or nothing; `unit` the name of the service and `unit_text` its file; `epoch` that
# of the map. `action` is `start`, `reload` for a new map alone, or `wait` if nothing has changed. `patience`
# counts tenths of a second.

messages=$dir/messages.log

systemd() {
    if [ "$manager" = user ]; then
        find_manager
        systemctl --user "$@"
    else
        systemctl "$@"
    fi
}

take() {
    for file in ferrite-server ferrite.conf map.toml built-from; do
        [ -f "$dir/$file.new" ] || continue
        [ ! -f "$dir/$file" ] || mv -f "$dir/$file" "$dir/$file.old" || return
        mv -f "$dir/$file.new" "$dir/$file" || return
    done
}

give_back() {
    for file in ferrite-server ferrite.conf map.toml built-from; do
        [ ! -f "$dir/$file.old" ] || mv -f "$dir/$file.old" "$dir/$file" || return
    done
}

# Ends the node in order. The log has all its keys then.
stop() {
    is_running || return 0
    kill -TERM "$pid" || return
    left=$patience
    while is_running; do
        if [ "$left" -le 0 ]; then
            echo "the running server (process $pid) does not end" >&2
            return 1
        fi
        left=$((left - 1))
        pause
    done
}

start() {
    cd "$dir" || return
    : >"$dir/start.log"
    if [ -n "$manager" ]; then
        units=/etc/systemd/system
        [ "$manager" = system ] || units=${XDG_CONFIG_HOME:-$HOME/.config}/systemd/user
        mkdir -p "$units" && printf '%s' "$unit_text" >"$units/$unit" || return
        systemd daemon-reload && systemd --quiet enable "$unit" && systemd --no-block restart "$unit" || return
    else
        session=setsid
        command -v setsid >/dev/null 2>&1 || session=
        $session nohup "$dir/ferrite-server" "$dir/ferrite.conf" >"$dir/start.log" 2>&1 </dev/null &
        child=$!
    fi
}

# Whether the start has come to its end, and nothing serves.
has_failed() {
    if [ -n "$manager" ]; then
        ! is_running && case $(systemd is-active "$unit") in
            failed) true ;;
            # At first the start may be on its way.
            inactive) [ "$left" -lt $((patience - 30)) ] ;;
            *) false ;;
        esac
    else
        ! kill -0 "$child" 2>/dev/null
    fi
}

# The words of the server since `from`, a number of bytes of its messages.
words() {
    if [ -s "$dir/start.log" ]; then
        tail -n 8 "$dir/start.log"
    elif [ -f "$messages" ]; then
        tail -c "+$((from + 1))" "$messages" | tail -n 8
    fi
}

await() {
    left=$patience
    until serves; do
        if has_failed; then
            words >&2
            return 1
        fi
        if [ "$left" -le 0 ]; then
            echo "the server runs, and does not serve yet" >&2
            words >&2
            return 1
        fi
        left=$((left - 1))
        pause
    done
}

reload() {
    is_running && kill -HUP "$pid" || return
    left=$patience
    while :; do
        case $(tail -c "+$((from + 1))" "$messages") in
            *", epoch $epoch, "*) return ;;
            *"The old map of the cluster stays"*)
                words >&2
                return 1
                ;;
        esac
        if [ "$left" -le 0 ] || ! is_running; then
            echo "the server says nothing of the new map" >&2
            return 1
        fi
        left=$((left - 1))
        pause
    done
}

umask 077
from=0
[ ! -f "$messages" ] || from=$(wc -c <"$messages")
ran=
! is_running || ran=yes
case $action in
    wait)
        has_failed() { ! is_running; }
        await
        exit
        ;;
    reload)
        take || exit
        reload || {
            give_back
            exit 1
        }
        ;;
    start)
        stop && take || exit
        if ! { start && await; }; then
            if [ -n "$ran" ]; then
                stop && give_back && start && await \
                    && echo "the server before, with its map, serves again" >&2
            elif [ -n "$manager" ]; then
                # It would be tried again and again.
                systemd --quiet disable --now "$unit"
            else
                stop
            fi
            exit 1
        fi
        ;;
esac
rm -f "$dir/ferrite-server.old" "$dir/ferrite.conf.old" "$dir/map.toml.old" "$dir/built-from.old"
