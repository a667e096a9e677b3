#!/bin/sh
# The step of action.yml as GitHub would run it: a repository with two commits, of which the second
# makes the cost worse, the variables that the runner sets, and a `gh` that writes down what it is
# asked for.
#
#   action_test.sh SHARDSIM SOURCE SCRATCH
set -eu

shardsim=$1
source=$2
scratch=$3
rm -rf "$scratch"
mkdir -p "$scratch/bin" "$scratch/repository/ci"

fail() {
  echo "$0: $*" >&2
  exit 1
}
require() { # FILE TEXT
  grep -qF -- "$2" "$1" || {
    cat "$1" >&2
    fail "no \"$2\" in $1"
  }
}

# Knows of one comment once it has been made.
cat >"$scratch/bin/gh" <<'END'
#!/bin/sh
echo "$@" >>"$GH_LOG"
case "$*" in
  *--paginate*)
    [ ! -f "$GH_LOG.made" ] || echo 4711
    [ ! -f "$GH_LOG.broken" ] || exit 1
    ;;
  *POST*) : >"$GH_LOG.made" ;;
esac
END
chmod +x "$scratch/bin/gh"

PATH="$scratch/bin:$PATH"
GH_LOG=$scratch/gh.log
GITHUB_ACTIONS=true
GITHUB_REPOSITORY=someone/model
GITHUB_REF=refs/pull/12/merge
GITHUB_OUTPUT=$scratch/output
GITHUB_STEP_SUMMARY=$scratch/summary.md
SHARDSIM=$shardsim
CHECK_BASELINE=ci/baseline.json
CHECK_COMMENT=true
export PATH GH_LOG GITHUB_ACTIONS GITHUB_REPOSITORY GITHUB_REF GITHUB_OUTPUT GITHUB_STEP_SUMMARY \
  SHARDSIM CHECK_BASELINE CHECK_COMMENT
cd "$scratch/repository"
git init -q .
git config user.name test
git config user.email test@localhost

run_step() { # EXPECTED_EXIT
  code=0
  "$source/scripts/check_action.sh" >"$scratch/stdout" 2>"$scratch/stderr" || code=$?
  [ "$code" = "$1" ] || {
    cat "$scratch/stdout" "$scratch/stderr" >&2
    fail "exit code $code, expected $1"
  }
}

cat >ci/gpt2.json <<'END'
{"workload": {"model": "gpt2", "batch": 32, "sequence": 1024},
 "mesh": {"fsdp": 8}, "strategy": {"name": "fsdp", "reshard_after_forward": false},
 "machine": "dgx-h100"}
END
"$shardsim" check ci/baseline.json ci/gpt2.json --record >/dev/null
git add .
git commit -q -m 'An experiment and its baseline'
run_step 0
require "$GITHUB_OUTPUT" verdict=passed
require "$GITHUB_STEP_SUMMARY" '1 experiment within limits'
require "$GH_LOG" 'api --method POST repos/someone/model/issues/12/comments'

# Parameters are gathered again in the backward pass: more calls, more bytes.
sed 's/"reshard_after_forward": false/"reshard_after_forward": true/' ci/gpt2.json >ci/new.json
mv ci/new.json ci/gpt2.json
git commit -q -a -m 'Save memory'
run_step 1
require "$GITHUB_OUTPUT" verdict=failed
require "$scratch/stdout" '::error file=ci/gpt2.json,line=1,title=shardsim%3A gpt2::'
require "$GITHUB_STEP_SUMMARY" '1 of 1 experiment over their limits'
require "$GH_LOG" 'api --method PATCH repos/someone/model/issues/comments/4711'
require shardsim-check/comment.md '<!-- shardsim check ci/baseline.json -->'
require shardsim-check/report.md 'strategy.reshard_after_forward false'
require shardsim-check/report.md 'all-gather over fsdp'
require shardsim-check/junit.xml '<failure type="limit"'
require shardsim-check/report.json '"metric": "calls.all-gather over fsdp"'
require shardsim-check/report.html '<!DOCTYPE html>'

# Comments that cannot be listed: a warning, and no second comment.
: >"$GH_LOG"
: >"$GH_LOG.broken"
run_step 1
rm "$GH_LOG.broken"
require "$scratch/stderr" '::warning title=shardsim::the pull request could not be commented on'
[ "$(wc -l <"$GH_LOG")" = 1 ] || fail "commented: $(cat "$GH_LOG")"

# The same with warnings only, and accepted.
CHECK_ARGUMENTS=--warn-only
export CHECK_ARGUMENTS
run_step 0
require "$scratch/stdout" '::warning file=ci/gpt2.json'
unset CHECK_ARGUMENTS
"$shardsim" check ci/baseline.json --update gpt2 >/dev/null
git diff --stat | grep -q ci/baseline.json || fail 'the baseline has not changed'
run_step 0

# What is wrong with a file is neither.
echo '{' >ci/gpt2.json
run_step 3
require "$GITHUB_OUTPUT" verdict=error

# What the action's cache is named by: the sources, not what is built of them or beside them.
mkdir -p "$scratch/action/scripts"
cp "$source/scripts/source_digest.sh" "$scratch/action/scripts"
digest() { (cd / && "$scratch/action/scripts/source_digest.sh"); }
before=$(digest)
[ "${#before}" = 32 ] || fail "no digest: $before"
mkdir "$scratch/action/build" "$scratch/action/.git"
echo built >"$scratch/action/build/shardsim"
echo ref >"$scratch/action/.git/HEAD"
[ "$(digest)" = "$before" ] || fail 'the digest changed with what is built'
echo new >"$scratch/action/a file"
[ "$(digest)" != "$before" ] || fail 'the digest is the same of other sources'
