"""What the test scripts of this folder share. A script defines test_* functions and ends with
run_tests(globals()); its first argument is the program dump_tree."""

import json
import os
import subprocess
import sys
import tempfile

TOOLS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tools")
_SCRATCH = tempfile.TemporaryDirectory()


def scratch(name):
    """A path for a file of the test."""
    return os.path.join(_SCRATCH.name, name)


def dump(path):
    """The tree that shardsim reads from a file or folder."""
    done = subprocess.run([sys.argv[1], path], capture_output=True, text=True)
    if done.returncode != 0:
        raise AssertionError(f"dump_tree: {done.stderr}")
    return json.loads(done.stdout)


def refusal(path):
    """What shardsim says against a file that it does not read."""
    done = subprocess.run([sys.argv[1], path], capture_output=True, text=True)
    expect_equal(done.returncode, 3)
    return done.stderr.strip()


def expect_equal(actual, expected):
    if actual != expected:
        raise AssertionError(f"expected {expected}\n  actual {actual}")


def expect_raises(message, function):
    try:
        function()
    except ValueError as error:
        if message not in str(error):
            raise AssertionError(f"expected {message!r} in {str(error)!r}") from error
        return
    raise AssertionError(f"expected a ValueError with {message!r}")


def run_tests(names):
    tests = [(name, test) for name, test in names.items() if name.startswith("test_")]
    failed = 0
    for name, test in tests:
        try:
            test()
            print("passed", name)
        except Exception as error:  # one failure does not hide the next
            failed += 1
            print("FAILED", name, f"{type(error).__name__}: {error}", sep="\n  ")
    print(f"{len(tests) - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)
