#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles the C++ code of README.md, and checks that links in README.md, docs/ and examples/ lead to existing files.

usage: readme.py FOLDER COMPILER    of the repository; a C++ compiler
"""
import pathlib
import re
import subprocess
import sys

# Declarations that the example leaves to its reader.
GIVEN = """
#include <gpups/gpups.hpp>
struct Mine { std::vector<gpups::Key> keys; std::size_t samples; };
using Batches = std::vector<Mine>;
Batches batches_of(gpups::Group const& group);
void compute_gradients(Mine const&, gpups::View<std::uint32_t const> positions, gpups::MatrixView<float const> rows,
                       gpups::MatrixView<float> gradients);
"""


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    root, compiler = pathlib.Path(sys.argv[1]), sys.argv[2]
    blocks = re.findall(r"```cpp\n(.*?)```", (root / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    command = [compiler, "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", f"-I{root}/include", "-xc++", "-"]
    failed = [block for block in blocks if subprocess.run(command, input=GIVEN + block, text=True).returncode != 0]

    def without_code(page):
        return re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)

    broken = [f"{page.relative_to(root)} links to {link}, which does not exist"
              for page in [*root.glob("*.md"), *root.glob("docs/**/*.md"), *root.glob("examples/**/*.md")]
              for link in re.findall(r"\]\(([^)#:]+)\)", without_code(page))
              if not (page.parent / link).exists()]
    print("\n".join([*broken, f"{len(blocks)} C++ blocks, {len(failed)} do not compile; {len(broken)} broken links"]))
    sys.exit(1 if failed or broken or not blocks else 0)


if __name__ == "__main__":
    main()
