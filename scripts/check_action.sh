#!/bin/sh
# The step of action.yml: runs `shardsim check` in a repository and comments on the pull request.
#
#   SHARDSIM            the program                                   (default: shardsim)
#   CHECK_BASELINE      the baseline, or a file of budgets            (required)
#   CHECK_EXPERIMENTS   files or folders of dumps, one a line         (default: the baseline's)
#   CHECK_ARGUMENTS     further arguments, one a line: --warn-only
#   CHECK_REPORTS       folder for the reports                        (default: shardsim-check)
#   CHECK_COMMENT       "true": comment on the pull request, with gh and GH_TOKEN
#
# Leaves report.md, report.json, junit.xml and report.html in CHECK_REPORTS. The exit code is that
# of shardsim; a comment that cannot be written (the token of a fork may only read) is a warning.
set -eu

shardsim=${SHARDSIM:-shardsim}
baseline=${CHECK_BASELINE:?"$0: CHECK_BASELINE names no baseline"}
reports=${CHECK_REPORTS:-shardsim-check}

tell() { # NAME VALUE: an output of the step
  [ -z "${GITHUB_OUTPUT:-}" ] || printf '%s=%s\n' "$1" "$2" >>"$GITHUB_OUTPUT"
}

# The comment on the pull request whose first line is the marker: written over, or made.
comment() {
  case "${GITHUB_REF:-}" in
    refs/pull/*) pull=${GITHUB_REF#refs/pull/} ;;
    *) return 0 ;;
  esac
  pull=${pull%%/*}
  marker="<!-- shardsim check $baseline -->"
  { printf '%s\n' "$marker" && cat "$reports/report.md"; } >"$reports/comment.md" || return 1
  comments="repos/$GITHUB_REPOSITORY/issues"
  known=$(gh api --paginate "$comments/$pull/comments" \
    --jq ".[] | select(.body | startswith(\"$marker\")) | .id") || return 1
  known=$(printf '%s\n' "$known" | head -n 1)
  if [ -n "$known" ]; then
    gh api --method PATCH "$comments/comments/$known" -F "body=@$reports/comment.md" >/dev/null
  else
    gh api --method POST "$comments/$pull/comments" -F "body=@$reports/comment.md" >/dev/null
  fi
}

# A line is an argument: paths may have spaces.
set -- "$baseline"
while IFS= read -r argument; do
  [ -z "$argument" ] || set -- "$@" "$argument"
done <<END
${CHECK_EXPERIMENTS:-}
${CHECK_ARGUMENTS:-}
END

mkdir -p "$reports"
rm -f "$reports/report.md" "$reports/report.json" "$reports/junit.xml" "$reports/report.html"
verdict=0
"$shardsim" check "$@" -o "$reports/report.md" -o "$reports/report.json" \
  -o "$reports/junit.xml" -o "$reports/report.html" || verdict=$?

tell reports "$reports"
case $verdict in
  0) tell verdict passed ;;
  1) tell verdict failed ;;
  *) tell verdict error ;;
esac
if [ "${CHECK_COMMENT:-}" = true ] && [ -f "$reports/report.md" ]; then
  comment || echo "::warning title=shardsim::the pull request could not be commented on" >&2
fi
exit "$verdict"
