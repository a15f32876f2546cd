#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks that all C++ files are formatted; with --fix, formats them. Versions of clang-format other than 14 give
# slightly different results.
set -euo pipefail
cd "$(dirname "$0")/../.."
if ! command -v clang-format-14 >/dev/null; then
  echo "clang-format-14 is not installed: tools/install_dependencies installs it"
  exit 77
fi
mode=(--dry-run -Werror)
if [ "${1:-}" = --fix ]; then mode=(-i); fi
find include kernels comm cache trainer tools tests bench examples \
  \( -name '*.hpp' -o -name '*.cpp' -o -name '*.cu' \) -print0 | xargs -0 -r clang-format-14 "${mode[@]}"
