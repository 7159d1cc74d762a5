# Bytes of what the image is made of, by part.
cd /opt/zelda/lib/python3*/site-packages
total() { du -cb --files0-from=- | tail -n 1 | cut -f 1; }
echo cli "$(find claude_agent_sdk/_bundled -type f -print0 | total)"
echo packages "$(find . \( -name _bundled -o -name 'zelda_ci*' \) -prune -o -type f ! -name '*.pyc' -print0 | total)"
echo bytecode "$(find . -name 'zelda_ci*' -prune -o -name '*.pyc' -print0 | total)"
echo zelda "$(find zelda_ci* -type f ! -name '*.pyc' -print0 | total)"
echo zelda-bytecode "$(find zelda_ci -name '*.pyc' -print0 | total)"
for name in git bubblewrap tini; do
  echo $name "$(dpkg --listfiles $name | while read -r path; do
    if [ -f "$path" ] && [ ! -L "$path" ]; then printf '%s\0' "$path"; fi; done | total)"
done
