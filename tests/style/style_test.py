#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of the style checks: they report problems, and accept text without problems."""
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import alone  # noqa: E402
import containers  # noqa: E402
import layers  # noqa: E402
import words  # noqa: E402


def found(check, path, text):
    return len(list(check.problems_of(pathlib.PurePosixPath(path), text)))


class Layers(unittest.TestCase):
    def test_accepts(self):
        for path, text in [
                ("include/gpups/a.hpp", '#include <vector>\n#include "gpups/b.hpp"\n// a cudaStream_t\n'),
                ("kernels/rows/a.cu",
                 '#include <cub/cub.cuh>\n#include "kernels/runtime/launch.hpp"\n__device__ int x;\n'),
                ("kernels/runtime/launch.hpp", "body<<<1, 2>>>(n);\n"),
                ("trainer/tasks/graph/model/a.cpp",
                 '#include "trainer/tasks/graph/model.hpp"\n#include "kernels/rows/gather.hpp"\n'),
                ("comm/a.cpp", 'auto text = "a <<< b";\n')]:
            self.assertEqual(found(layers, path, text), 0, path)

    def test_reports(self):
        for path, text in [
                ("include/gpups/a.hpp", '#include "kernels/rows/gather.hpp"\n'),
                ("include/gpups/a.hpp", "#include <fmt/core.h>\n"),
                ("include/gpups/a.hpp", "#include <cuda_runtime.h>\n"),
                ("kernels/a.cu", '#include "comm/nccl/connect.hpp"\n'),
                ("kernels/a.cu", "body<<<1, 2>>>(n);\n"),
                ("comm/a.cpp", '#include "cache/protocol/round/round.hpp"\n'),
                ("cache/rows/a.cpp", '#include "cache/protocol/round/round.hpp"\n'),
                ("cache/a.cpp", '#include "cache/protocol/round/round.hpp"\n'),
                ("cache/a.cpp", "#include <thrust/sort.h>\n"),
                ("cache/a.cpp", "#include <tbb/parallel_for.h>\n"),
                ("cache/a.cpp", "cudaFree(p);\n"),
                ("kernels/base/a.hpp", '#include "kernels/runtime/launch.hpp"\n'),
                ("kernels/a.hpp", '#include "kernels/base/half.hpp"\n'),
                ("trainer/a.cpp", '#include "cache/protocol/round/round.hpp"\n'),
                ("trainer/config/a.cpp", '#include "trainer/step/task.hpp"\n'),
                ("trainer/run/a.cpp", '#include "trainer/other/a.hpp"\n'),
                ("examples/a/main.cpp", '#include "kernels/rows/gather.hpp"\n'),
                ("tests/a_test.cpp", '#include "oracle.hpp"\n')]:
            self.assertEqual(found(layers, path, text), 1, text)


class Words(unittest.TestCase):
    SPDX = "// SPDX-License-Identifier: Apache-2.0\n"

    def test_accepts(self):
        self.assertEqual(found(words, "a.cpp", self.SPDX + "int x;\n"), 0)
        self.assertEqual(found(words, "a.hpp", self.SPDX + "#pragma once\n"), 0)
        self.assertEqual(found(words, "README.md", "| a table " * 20 + "|\n"), 0)

    def test_reports(self):
        for path, text in [
                ("a.cpp", "int x;\n"),
                ("a.hpp", self.SPDX),
                ("a.cpp", self.SPDX + "// FIX" + "ME: later\n"),
                ("a.cpp", self.SPDX + "int x;"),
                ("a.cpp", self.SPDX + "int x; \n"),
                ("a.cpp", self.SPDX + "// na\u00efve\n"),
                ("a.cpp", self.SPDX + "/" * 121 + "\n"),
                ("README.md", "word " * 24 + "a\n"),
                ("a.cpp", self.SPDX + "int x;\n" * 400)]:
            self.assertEqual(found(words, path, text), 1, text[:60])


class RetiredWords(unittest.TestCase):
    LIST = ["# old, new, where\n", "\n", "turn_soon\tprogress_soon\tall\n", "Mesh\tCommunicator\tcomm,docs\n",
            "held back\tresidual\t*,!CHANGELOG.md\n"]

    def found(self, path, text):
        retired = words.RetiredWords(self.LIST)
        return [problem.split(" ")[0] for problem in retired.problems_of(pathlib.PurePosixPath(path), text)]

    def test_accepts(self):
        for path, text in [
                ("comm/a.hpp", "return soon; int turn, soon; // in turn, soon\n"),
                ("comm/a.hpp", "int meshes; // a meshwork\n"),
                ("cache/a.cpp", "class Mesh;\n"),
                ("CHANGELOG.md", "held back\n"),
                ("docs/a.md", "what is held there, and back here\n")]:
            self.assertEqual(self.found(path, text), [], text)

    def test_reports(self):
        for path, text, lines in [
                ("a.cpp", "x.turn_soon();\n\ny.turn_soon_ = kTurnSoonMost;\n", [1, 3, 3]),
                ("comm/a.hpp", "// over a mesh\nclass MemoryMesh;\nauto text = \"a mesh\";\n", [1, 2, 3]),
                ("docs/a.md", "the `Mesh`\n", [1]),
                ("cache/a.hpp", "int x;\n// what is held\n// back of a row\n", [2])]:
            self.assertEqual(self.found(path, text), [f"{path}:{line}:" for line in lines], text)

    def test_rejects_invalid_list(self):
        for line in ["a b\n", "a\tb\n", "a\t\tall\n", "+\tplus\tall\n"]:
            with self.assertRaises(ValueError):
                words.RetiredWords([line])


