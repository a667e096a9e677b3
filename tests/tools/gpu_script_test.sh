#!/bin/sh
# scripts/gpu.sh without a GPU, as far as it goes: gpu_script_test.sh SHARDSIM SCRATCH
#
# Fakes stand for what is not there: `nvidia-smi` answers for one GPU; `shardsim` is the real program
# but for the backend nccl, in whose place it runs a tiny model on this CPU, and a sweep, for which it
# gives the one of examples/; Python's measure_gpu.py leaves what it recorded on a CPU (tests/tools/gpu).
set -eu
shardsim=$1
scratch=$2
source=$(cd "$(dirname "$0")/../.." && pwd)
recorded=$source/tests/tools/gpu
rm -rf "$scratch"
mkdir -p "$scratch/bin" "$scratch/tree"
cd "$scratch"

fail() {
  echo "$*" >&2
  exit 1
}
# expect CODE COMMAND...: its output is in ./output.
expect() {
  wanted=$1
  shift
  code=0
  "$@" >output 2>&1 || code=$?
  [ "$code" = "$wanted" ] || { cat output; fail "$*: exit code $code, not $wanted"; }
}
says() { grep -q -e "$1" output || { cat output; fail "no \"$1\" in the output"; }; }

cat >bin/nvidia-smi <<'EOF'
#!/bin/sh
case "$*" in
  --list-gpus) echo "GPU 0: a fake (UUID: GPU-0)" ;;
  *name,driver_version*) printf 'name, driver_version\na fake, 1.2\n' ;;
  *) echo "no such question: $*" ;;
esac
EOF
cat >tree/shardsim <<EOF
#!/bin/sh
echo "\$1" >>"$scratch/calls"
[ ! -e "$scratch/break-\$1" ] || { echo "broken on purpose" >&2; exit 3; }
case " \$* " in
  *" --sweep "*)
    for file; do :; done
    cp "$source/examples/sweep-two-processes.json" "\$file"
    ;;
  *" nccl "*)
    for file; do :; done
    profile=cpu-host
    while [ \$# -gt 0 ]; do
      [ "\$1" = --calibrated ] && profile=\$2
      shift
    done
    "$shardsim" validate "$source/examples/validate-tiny-llama.json" --name alone --batch 1 \
      --sequence 32 --repeats 6 --backend mpi --machine "\$profile" -o "\$file"
    ;;
  *) exec "$shardsim" "\$@" ;;
esac
EOF
cat >bin/fake-python <<EOF
#!/bin/sh
case \$1 in
  *measure_gpu.py)
    echo "\$2" >>"$scratch/calls"
    while [ \$# -gt 1 ]; do
      [ "\$1" = -o ] && { cp -r "$recorded/\$(basename "\$2")" "\$2"; exit; }
      shift
    done
    ;;
  *) exec python3 "\$@" ;;
esac
EOF
chmod +x bin/* tree/shardsim
gpu=$source/scripts/gpu.sh

# Words that are wrong, and a machine without GPUs.
expect 2 "$gpu" --nonsense
says "unknown option --nonsense"
expect 2 "$gpu" --limit
says "needs a value"
expect 2 "$gpu" --limit soon
says "expected whole seconds"
expect 2 "$gpu" --only kernels,tea
says "unknown part tea"
if ! command -v nvidia-smi >/dev/null; then
  expect 4 "$gpu" --out "$scratch/none" --build "$scratch/tree"
  says "no GPU here"
  [ ! -e none ] || fail "a folder without a GPU"
fi

PATH=$scratch/bin:$PATH
PYTHON=$scratch/bin/fake-python
export PATH PYTHON
measure() { "$gpu" --build "$scratch/tree" "$@"; }

# Too little time: what fits is done, the rest is named, and a later call goes on.
expect 3 measure --out "$scratch/out" --limit 25
says "no time for: sweep-one step-one"
[ "$(ls out/*.status)" = out/environment.status ] || fail "not the environment alone"

# One part fails: the others run, the exit code says so, and only that one is tried again.
touch break-calibrate
expect 1 measure --out "$scratch/out" --limit 2000
says "failed: calibrate-one calibrated-one calibrate-kernels;"
rm break-calibrate calls
expect 0 measure --out "$scratch/out" --limit 2000
[ "$(sort -u calls | tr '\n' ' ')" = "calibrate validate " ] || fail "run again: $(cat calls)"
says "| sweep-one | done |"
says "| kernels | done |"
for part in $("$gpu" --list | cut -d ' ' -f 1); do
  grep -q '^done' "out/$part.status" || fail "$part is not done"
done

# All is there: nothing runs, and the summary is the same.
rm -f calls
expect 0 measure --out "$scratch/out"
[ ! -e calls ] || fail "run again: $(cat calls)"
cp output first
expect 0 measure --out "$scratch/out" --summary
cmp -s first output || fail "another summary"

# Figures of the summary, from the recorded rows: the best product and a step by both profiles.
says "| step-one-gpt2 | cpu-host |"
says "| calibrated-one-qwen3 | this-gpu |"
python3 - "$recorded" >expected <<'EOF'
import json, sys
rows = json.load(open(sys.argv[1] + "/kernels/products-bf16.json"))["rows"]
best = max(2 * row["m"] * row["n"] * row["k"] / row["time_us"] for row in rows)
print(f"| products-bf16 | {len(rows)} | {best * 1e6 / 1e12:.1f} TFLOP/s |")
step = json.load(open(sys.argv[1] + "/train-gpt2.json"))["step_time_s"]
print(f" {step * 1e3:.3f} ms |")
EOF
while read -r line; do says "$line"; done <expected

# What cannot be read is said.
echo '{"rows": [' >out/launch.json
expect 1 measure --out "$scratch/out" --summary
says "launch.json: Expecting value"
