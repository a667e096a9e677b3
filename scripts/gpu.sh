#!/bin/sh
# Everything that needs a GPU, in order of value: scripts/gpu.sh [OPTION...]
#
#   --out DIR        where all goes (gpu-measurements); run again, parts that are there are passed over
#   --limit SECONDS  for this call (540); it ends before the first part whose own limit does not fit
#   --build DIR      a tree that is built (build/cuda; built first where it has no program)
#   --only A,B       these parts alone, even if they are there
#   --list           the parts with their limits
#   --summary        the summary alone, of what is there
#   --pack DIR       the built program with the libraries that it needs, for a machine without them;
#                    there: scripts/gpu.sh --build DIR
#
# Each part leaves PART.log and PART.status ("done SECONDS", "failed CODE SECONDS") in DIR beside its
# results, and all together summary.md (tools/gpu_summary.py). Needs nvidia-smi, and Python with
# PyTorch for the parts that measure kernels; $PYTHON names it. Exit code 0: all parts are there;
# 1: a part failed; 3: time was over before all had run, run it again; 4: no GPU here.
set -eu
here=$PWD
cd "$(dirname "$0")/.."

out=gpu-measurements
limit=540
build=build/cuda
only=
action=measure
python=${PYTHON:-python3}

# A path as the user named it, from where he called.
from_here() { case $1 in /*) echo "$1" ;; *) echo "$here/$1" ;; esac; }

wrong_usage() {
  echo "$0: $*; see the top of the script" >&2
  exit 2
}
while [ $# -gt 0 ]; do
  case $1 in
    --out | --limit | --build | --only | --pack) [ $# -gt 1 ] || wrong_usage "$1 needs a value" ;;
  esac
  case $1 in
    --out) out=$(from_here "$2"); shift ;;
    --limit) limit=$2; shift ;;
    --build) build=$(from_here "$2"); shift ;;
    --only) only=$(echo "$2" | tr , ' '); shift ;;
    --list) action=list ;;
    --summary) action=summary ;;
    --pack) action=pack; pack=$(from_here "$2"); shift ;;
    *) wrong_usage "unknown option $1" ;;
  esac
  shift
done
case $limit in '' | *[!0-9]*) wrong_usage "--limit $limit: expected whole seconds" ;; esac

# In order of value: name, limit in seconds.
parts='environment:20 sweep-one:90 step-one:60 calibrate-one:20 calibrated-one:60
  train-gpt2:60 train-qwen3:60 launch:20 kernels:200 calibrate-kernels:20 sustained:150
  step-all:90 sweep-all:150 calibrate-all:20 calibrated-all:90'

limit_of() {
  for part in $parts; do
    [ "${part%:*}" = "$1" ] && echo "${part#*:}" && return
  done
  wrong_usage "unknown part $1; --list shows them"
}

if [ "$action" = list ]; then
  for part in $parts; do printf '%-20s %4s s\n' "${part%:*}" "${part#*:}"; done
  exit 0
fi
for part in $only; do limit_of "$part" >/dev/null; done

if [ "$action" = pack ]; then
  [ -x "$build/shardsim" ] || wrong_usage "--pack: no program in $build"
  mkdir -p "$pack/lib"
  cp "$build/shardsim" "$build/shardsim_nccl.so" "$pack"
  # Not what a machine with GPUs has of its own: the libraries of C and C++, the driver, CUDA's libraries.
  ldd "$build/shardsim" "$build/shardsim_nccl.so" | awk '$2 == "=>" && $3 ~ /^\// { print $3 }' |
    sort -u | grep -v -E '/(libc|libm|libstdc\+\+|libgcc_s|libdl|libpthread|librt|ld-linux[^/]*|libcuda|libcudart|libcublas(Lt)?|libnccl)\.so' |
    while read -r library; do cp -L "$library" "$pack/lib"; done
  exit 0
fi

if [ "$action" = summary ]; then
  exec "$python" tools/gpu_summary.py "$out"
fi

command -v nvidia-smi >/dev/null && nvidia-smi --list-gpus >/dev/null 2>&1 || {
  echo "$0: nvidia-smi shows no GPU here" >&2
  exit 4
}
gpus=$(nvidia-smi --list-gpus | wc -l)

begin=$(date +%s)
left() { echo $((limit - ($(date +%s) - begin))); }

if [ ! -x "$build/shardsim" ]; then
  echo "$0: building $build" >&2
  scripts/build.sh cuda --target shardsim --target shardsim_nccl >&2
  build=build/cuda
fi
mkdir -p "$out"

# Where CUDA's libraries are not the system's, PyTorch's wheels bring them.
library_path=$build/lib
for library in libnccl.so.2 libcublas.so; do
  ldconfig -p 2>/dev/null | grep -q "$library" && continue
  found=$("$python" -c 'import glob, site
print(":".join(glob.glob(site.getsitepackages()[0] + "/nvidia/*/lib")))' 2>/dev/null || true)
  library_path=$library_path${found:+:$found}
  break
done
export LD_LIBRARY_PATH="$library_path${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"

shardsim="$build/shardsim"
today=$(date +%F)
python_tool() { CUDA_VISIBLE_DEVICES=0 "$python" tools/measure_gpu.py "$@" --date "$today"; }

# A step of each model of examples/validate-gpu.json: steps RESULT MESH STRATEGY FLAG...
steps() {
  result=$1
  mesh=$2
  strategy=$3
  shift 3
  for name in gpt2 qwen3; do
    "$shardsim" validate examples/validate-gpu.json --name "$name" --mesh "$mesh" \
      --strategy "$strategy" --backend nccl "$@" -o "$out/$result-$name.json"
  done
}
one_step() {
  of=$1
  shift
  CUDA_VISIBLE_DEVICES=0
  export CUDA_VISIBLE_DEVICES
  steps "$of" data=1 dp "$@"
}
# Ends the part, done, where there is one GPU.
has_several() {
  [ "$gpus" -gt 1 ] || { echo "one device: nothing to add to the parts for one"; exit 0; }
}
all_steps() {
  of=$1
  shift
  steps "$of-dp" "data=$gpus" dp "$@"
  steps "$of-fsdp" "fsdp=$gpus" fsdp "$@"
}
# The same step in PyTorch, and its prediction, by the shipped profile and by the one that was made.
train() { # MODEL BATCH SEQUENCE
  python_tool train "workloads/configs/$1.json" --batch "$2" --sequence "$3" --seconds 30 \
    -o "$out/train-$1.json"
  for profile in "$(machine)" "$out/profile-one.json"; do
    [ "${profile%.json}" = "$profile" ] || [ -f "$profile" ] || continue
    "$shardsim" run --model "$1" --batch "$2" --sequence "$3" --machine "$profile" --mesh data=1 \
      --strategy dp --set 'workload.precision={"parameters":"bf16","gradients":"bf16","master":"none","moments":"bf16"}' \
      -o "$out/predicted-$1-$(basename "$profile" .json).json"
  done
}
sweep() { "$shardsim" validate --sweep --backend nccl -o "$1"; }

run_part() {
  case $1 in
    environment)
      nvidia-smi --query >"$out/nvidia-smi.txt"
      nvidia-smi topo -m >"$out/topology.txt" || true
      "$shardsim" --version >"$out/version.txt"
      nvidia-smi --query-gpu=name,driver_version,power.limit,clocks.max.sm,memory.total \
        --format=csv >"$out/gpus.csv"
      ;;
    sweep-one) CUDA_VISIBLE_DEVICES=0 sweep "$out/sweep-one.json" ;;
    step-one) one_step step-one --machine "$(machine)" ;;
    calibrate-one)
      "$shardsim" calibrate "$out/sweep-one.json" --name this-gpu -o "$out/profile-one.json"
      ;;
    calibrated-one) one_step calibrated-one --calibrated "$out/profile-one.json" ;;
    train-gpt2) train gpt2 8 1024 ;;
    train-qwen3) train qwen3-1.7b 2 4096 ;;
    launch) python_tool launch -o "$out/launch.json" ;;
    kernels) python_tool kernels --seconds 170 -o "$out/kernels" ;;
    calibrate-kernels) # a table may be too short for a fit, not all
      fits=0
      for table in "$out"/kernels/products-*.json "$out"/kernels/attention-*.json; do
        name=$(basename "$table" .json)
        "$shardsim" calibrate "$table" --machine "$(machine)" --date "$today" --name "$name" \
          -o "$out/fit-$name.json" && fits=$((fits + 1)) || echo "$name: no fit"
      done
      [ "$fits" -gt 0 ]
      ;;
    sustained) python_tool sustained --seconds 120 -o "$out/sustained.json" ;;
    step-all) has_several && all_steps step-all --machine "$(machine)" ;;
    sweep-all) has_several && sweep "$out/sweep-all.json" ;;
    calibrate-all)
      has_several &&
        "$shardsim" calibrate "$out/sweep-all.json" --name this-host -o "$out/profile-all.json"
      ;;
    calibrated-all) has_several && all_steps calibrated-all --calibrated "$out/profile-all.json" ;;
  esac
}

