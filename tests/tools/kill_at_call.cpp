// SPDX-License-Identifier: Apache-2.0
// A library to preload: kills the process before its n-th call that changes a file whose path contains some text, or,
// if that call writes, in the middle of it. Variables: KILL_AT_CALL, n from 1; KILL_IN, the text.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

// Returns whether the process has to end at this call.
bool is_last(char const* path) {
  static std::atomic<long> calls{0};
  char const* const in = std::getenv("KILL_IN");
  char const* const at = std::getenv("KILL_AT_CALL");
  return in != nullptr && at != nullptr && std::strstr(path, in) != nullptr && ++calls == std::atol(at);
}

bool is_last(int file) {
  char link[64], path[PATH_MAX] = {};
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  return readlink(link, path, sizeof path - 1) > 0 && is_last(path);
}

void end() { kill(getpid(), SIGKILL); }

template <class F>
F next(char const* name) {
  return reinterpret_cast<F>(dlsym(RTLD_NEXT, name));
}

int open_as(char const* name, char const* path, int flags, mode_t mode) {
  if ((flags & O_CREAT) != 0 && is_last(path)) end();
  return next<int (*)(char const*, int, ...)>(name)(path, flags, mode);
}

}  // namespace

extern "C" {

int open(char const* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  mode_t const mode = (flags & O_CREAT) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  return open_as("open", path, flags, mode);
}

int open64(char const* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  mode_t const mode = (flags & O_CREAT) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  return open_as("open64", path, flags, mode);
}

int mkdir(char const* path, mode_t mode) {
  if (is_last(path)) end();
  return next<int (*)(char const*, mode_t)>("mkdir")(path, mode);
}

int rename(char const* from, char const* to) {
  if (is_last(to)) end();
  return next<int (*)(char const*, char const*)>("rename")(from, to);
}

int unlinkat(int folder, char const* path, int flags) {
  if (is_last(folder)) end();
  return next<int (*)(int, char const*, int)>("unlinkat")(folder, path, flags);
}

int fsync(int file) {
  if (is_last(file)) end();
  return next<int (*)(int)>("fsync")(file);
}

ssize_t write(int file, void const* bytes, size_t count) {
  auto const real = next<ssize_t (*)(int, void const*, size_t)>("write");
  if (is_last(file)) {
    real(file, bytes, count / 2);
    end();
  }
  return real(file, bytes, count);
}
}
