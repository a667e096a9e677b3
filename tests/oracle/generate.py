"""Random programs, from a seed: the same seed gives the same program.

A program is a chain: every op takes the newest value, some take an older value or a new input
beside it. Its family says which ops it draws from; "mixed" draws from all.
"""

import random

import program as programs

MESHES = [[["x", 8]], [["x", 2], ["y", 4]], [["x", 4], ["y", 2]],
          [["x", 2], ["y", 2], ["z", 2]]]
SIZES = [8, 16, 32, 64, 128, 256]
UNEVEN_SIZES = [6, 10, 12, 20, 36, 100]
MOST_ELEMENTS = 1 << 18

FAMILIES = {
    "einsum": ["einsum", "einsum", "unary", "binary"],
    "reduce": ["reduce", "reduce", "einsum", "unary", "binary", "softmax", "norm", "argmax",
               "broadcast", "where", "cast"],
    "shape": ["reshape", "reshape", "transpose", "concatenate", "slice", "pad", "flip", "roll",
              "unary", "binary", "broadcast"],
    "index": ["take", "scatter_add", "dynamic_slice", "dynamic_update", "one_hot", "unary",
              "binary", "cumsum", "sort", "einsum"],
    "loop": ["scan", "einsum", "unary", "binary", "reduce"],
    "reshard": ["unary"],
    "mixed": ["einsum", "unary", "binary", "where", "cast", "broadcast", "causal", "reduce",
              "argmax", "softmax", "norm", "reshape", "transpose", "concatenate", "slice", "pad",
              "take", "scatter_add", "dynamic_slice", "dynamic_update", "one_hot", "scan"],
}


def generate(family, seed):
    return _Generator(family, seed).run()