# The shipped profile that `validate` took for these GPUs.
machine() {
  "$python" -c 'import json, sys; print(json.load(open(sys.argv[1]))["profile"])' \
    "$out/sweep-one.json"
}

# A part runs in a process of its own that `timeout` can end.
if [ -n "${SHARDSIM_GPU_PART:-}" ]; then
  run_part "$SHARDSIM_GPU_PART"
  exit
fi

over=
failed=
for part in $parts; do
  name=${part%:*}
  seconds=${part#*:}
  if [ -n "$only" ]; then
    case " $only " in *" $name "*) ;; *) continue ;; esac
  elif grep -q '^done' "$out/$name.status" 2>/dev/null; then
    continue
  fi
  # What comes later may need what is left out.
  if [ -n "$over" ] || [ "$(left)" -lt "$seconds" ]; then
    over=$over\ $name
    continue
  fi
  echo "$0: $name, at most $seconds s, $(left) s left" >&2
  started=$(date +%s)
  code=0
  SHARDSIM_GPU_PART=$name timeout --kill-after=5 "$seconds" scripts/gpu.sh --out "$out" --build "$build" \
    >"$out/$name.log" 2>&1 || code=$?
  took=$(($(date +%s) - started))
  if [ "$code" = 0 ]; then
    echo "done $took" >"$out/$name.status"
  else
    echo "failed $code $took" >"$out/$name.status"
    failed=$failed\ $name
  fi
done

"$python" tools/gpu_summary.py "$out" || failed=$failed\ summary
[ -z "$failed" ] || { echo "$0: failed:$failed; their logs are in $out" >&2; exit 1; }
[ -z "$over" ] || { echo "$0: no time for:$over; run it again" >&2; exit 3; }