class TypeNames(unittest.TestCase):
    def problems(self, *texts):
        headers = [(pathlib.PurePosixPath(f"comm/{i}.hpp"), text) for i, text in enumerate(texts)]
        return len(list(words.problems_of_types(headers)))

    def test_accepts(self):
        for texts in [
                ["namespace a {\nclass Xyz;\nstruct Yvw {};\n}\n", "class Xyz {};\nclass Yvw;\n"],
                ["struct A {\n  struct Impl {};\n  enum class Kind { kA };\n};\n",
                 "struct B {\n  enum class Kind { kB };\n};\nstruct B::Impl {};\n"],
                ["#if A\nstruct Xyz {};\n#else\nstruct Xyz {};\n#endif\n"],
                ["template <class T>\nstruct Xyz {};\n", "template <>\nstruct Xyz<int> {};\n"],
                ["inline void f() {\n  struct Xyz {};\n  using Yvw = int;\n}\n", "struct Xyz {};\nusing Yvw = int;\n"],
                ["template <class Xyz, template <class> class Yvw>\nstruct A {};\n",
                 "struct Xyz {};\nstruct Yvw {};\n"],
                ["// struct Xyz {};\nauto text = \"struct Xyz {}\";\n", "struct Xyz {};\n"],
                ["struct Xyz final : Base {};\nvoid f(struct Yvw y);\n", "struct Yvw {};\n"]]:
            self.assertEqual(self.problems(*texts), 0, texts)

    def test_reports(self):
        for texts, count in [
                (["namespace a {\nclass Xyz {};\n}\n", "namespace b::c {\nstruct Xyz final : Yvw {};\n}\n"], 1),
                (["struct A {\n  void f() { g(); }\n  struct Piece {};\n};\n",
                  "struct B {\n  struct Piece {};\n};\n"], 1),
                (["struct Kind {};\n", "struct B {\n  enum class Kind { kB };\n};\n"], 1),
                (["using Xyz = int;\n", "enum class Xyz : char { kA };\n",
                  "template <class T>\nclass [[nodiscard]] Xyz {};\n"], 2)]:
            self.assertEqual(self.problems(*texts), count, texts)


class Containers(unittest.TestCase):
    def compose(self, **changes):
        variables = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "a", "GPUPS_TOKEN_FILE": "/run/secrets/t"}
        return {"services": {"a": {"environment": {**variables, **changes}, "secrets": ["t"]}}}

    def problems(self, **changes):
        return len(list(containers.problems_of_compose(self.compose(**changes), {"services": {"a": {}}})))

    def test_checks_compose(self):
        self.assertEqual(self.problems(), 0)
        for name, wrong in [("RANK", "1"), ("WORLD_SIZE", "2"), ("MASTER_ADDR", "b"),
                            ("GPUPS_TOKEN_FILE", "/run/secrets/u")]:
            self.assertEqual(self.problems(**{name: wrong}), 1, name)

    def test_checks_dockerfile(self):
        root = pathlib.Path(__file__).parent
        for text, count in [("FROM a AS b\nFROM c\nCOPY --from=b x y\nCOPY . z\nUSER me\n", 0),
                            ("FROM a AS b\nFROM c\nCOPY --from=d x y\nUSER me\n", 1),
                            ("FROM a AS b\nFROM c\nCOPY not_there x\nUSER me\n", 1),
                            ("FROM a AS b\nUSER me\nFROM c\n", 1)]:
            self.assertEqual(len(list(containers.problems_of_dockerfile(text, root))), count, text)


class Alone(unittest.TestCase):
    def test_flags(self):
        command = ["ccache", "c++", "-DX", "-include", "pch.hxx", "-MD", "-MF", "a.d", "-o", "a.o", "-c", "a.cpp"]
        self.assertEqual(alone.flags_of(command, "c++", "a.cpp"), ["-DX"])

    def test_headers_are_compiled_by_their_source(self):
        changed = ["comm/nccl/connect.hpp", "comm/nccl/connect.cpp", "docs/design.md", "comm/gone.cpp"]
        self.assertEqual(alone.units_of(changed, False),
                         {"comm/nccl/connect.cpp": "comm/nccl/connect.cpp"})
        self.assertEqual(alone.units_of(["tests/headers.hpp"], False), {"tests/headers.hpp": "inner_headers.cpp"})

    def test_reports(self):
        for text, correct in [("#pragma once\nstruct A {};\n", True), ("struct A {};\n", False),
                              ("#pragma once\nstd::string a();\n", False)]:
            with tempfile.TemporaryDirectory() as folder:
                pathlib.Path(folder, "a.hpp").write_text(text)
                problem = alone.compile_alone("a.hpp", ["c++"], folder, folder, ["-I", folder])
                self.assertEqual(problem == "", correct, text)


if __name__ == "__main__":
    unittest.main()
