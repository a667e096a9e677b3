"""tools/measure_gpu.py: what needs no GPU and, with a stand-in for it, no PyTorch."""

import pathlib
import sys
import types
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
sys.modules["torch"] = types.SimpleNamespace(Tensor=type("Tensor", (), {}))
import gpu_clock  # noqa: E402
import measure_gpu  # noqa: E402


class Timing(unittest.TestCase):
    def test_every_copy_is_called_before_any_is_timed(self):
        """Inputs that hold no tensors of their own, as an optimizer: eight of them."""
        calls = []
        timed = []
        clock = gpu_clock.Clock("cpu", 60)
        clock.once = lambda call, queued: timed.append(len(calls)) or call() or 1.0
        made = []

        def make():
            made.append(len(made))
            return (made[-1],)

        clock.times(make, calls.append)
        self.assertEqual(len(made), 8)
        self.assertEqual(set(calls[:timed[0]]), set(made))


class Dropout(unittest.TestCase):
    def test_every_rate_is_zero_and_nothing_else_changes(self):
        defaults = {"resid_pdrop": 0.1, "attention_dropout": 0.0, "hidden_dropout_prob": 0.1,
                    "dropout": 0.1, "layerdrop": 0, "classifier_dropout": None,
                    "drop_last": False, "vocab_size": 100, "use_cache": True}
        fields = {"vocab_size": 50, "resid_pdrop": 0.2, "dropout_rate": 0.3}
        self.assertEqual(
            measure_gpu.without_dropout(fields, defaults),
            {"vocab_size": 50, "resid_pdrop": 0.0, "dropout_rate": 0.0, "attention_dropout": 0.0,
             "hidden_dropout_prob": 0.0, "dropout": 0.0, "layerdrop": 0.0})


if __name__ == "__main__":
    unittest.main()