class _Generator:
    def __init__(self, family, seed):
        self.random = random.Random(f"{family} {seed}")
        self.uneven = self.random.random() < 0.15
        self.ops = FAMILIES[family.removesuffix(" gradient")]
        self.gradient = family.endswith(" gradient")
        self.program = {"mesh": self.random.choice(MESHES), "inputs": [], "ops": [], "outputs": [],
                        "gradient": self.gradient}
        self.types = []  # of inputs and ops in the order of their making
        self.made = []   # ("input" or "op", index in the program's list), beside types

    # Values are numbered in the order of their making here, and renumbered at the end: the program
    # wants inputs first.
    def run(self):
        current = self.new_input(self.shape(self.random.choice([1, 2, 2, 3, 3, 4])))
        length = self.random.randint(1, 5)
        tries = 0
        while len(self.program["ops"]) < length and tries < 40:
            tries += 1
            made = getattr(self, "_" + self.random.choice(self.ops))(current)
            if made is not None:
                current = made
        outputs = [current]
        ops = [v for v, (kind, _) in enumerate(self.made) if kind == "op" and v != current]
        if ops and self.random.random() < 0.2:
            outputs.append(self.random.choice(ops))
        for value in outputs:
            spec = self.spec(self.types[value].shape, even=True)
            if self.random.random() < 0.3:
                spec = None
            self.program["outputs"].append({"value": value, "spec": spec})
        self.renumber()
        program = programs.without_unused(self.program)
        if not any(value["dtype"] == "float32" for value in program["inputs"]):
            program["gradient"] = False  # there is nothing to derive by
        return program

    def renumber(self):
        count = len(self.program["inputs"])
        number = [i if kind == "input" else count + i for kind, i in self.made]
        for op in self.program["ops"]:
            op["operands"] = [number[v] for v in op["operands"]]
        for output in self.program["outputs"]:
            output["value"] = number[output["value"]]

    def size(self):
        return self.random.choice(UNEVEN_SIZES if self.uneven and self.random.random() < 0.5
                                  else SIZES)

    def shape(self, rank):
        while True:
            shape = [self.size() for _ in range(rank)]
            if _elements(shape) <= MOST_ELEMENTS:
                return shape

    def spec(self, shape, even):
        """Every axis goes to some dimension or to none."""
        while True:
            spec = [[] for _ in shape]
            axes = [name for name, _ in self.program["mesh"]]
            self.random.shuffle(axes)
            for axis in axes:
                if shape and self.random.random() < 0.75:
                    self.random.choice(spec).append(axis)
            if not even or programs.divides(spec, shape, self.program["mesh"]):
                return spec

    def constraint(self, shape):
        if self.random.random() > 0.3:
            return None
        spec = self.spec(shape, even=self.random.random() < 0.8)
        open_dims = self.random.random() < 0.15
        return ["?" if open_dims and self.random.random() < 0.5 else axes for axes in spec]

    def new_input(self, shape, dtype="float32"):
        unsaid = self.types and self.random.random() < 0.1
        spec = None if unsaid else self.spec(shape, even=True)
        self.program["inputs"].append({"shape": list(shape), "dtype": dtype, "spec": spec})
        self.types.append(programs.value_types(
            {"inputs": self.program["inputs"][-1:], "ops": []})[0])
        self.made.append(("input", len(self.program["inputs"]) - 1))
        return len(self.types) - 1

    def add(self, kind, operands, **options):
        op = {"kind": kind, "operands": operands, "with": options, "spec": None}
        made = programs.type_of(op, [self.types[v] for v in operands])
        if _elements(made.shape) > MOST_ELEMENTS or 0 in made.shape:
            return None
        op["spec"] = self.constraint(made.shape)
        self.program["ops"].append(op)
        self.types.append(made)
        self.made.append(("op", len(self.program["ops"]) - 1))
        return len(self.types) - 1

    def other(self, shape):
        """A float value of this shape: an older one if there is one, now and then, or a new input."""
        known = [v for v, t in enumerate(self.types)
                 if t.shape == tuple(shape) and t.dtype.kind == "f"]
        if known and self.random.random() < 0.5:
            return self.random.choice(known)
        return self.new_input(shape)

    def floats(self, x):
        return self.types[x].dtype.kind not in "iub"

    def axis(self, x):
        rank = len(self.types[x].shape)
        return self.random.randrange(rank) if rank else None

    # One function per kind of op: the new value, or None where the op does not fit.

    def _einsum(self, x):
        shape = self.types[x].shape
        if not self.floats(x) or not shape:
            return None
        letters = list("abcdefgh"[: len(shape)])
        sizes = dict(zip(letters, shape))
        contracted, shared, kept = [], [], []
        for letter in letters:
            draw = self.random.random()
            (contracted if draw < 0.35 else shared if draw < 0.5 else kept).append(letter)
        new = [chr(ord("m") + i) for i in range(self.random.choice([0, 1, 1, 1, 2]))]
        sizes.update((letter, self.size()) for letter in new)
        rhs = contracted + shared + new
        out = shared + kept + new
        if not rhs or len(rhs) > 4 or len(out) > 4 or (not contracted and not shared):
            return None
        self.random.shuffle(rhs)
        if self.random.random() < 0.4:
            self.random.shuffle(out)
        rhs_shape = [sizes[letter] for letter in rhs]
        if _elements(rhs_shape) > MOST_ELEMENTS:
            return None
        if _elements([sizes[letter] for letter in out]) > MOST_ELEMENTS:
            return None
        y = self.other(rhs_shape)
        if self.random.random() < 0.3:
            return self.add("einsum", [y, x],
                            letters=f"{''.join(rhs)},{''.join(letters)}->{''.join(out)}")
        return self.add("einsum", [x, y],
                        letters=f"{''.join(letters)},{''.join(rhs)}->{''.join(out)}")

    def _unary(self, x):
        if not self.floats(x):
            return None
        return self.add("unary", [x], f=self.random.choice(sorted(programs.UNARY)))

    def _binary(self, x):
        shape = self.types[x].shape
        if not self.floats(x):
            return None
        draw = self.random.random()
        if draw < 0.3 and shape:  # a bias
            y = self.new_input(shape[-1:])
        elif draw < 0.5 and shape:  # a scale per row
            y = self.new_input(shape[:-1] + (1,))
        else:
            y = self.other(shape)
        return self.add("binary", [x, y], f=self.random.choice(sorted(programs.BINARY)))

    def _where(self, x):
        return self.add("where", [x, self.other(self.types[x].shape)]) if self.floats(x) else None

    def _cast(self, x):
        if not self.floats(x):
            return None
        is_float32 = self.types[x].dtype.name == "float32"
        return self.add("cast", [x], dtype="bfloat16" if is_float32 else "float32")

    def _broadcast(self, x):
        shape = list(self.types[x].shape)
        if len(shape) > 3:
            return None
        axis = self.random.randint(0, len(shape))
        return self.add("broadcast", [x], axis=axis,
                        shape=shape[:axis] + [self.size()] + shape[axis:])

    def _causal(self, x):
        return self.add("causal", [x]) if len(self.types[x].shape) > 1 else None

    def _reduce(self, x):
        rank = len(self.types[x].shape)
        if not rank or not self.floats(x):
            return None
        axes = sorted(self.random.sample(range(rank), self.random.randint(1, min(rank, 2))))
        return self.add("reduce", [x], f=self.random.choice(sorted(programs.REDUCE)), axes=axes,
                        keep=self.random.random() < 0.3)

    def _argmax(self, x):
        if not self.types[x].shape or not self.floats(x) or self.gradient:
            return None
        return self.add("argmax", [x], axis=self.axis(x))

    def _softmax(self, x):
        if not self.types[x].shape or not self.floats(x):
            return None
        return self.add("softmax", [x], axis=self.axis(x))

    def _norm(self, x):
        return self.add("norm", [x]) if self.types[x].shape and self.floats(x) else None

    def _cumsum(self, x):
        if not self.types[x].shape or not self.floats(x):
            return None
        return self.add("cumsum", [x], axis=self.axis(x))

    def _sort(self, x):
        if not self.types[x].shape or not self.floats(x) or self.gradient:
            return None
        return self.add("sort", [x], axis=self.axis(x))

    def _reshape(self, x):
        shape = list(self.types[x].shape)
        for _ in range(self.random.randint(1, 2)):
            merge = self.random.random() < 0.5
            if merge and len(shape) > 1:
                i = self.random.randrange(len(shape) - 1)
                shape[i : i + 2] = [shape[i] * shape[i + 1]]
            elif not merge and 0 < len(shape) < 4:
                i = self.random.randrange(len(shape))
                factors = [f for f in (2, 3, 4, 5, 8, 16) if shape[i] % f == 0 and shape[i] > f]
                if factors:
                    factor = self.random.choice(factors)
                    pair = [factor, shape[i] // factor]
                    self.random.shuffle(pair)
                    shape[i : i + 1] = pair
        if shape == list(self.types[x].shape):
            return None
        return self.add("reshape", [x], shape=shape)

    def _transpose(self, x):
        order = list(range(len(self.types[x].shape)))
        self.random.shuffle(order)
        return self.add("transpose", [x], order=order) if order != sorted(order) else None

    def _concatenate(self, x):
        shape = list(self.types[x].shape)
        if not shape or not self.floats(x) or self.types[x].dtype.name != "float32":
            return None
        axis = self.axis(x)
        shape[axis] = self.random.choice([shape[axis], self.size()])
        operands = [x, self.other(shape)]
        self.random.shuffle(operands)
        if any(self.types[v].dtype.name != "float32" for v in operands):
            return None
        return self.add("concatenate", operands, axis=axis)

    def _slice(self, x):
        shape = self.types[x].shape
        if not shape:
            return None
        starts, limits, strides = [0] * len(shape), list(shape), [1] * len(shape)
        axis = self.axis(x)
        if self.random.random() < 0.5:  # half
            starts[axis] = self.random.choice([0, shape[axis] // 2])
            limits[axis] = starts[axis] + max(1, shape[axis] // 2)
        else:
            starts[axis] = self.random.randrange(shape[axis])
            limits[axis] = self.random.randint(starts[axis] + 1, shape[axis])
        if self.random.random() < 0.15:
            strides[axis] = 2
        return self.add("slice", [x], starts=starts, limits=limits, strides=strides)

    def _pad(self, x):
        shape = self.types[x].shape
        if not shape:
            return None
        edges = [[0, 0, 0] for _ in shape]
        axis = self.axis(x)
        edges[axis][self.random.randrange(2)] = self.random.choice([1, 2, shape[axis]])
        if self.random.random() < 0.1:
            edges[axis][2] = 1
        return self.add("pad", [x], edges=edges)

    def _flip(self, x):
        return self.add("flip", [x], axis=self.axis(x)) if self.types[x].shape else None

    def _roll(self, x):
        if not self.types[x].shape:
            return None
        return self.add("roll", [x], axis=self.axis(x), shift=self.random.choice([1, -1, 4]))

    def _take(self, x):
        shape = self.types[x].shape
        if not shape or len(shape) > 3:
            return None
        indices = self.new_input(self.shape(self.random.choice([1, 1, 2])), "int32")
        return self.add("take", [x, indices],
                        axis=0 if self.random.random() < 0.7 else self.axis(x))

    def _one_hot(self, x):
        shape = self.shape(self.random.choice([1, 2]))
        ids = x if self.types[x].dtype.kind == "i" and len(self.types[x].shape) < 3 else (
            self.new_input(shape, "int32"))
        made = self.add("one_hot", [ids], classes=self.size())
        return made if made is None else self._einsum(made) or made

    def _scatter_add(self, x):
        shape = self.types[x].shape
        if not shape or self.types[x].dtype.name != "float32":
            return None
        rows = self.size()
        if _elements((rows,) + shape[1:]) > MOST_ELEMENTS:
            return None
        indices = self.new_input([rows], "int32")
        update = self.other((rows,) + shape[1:])
        if self.types[update].dtype.name != "float32":
            return None
        return self.add("scatter_add", [x, indices, update])

    def _dynamic_slice(self, x):
        shape = self.types[x].shape
        if not shape:
            return None
        axis = self.axis(x)
        return self.add("dynamic_slice", [x, self.new_input([], "int32")], axis=axis,
                        size=max(1, shape[axis] // self.random.choice([2, 4, shape[axis]])))

    def _dynamic_update(self, x):
        shape = list(self.types[x].shape)
        if not shape or self.types[x].dtype.name != "float32":
            return None
        axis = self.axis(x)
        shape[axis] = max(1, shape[axis] // self.random.choice([2, 4, shape[axis]]))
        update = self.other(shape)
        if self.types[update].dtype.name != "float32":
            return None
        return self.add("dynamic_update", [x, update, self.new_input([], "int32")], axis=axis)

    def _scan(self, x):
        shape = self.types[x].shape
        if len(shape) < 2 or self.types[x].dtype.name != "float32" or shape[-1] > 128:
            return None
        length = self.random.choice([3, 4, 8])
        operands, steps = [x], []
        for _ in range(self.random.randint(1, 4)):
            step = self.random.choice(["matmul", "matmul", "add", "norm", "tanh", "sine"])
            steps.append([step])
            if step == "matmul":
                operands.append(self.new_input([length, shape[-1], shape[-1]]))
            elif step == "add":
                operands.append(self.new_input([length, *shape]))
            if step in ("matmul", "add"):
                steps[-1].append(len(operands) - 2)
        if len(operands) == 1:
            operands.append(self.new_input([length, *shape]))
            steps.append(["add", 0])
        if any(_elements(self.types[v].shape) > MOST_ELEMENTS for v in operands):
            return None
        return self.add("scan", operands, steps=steps, collect=self.random.random() < 0.2)


def _elements(shape):
    count = 1
    for size in shape:
        count *= size
    return count
