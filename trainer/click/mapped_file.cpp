// SPDX-License-Identifier: Apache-2.0
#include "trainer/click/mapped_file.hpp"

#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "kernels/check.hpp"
#include "trainer/click/input_file.hpp"

namespace gpups::trainer {

MappedFile::MappedFile(std::filesystem::path const& path) : path_(path.string()) {
  InputFile const file(path);
  struct stat facts {};
  GPUPS_REQUIRE(::fstat(file.descriptor(), &facts) == 0 && S_ISREG(facts.st_mode),
                "{} is no regular file (it cannot be mapped): copy it into one", path_);
  auto const size = static_cast<std::size_t>(facts.st_size);
  if (size == 0) return;
  void* const begin = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.descriptor(), 0);
  GPUPS_REQUIRE(begin != MAP_FAILED, "{} cannot be mapped ({}): check the file and the limit of memory", path_,
                std::strerror(errno));
  bytes_ = {static_cast<std::byte const*>(begin), size};
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace gpups::trainer
