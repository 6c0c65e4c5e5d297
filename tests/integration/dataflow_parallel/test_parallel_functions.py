"""Functions and classes of a script, as its worker processes get them: by value, with the same meaning."""

import pytest
from parallel_samples import run_script

SCRIPT = """
import abc, dataclasses, enum, functools, itertools, xml.dom
from typing import Generic, NamedTuple, TypedDict, TypeVar
from ziggurat.dataflow.parallel import MultiProcessMapData
from ziggurat.dataflow.sources import DataFromList

SETUP

with MultiProcessMapData(DataFromList([[0], [1]], shuffle=False), 1, check, start_method="spawn") as flow:
    print(list(flow))
"""

ENUM = """
class Color(enum.Enum):
    RED = 1
    def __str__(self):
        return self.name.lower()
    @classmethod
    def first(cls):
        return cls.RED

class Word(str, enum.Enum):
    X = "x"
    @staticmethod
    def length():
        return 1

def check(dp):
    return [str(Color.first()), Word.X + "!", Word.length()]
"""

GENERIC = """
T = TypeVar("T")

class Box(Generic[T]):
    def __init__(self, value: T):
        self.value = value

class Options(TypedDict):
    size: int

class Pair(NamedTuple):
    left: int
    right: str = "r"

def check(dp):
    return [Box[int](dp[0]).value, Options(size=2)["size"], Pair(1).right, T.__name__]
"""

BASES = """
class Shape(abc.ABC):
    @abc.abstractmethod
    def area(self): ...
    def name(self):
        return "shape"

class Square(Shape):
    def area(self):
        return 4
    def name(self):
        return "square " + super().name()

class Point:
    __slots__ = ("x", "__weakref__")

Shape.register(Point)

@dataclasses.dataclass(slots=True, frozen=True)
class Size:
    width: int
    tags: list = dataclasses.field(default_factory=list)

def check(dp):
    return [Square().name(), Square().area(), issubclass(Point, Shape), hash(Size(1, ())) == hash(Size(1, ()))]
"""

SHARED_VARIABLE = """
def counter():
    number = 0
    def up():
        nonlocal number
        number += 1
    def value():
        return number
    return up, value

up, value = counter()

def check(dp):
    up()
    return [value()]
"""

SUBMODULE = """
def check(dp):
    return [xml.dom.Node.ELEMENT_NODE]
"""

CLASS_ATTRIBUTE = """
class Counted:
    made = 0
    def __init__(self):
        Counted.made += 1

def check(dp):
    return [Counted().made, Counted]

Counted.made = 10
"""


@pytest.mark.parametrize(
    ("setup", "printed"),
    [
        pytest.param(ENUM, "[['red', 'x!', 1], ['red', 'x!', 1]]", id="enum"),
        pytest.param(GENERIC, "[[0, 2, 'r', 'T'], [1, 2, 'r', 'T']]", id="generic"),
        pytest.param(BASES, "[['square shape', 4, True, True], ['square shape', 4, True, True]]", id="bases"),
        pytest.param(SHARED_VARIABLE, "[[1], [2]]", id="shared variable"),
        pytest.param(SUBMODULE, "[[1], [1]]", id="submodule"),
        pytest.param(
            CLASS_ATTRIBUTE,
            "[[11, <class '__main__.Counted'>], [12, <class '__main__.Counted'>]]",
            id="class attribute",
        ),
    ],
)
def test_worker_gets_what_a_script_defines(tmp_path, setup, printed):
    done = run_script(tmp_path, SCRIPT.replace("SETUP", setup))
    assert (done.stdout, done.stderr) == (f"{printed}\n", "")


def test_class_from_worker_leaves_the_original_alone(tmp_path):
    after = CLASS_ATTRIBUTE + "\nkeep = Counted\n"
    script = SCRIPT.replace("SETUP", after) + "\n    print(Counted.made, list(flow)[0][1] is keep)\n"
    done = run_script(tmp_path, script)
    assert (done.stdout.splitlines()[-1:], done.stderr) == (["10 True"], "")


def test_nested_function_of_a_module_uses_its_globals(tmp_path):
    (tmp_path / "prepared.py").write_text(
        "import threading\nLOCK = threading.Lock()\nSEEN = []\n"
        "def make():\n"
        "    def check(dp):\n"
        "        with LOCK:\n"
        "            SEEN.append(dp)\n"
        "        import prepared\n"
        "        return [len(prepared.SEEN)]\n"
        "    return check\n"
    )
    done = run_script(tmp_path, SCRIPT.replace("SETUP", "import prepared\ncheck = prepared.make()"))
    assert (done.stdout, done.stderr) == ("[[1], [2]]\n", "")


def test_open_file_is_refused_and_not_copied(tmp_path):
    refused = SCRIPT.replace("SETUP", "file = open(__file__)\ncheck = lambda dp: [file.name]").replace(
        "    print(list(flow))",
        "    try:\n        print(list(flow))\n    except Exception as error:\n        print(error)\nfile.close()",
    )
    done = run_script(tmp_path, refused)
    assert "cannot pickle '_io.TextIOWrapper' object" in done.stdout


MULTIPROCESSING = """
import multiprocessing
from ziggurat.dataflow.parallel import MultiProcessMapData
from ziggurat.dataflow.sources import DataFromList

class Scale:
    def __call__(self, dp):
        return [dp[0] * 10]

def run(queue):
    with MultiProcessMapData(DataFromList([[0], [1]], shuffle=False), 1, Scale(), start_method="spawn") as flow:
        queue.put(list(flow))

if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=run, args=(queue,))
    process.start()
    print(queue.get(timeout=100))
    process.join()
"""


def test_worker_gets_a_class_of_a_spawned_script(tmp_path):
    done = run_script(tmp_path, MULTIPROCESSING)
    assert (done.stdout, done.stderr) == ("[[0], [10]]\n", "")
