#!/bin/sh
# Loads report pages in headless Chromium: no console error, every chart drawn, and every figure of
# the CSV found in the page.
#
#   browser_test.sh PROGRAM                     PROGRAM writes pages into the directory it is given
#   browser_test.sh PAGE.html FILE.csv          one page and its CSV
#   browser_test.sh SHARDSIM VERB ARGUMENT...   the page and the CSV that this command writes
#
# Where the page has a heat map of links over time, each cell says what it shows and is as wide as
# its part of the time: what a script that is put into a copy of the page measures.
set -eu

browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
if [ -z "$browser" ]; then
  echo "skipped: no chromium found; install the package chromium"
  exit 77
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The page in the browser, its text as it is when scripts have run.
load_page() {
  "$browser" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage \
    --user-data-dir="$work/profile" --window-size=1400,2400 --enable-logging=stderr --v=0 \
    --virtual-time-budget=10000 --dump-dom "file://$(realpath "$1")" \
    >"$work/dom.html" 2>"$work/log"
}

measure='<script>
  const rows = [...document.querySelectorAll(".history")];
  const widthOf = (element) => element.getBoundingClientRect().width;
  const partOf = (cell, cells) => Number(cell.style.flexGrow) /
    cells.reduce((sum, each) => sum + Number(each.style.flexGrow), 0);
  const holds = rows.every((row) => row.clientWidth > 300 &&
    [...row.children].every((cell, _, cells) => cell.title.includes("%") &&
      Math.abs(widthOf(cell) - row.clientWidth * partOf(cell, cells)) < 1));
  document.body.dataset.heatMap = `${rows.length} rows, ${holds ? "measured" : "wrong"}`;
</script>'

check_heat_map() {
  grep -q 'class="history"' "$1" || return 0
  { cat "$1"; echo "$measure"; } >"$work/measured.html"
  load_page "$work/measured.html"
  found=$(grep -o 'data-heat-map="[^"]*"' "$work/dom.html")
  echo "$(basename "$1"): $found"
  case $found in *measured*) ;; *) return 1 ;; esac
}

# The figures of a page, one a line, as CSV fields: those of the table that repeats the CSV.
check_page() {
  page=$1
  csv=$2
  name=$(basename "$page")
  load_page "$page"
  if grep CONSOLE "$work/log"; then
    echo "$name: the console has messages"
    return 1
  fi
  # Chart.js and the step views set a size on what they have drawn on.
  if grep -o '<canvas[^>]*>' "$work/dom.html" | grep -v 'height=' | grep .; then
    echo "$name: a canvas was not drawn on"
    return 1
  fi
  grep -o 'data-value="[^"]*"' "$work/dom.html" | sed 's/^data-value="//; s/"$//' |
    sort -u >"$work/page_values"
  # Numbers need no quotes in CSV, so that any comma or quote only splits text, which is left out.
  tr -d '\r' <"$csv" | tail -n +2 | tr ',' '\n' | grep -E '^-?[0-9]+(\.[0-9]+)?(e[-+]?[0-9]+)?$' |
    sort -u >"$work/csv_values"
  if [ ! -s "$work/csv_values" ]; then
    echo "$name: no figure in $csv"
    return 1
  fi
  missing=$(comm -23 "$work/csv_values" "$work/page_values")
  if [ -n "$missing" ]; then
    echo "$name: figures of the CSV that the page does not have:"
    echo "$missing"
    return 1
  fi
  figures=$(wc -l <"$work/csv_values")
  echo "$name: $figures figures found, $(grep -c '<canvas' "$work/dom.html") charts drawn"
  check_heat_map "$page"
}

if [ $# -ge 3 ]; then
  "$@" -o "$work/report.html" -o "$work/report.csv" >"$work/text"
  check_page "$work/report.html" "$work/report.csv"
elif [ $# -eq 2 ]; then
  check_page "$1" "$2"
else
  "$1" "$work"
  check_page "$work/run.html" "$work/run.csv"
  check_page "$work/compare.html" "$work/compare.csv"
fi
