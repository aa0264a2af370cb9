# shellcheck shell=sh
# Says what is on a host, and changes nothing. `place` is the directory, `port` the node's, `hex` the same as
# /proc/net writes it.

say() {
    printf 'ferrite:%s=%s\n' "$1" "$2"
}

# A file as hexadecimal digits.
say_file() {
    [ ! -f "$2" ] || say "$1" "$(od -An -v -tx1 "$2" | tr -d ' \n')"
}

case $place in
    /*) dir=$place ;;
    *) dir=$HOME/$place ;;
esac
say dir "$dir"
say machine "$(uname -m)"
say system "$(uname -s)"
say connection "$SSH_CONNECTION"

# What is there already of the path.
there=$dir
while [ ! -e "$there" ]; do
    there=$(dirname "$there")
done
if [ ! -d "$there" ]; then
    say unwritable "$there is no directory"
elif [ ! -w "$there" ]; then
    say unwritable "$there may not be written by $(id -un)"
fi
say space "$(df -Pk "$there" 2>&1 | tail -n 1)"

[ ! -f "$dir/ferrite-server" ] || say binary "$(cksum <"$dir/ferrite-server")"
say_file source "$dir/built-from"
say_file config "$dir/ferrite.conf"
say_file map "$dir/map.toml"
if is_running; then
    say pid "$pid"
    ! serves || say serves yes
fi
for table in /proc/net/tcp /proc/net/tcp6; do
    [ ! -r "$table" ] || grep -i " [0-9a-f]*:$hex [0-9a-f]*:0000 0a " "$table" | while read -r _ local _; do
        say listens "$local"
    done
done

PATH=$PATH:$HOME/.cargo/bin
! command -v cargo >/dev/null 2>&1 || say cargo "$(command -v cargo)"

case $(systemctl is-system-running 2>/dev/null) in
    running | degraded | starting | initializing)
        find_manager
        if [ "$(id -u)" = 0 ]; then
            say manager system
        elif [ "$(loginctl show-user "$(id -un)" -p Linger 2>/dev/null)" = Linger=yes ] \
            && systemctl --user show-environment >/dev/null 2>&1; then
            say manager user
        fi
        ;;
esac
say end yes
