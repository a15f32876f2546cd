// SPDX-License-Identifier: Apache-2.0
#include "cache/files/export_file.hpp"

#include <fcntl.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstring>

#include "kernels/base/check.hpp"

namespace gpups::cache {
namespace {

static_assert(std::endian::native == std::endian::little, "the headers say that numbers are little-endian");

constexpr std::size_t kNpyAlignment = 64;  // offset of the first element is a multiple of this

[[noreturn]] void fail_export(char const* doing, std::filesystem::path const& path) {
  throw Error(
      fmt::format("{} '{}' failed: {} (the export would be incomplete): check the path, that all ranks see it, its "
                  "permissions and the space on the disk",
                  doing, path.string(), std::strerror(errno)));
}

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

}  // namespace

void require_format(ExportFormat format) {
  GPUPS_REQUIRE(format == ExportFormat::kNpy || format == ExportFormat::kFlat,
                "an export has the format number {} (there is no such format): use an enumerator of ExportFormat",
                static_cast<int>(format));
}

std::string file_name_of(std::string const& table) {
  std::string name;
  for (char const c : table) {
    if (is_plain(c)) {
      name.push_back(c);
    } else {
      name += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return name;
}

std::string npy_header(std::string const& type, std::vector<std::uint64_t> const& shape) {
  auto const text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}{}), }}", type,
                                fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
  std::string const magic("\x93NUMPY\x01\x00", 8);
  std::size_t const before = magic.size() + sizeof(std::uint16_t);
  // Spaces and a newline fill the header up to the first element.
  auto const length =
      static_cast<std::uint16_t>((before + text.size() + kNpyAlignment) / kNpyAlignment * kNpyAlignment - before);
  std::string const length_bytes(reinterpret_cast<char const*>(&length), sizeof length);
  return fmt::format("{}{}{:<{}}\n", magic, length_bytes, text, length - 1);
}

void create_array(std::filesystem::path const& path, std::string const& header, std::uint64_t bytes) {
  int const file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (file < 0) fail_export("creating", path);
  int const result = ::ftruncate(file, static_cast<off_t>(header.size() + bytes));
  if (result != 0) {
    int const why = errno;
    ::close(file);
    errno = why;
    fail_export("sizing", path);
  }
  ::close(file);
  PartWriter writer(path, 0);
  writer.write(header.data(), header.size());
  writer.finish();
}

PartWriter::PartWriter(std::filesystem::path path, std::uint64_t offset)
    : path_(std::move(path)), offset_(offset), file_(::open(path_.c_str(), O_WRONLY | O_CLOEXEC)) {
  if (file_ < 0) fail_export("opening", path_);
}

PartWriter::~PartWriter() {
  if (file_ >= 0) ::close(file_);
}

void PartWriter::write(void const* data, std::size_t bytes) {
  auto const* from = static_cast<char const*>(data);
  while (bytes > 0) {
    auto const n = ::pwrite(file_, from, bytes, static_cast<off_t>(offset_));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) fail_export("writing", path_);
    from += n;
    bytes -= static_cast<std::size_t>(n);
    offset_ += static_cast<std::uint64_t>(n);
  }
}

void PartWriter::finish() {
  if (::fsync(file_) != 0) fail_export("flushing", path_);
  int const result = ::close(file_);
  file_ = -1;
  if (result != 0) fail_export("closing", path_);
}

}  // namespace gpups::cache
