# shellcheck shell=sh
# Removes what was put beside the files in use.
for file in ferrite-server ferrite.conf map.toml built-from source source.tar; do
    rm -rf "$dir/$file.new"
done
# Only if nothing else is in it.
rmdir "$dir/data" "$dir" 2>/dev/null
true
