#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs a build with BUILD_SHARED_LIBS, and links an application outside the tree with it: by CMake and pkg-config,
# static and shared. Checks what is installed, exported and demanded of the application.
#
# usage: try_install.sh BUILD PREFIX    PREFIX: a new folder, in which the installed files stay in PREFIX/both
set -euo pipefail
build=$(realpath "$1") scratch=$2 here=$(dirname "$(realpath "$0")")
prefix=$scratch/both
mkdir -p "$scratch"

fail() {
  echo "failed: $1" >&2
  exit 1
}

# Runs an application, which must print "right".
expect_right() {
  local output
  output=$("$1" 2>&1) || fail "$1 ended with an error: $output"
  [ "$output" = right ] || fail "$1 printed $output"
}

# links_shared PROGRAM: whether it loads libgpups.so.
links_shared() { readelf --dynamic "$1" | grep -q 'NEEDED.*libgpups\.so'; }

expect_shared() { links_shared "$1" || fail "$1 does not load libgpups.so"; }
expect_static() { ! links_shared "$1" || fail "$1 loads libgpups.so"; }

check_files() {
  local component
  for component in runtime development; do
    cmake --install "$build" --prefix "$scratch/$component" --component "$component" >/dev/null
    [ -n "$(find "$scratch/$component" -name LICENSE)" ] || fail "the component $component has no LICENSE"
  done
  cmake --install "$build" --prefix "$prefix" >/dev/null
  [ -x "$scratch/runtime/bin/gpu_train" ] || fail "the component runtime has no gpu_train"
  [ -n "$(find "$scratch/runtime" -name 'libgpups.so.*')" ] || fail "the component runtime has no shared library"
  [ -z "$(find "$scratch/runtime" -name '*.hpp' -o -name '*.a' -o -name '*.cmake' -o -name '*.pc')" ] ||
    fail "the component runtime has files for development"
  diff <(cd "$scratch/development/include" && find . -type f | sort) \
    <(cd "$here/../../include" && find . -type f | sort) || fail "other headers than those of include/ are installed"
}

# The shared library exports all public functions of the static one, and nothing else.
check_exports() {
  local library=$1/libgpups.so archive=$1/libgpups.a
  local inner='^([^(]* )?gpups::((comm|kernels|cache|cuda)::|[A-Za-z]+::Impl\b)'
  nm -DC --defined-only "$library" | cut -c20- >"$scratch/exported"
  grep -vE '^(typeinfo( name)? for |vtable for )?gpups::' "$scratch/exported" &&
    fail "symbols are exported that are not of gpups"
  grep -E "$inner" "$scratch/exported" && fail "inner symbols are exported"
  nm -C --defined-only "$archive" 2>/dev/null | grep -E '^[0-9a-f]+ T gpups::' | cut -c20- |
    grep -vE "$inner" | sort -u >"$scratch/public"
  [ -s "$scratch/public" ] || fail "the static library has no public functions"
  comm -23 "$scratch/public" <(sort -u "$scratch/exported") >"$scratch/not_exported"
  [ ! -s "$scratch/not_exported" ] || fail "public functions are not exported: $(cat "$scratch/not_exported")"
}

check_cmake() {
  local kind
  for kind in "" shared static; do
    local at=$scratch/app-${kind:-chosen}
    # The shared library needs no other package. A static one needs libraries, and the error names them.
    [ "$kind" = static ] || set -- -DCMAKE_IGNORE_PREFIX_PATH=/usr
    cmake -S "$here" -B "$at" -G Ninja "-DCMAKE_PREFIX_PATH=$prefix" -DKIND="$kind" "$@" >/dev/null
    cmake --build "$at" >/dev/null
    expect_right "$at/app"
    if [ "$kind" = static ]; then expect_static "$at/app"; else expect_shared "$at/app"; fi
    set --
  done
  local of_system
  of_system=$(dirname "$(realpath "$(c++ -print-file-name=libtbb.so)")")
  if cmake -S "$here" -B "$scratch/app-none" -G Ninja "-DCMAKE_PREFIX_PATH=$prefix" -DKIND=static \
    "-DCMAKE_IGNORE_PATH=$of_system;${of_system#/usr}" >"$scratch/none.txt" 2>&1; then
    fail "a static library without its libraries was found"
  fi
  grep -q "libtbb, which was not found" "$scratch/none.txt" || fail "$(cat "$scratch/none.txt")"
}

check_pkg_config() {
  local folder=$1 compile=(c++ -std=c++20 "$here/app.cpp")
  export PKG_CONFIG_PATH=$folder/pkgconfig
  pkg-config --exists gpups || fail "pkg-config does not find gpups"
  # shellcheck disable=SC2046  # several arguments
  "${compile[@]}" -o "$scratch/app-pc-shared" $(pkg-config --cflags --libs gpups) "-Wl,-rpath,$folder"
  expect_right "$scratch/app-pc-shared"
  expect_shared "$scratch/app-pc-shared"
  # Where only the static library is installed.
  rm "$folder"/libgpups.so*
  # shellcheck disable=SC2046
  "${compile[@]}" -o "$scratch/app-pc-static" $(pkg-config --cflags --static --libs gpups)
  expect_right "$scratch/app-pc-static"
  expect_static "$scratch/app-pc-static"
}

# With an older C++, each public header gives one error that says what to do.
check_old_standard() {
  local header output
  for header in "$here"/../../include/gpups/*.hpp; do
    output=$(echo "#include <gpups/$(basename "$header")>" |
      c++ -std=c++17 -fsyntax-only "-I$prefix/include" -xc++ - 2>&1) && fail "$header compiles as C++17"
    [ "$(grep -c '#error.*-std=c++20' <<<"$output")" -ge 1 ] || fail "$header as C++17: $output"
    [ "$(grep -c 'error:' <<<"$output")" -eq 2 ] || fail "$header as C++17: $output"  # and the end of the compilation
  done
}

# The library alone needs no package of the trainer.
check_library_alone() {
  cmake -S "$here/../.." -B "$scratch/alone" -G Ninja -DGPUPS_BUILD_TRAINER=OFF -DGPUPS_CUDA=OFF \
    -DCMAKE_DISABLE_FIND_PACKAGE_CLI11=ON -DCMAKE_DISABLE_FIND_PACKAGE_ZLIB=ON \
    -DCMAKE_DISABLE_FIND_PACKAGE_zstd=ON -DTOMLPLUSPLUS_INCLUDE=NOTFOUND --no-warn-unused-cli >/dev/null
  ! ninja -C "$scratch/alone" -t targets all | grep -q '^gpu_train:' || fail "gpu_train is built"
  grep -q '^Libs: .* -ltbb' "$scratch/alone/gpups.pc" || fail "without a shared library, pkg-config needs --static"
}

check_files
library=$(dirname "$(find "$prefix" -name libgpups.a)")
check_exports "$library"
check_cmake
check_old_standard
check_library_alone
copy=$scratch/copy  # the package can be moved
cp -r "$prefix" "$copy"
check_pkg_config "$copy/${library#"$prefix"/}"
echo "the installed library is right"
