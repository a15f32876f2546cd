// SPDX-License-Identifier: Apache-2.0
#include "trainer/input/input_file.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "kernels/base/check.hpp"
#include "trainer/base/long_loop.hpp"

namespace gpups::trainer {

// With O_NONBLOCK, the opening of a pipe does not wait for its writer.
InputFile::InputFile(std::filesystem::path const& path)
    : path_(path.string()), file_(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  GPUPS_REQUIRE(file_ >= 0, "{} cannot be opened ({}): check the path", path_, std::strerror(errno));
  struct stat facts {};
  if (::fstat(file_, &facts) != 0) return;
  if (S_ISDIR(facts.st_mode)) {
    ::close(file_);
    throw Error(fmt::format("{} is a folder (data is read from a file): name a file in it", path_));
  }
  regular_ = S_ISREG(facts.st_mode);
  bytes_ = facts.st_size;
  changed_s_ = facts.st_mtim.tv_sec;
  changed_ns_ = facts.st_mtim.tv_nsec;
}

void InputFile::require_unchanged() const {
  struct stat facts {};
  if (!regular_ || ::fstat(file_, &facts) != 0) return;
  GPUPS_REQUIRE(facts.st_size == bytes_ && facts.st_mtim.tv_sec == changed_s_ && facts.st_mtim.tv_nsec == changed_ns_,
                "{} changed while it was read (what was read is of no one state of it): read it when it is complete",
                path_);
}

InputFile::~InputFile() { ::close(file_); }

// A reader gets the end of a pipe, not its data, before a writer has opened it.
void InputFile::wait_for_writer() const {
  constexpr int kPollInterval_ms = 200;
  pollfd pipe{.fd = file_, .events = POLLIN, .revents = 0};
  while (::poll(&pipe, 1, kPollInterval_ms) <= 0) throw_if_stopped(fmt::format("reading {}", path_));
}

std::size_t InputFile::read(void* to, std::size_t bytes) {
  return read_all(to, bytes, [this](char* at, std::size_t left, std::size_t) { return ::read(file_, at, left); });
}

std::size_t InputFile::read_at(std::uint64_t begin, void* to, std::size_t bytes) const {
  return read_all(to, bytes, [this, begin](char* at, std::size_t left, std::size_t done) {
    return ::pread(file_, at, left, static_cast<off_t>(begin + done));
  });
}

template <class ReadSome>
std::size_t InputFile::read_all(void* to, std::size_t bytes, ReadSome read_some) const {
  std::size_t done = 0;
  while (done < bytes) {
    if (!regular_) wait_for_writer();
    ssize_t const got = read_some(static_cast<char*>(to) + done, bytes - done, done);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    GPUPS_REQUIRE(got >= 0, "{} cannot be read ({}): check the file", path_, std::strerror(errno));
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

}  // namespace gpups::trainer
