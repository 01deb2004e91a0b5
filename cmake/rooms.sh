#!/usr/bin/env bash
# Rooms depend one way: base -> model -> sim -> {systems, place, plan} -> study -> report -> cli.
# Fails with the offending include when a room reaches up.
set -euo pipefail
cd "$(dirname "$0")/.."
rank() {
  case $1 in
    base) echo 0 ;; model) echo 1 ;; sim) echo 2 ;; systems|place|plan) echo 3 ;;
    study) echo 4 ;; report) echo 5 ;; cli) echo 6 ;; *) echo -1 ;;
  esac
}
bad=0
while IFS=: read -r file line text; do
  from=$(echo "$file" | cut -d/ -f2)
  to=$(echo "$text" | sed -E 's/.*"([a-z]+)\/.*/\1/')
  a=$(rank "$from") b=$(rank "$to")
  if [ "$b" -lt 0 ] || [ "$b" -gt "$a" ] || { [ "$a" = "$b" ] && [ "$from" != "$to" ]; }; then
    echo "$file:$line: room $from must not include $to" >&2
    bad=1
  fi
done < <(grep -rnE '#include "[a-z]+/' src)
exit $bad
