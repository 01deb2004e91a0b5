#!/usr/bin/env bash
# Rooms depend one way:
#   base -> model -> sim -> layers -> {systems, place, plan} -> study -> report -> answers ->
#   {cli, python}.
# Fails with the offending include when a room reaches up.
set -euo pipefail
cd "$(dirname "$0")/.."
find src python/src -name '*.[ch]pp' -print0 | sort -z | xargs -0 awk '
  BEGIN {
    count = split("base model sim layers systems study report answers cli", names)
    for (i = 1; i <= count; ++i) rank[names[i]] = i
    rank["place"] = rank["plan"] = rank["systems"]
    rank["python"] = rank["cli"]
  }
  /^[ \t]*#[ \t]*include[ \t]*"[a-z_]+\// {
    split(FILENAME, folders, "/")
    from = folders[1] == "python" ? "python" : folders[2]
    to = $0
    sub(/^[^"]*"/, "", to)
    sub(/\/.*/, "", to)
    if (!(from in rank) || !(to in rank) || rank[to] > rank[from] ||
        (rank[to] == rank[from] && to != from)) {
      print FILENAME ":" FNR ": room " from " must not include " to > "/dev/stderr"
      bad = 1
    }
  }
  END { exit bad }'
