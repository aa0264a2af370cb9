# shellcheck shell=sh
# Builds the server from the sources in `source.new`, beside the one in use. What was built before is kept for
# the next time.

PATH=$PATH:$HOME/.cargo/bin
cd "$dir" || exit
if [ -d source ]; then
    [ ! -d source/target ] || mv source/target source.new/target || exit
    rm -rf source || exit
fi
mv source.new source && cd source || exit
CARGO_TARGET_DIR=target cargo build --release --package ferrite-server >"$dir/build.log" 2>&1 || {
    tail -n 20 "$dir/build.log" >&2
    exit 1
}
cp target/release/ferrite-server "$dir/ferrite-server.new"
