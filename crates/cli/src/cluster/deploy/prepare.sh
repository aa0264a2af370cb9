# shellcheck shell=sh
# Puts new files beside those in use, under names of their own, and looks whether the server runs here.
# `config` and `map` are the texts of the files, each empty if it stays as it is.

put() {
    [ -z "$2" ] || printf '%s' "$2" >"$dir/$1.new"
}

umask 077
put ferrite.conf "$config" && put map.toml "$map" || exit
server=$dir/ferrite-server
if [ -f "$server.new" ]; then
    server=$server.new
    chmod 755 "$server" || exit
fi
"$server" --version >/dev/null || exit
said=$("$server" --check-config "$dir/ferrite.conf${config:+.new}" --cluster-map "$dir/map.toml${map:+.new}" 2>&1) || {
    printf '%s\n' "$said" >&2
    exit 1
}
