// SPDX-License-Identifier: Apache-2.0
#include "trainer/base/atomic_folder.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>

#include "kernels/base/check.hpp"

namespace gpups::trainer {

namespace fs = std::filesystem;

void write_folder(fs::path const& folder, std::function<void(fs::path const&)> const& write) {
  fs::path const named = fs::absolute(folder).lexically_normal();
  fs::path const place = named.has_filename() ? named : named.parent_path();  // without a trailing slash
  fs::path const beside = fs::path(place).concat(".unfinished");
  std::error_code error;
  bool const taken = fs::exists(place, error) && !(fs::is_directory(place, error) && fs::is_empty(place, error));
  GPUPS_REQUIRE(
      !taken,
      "{} exists already and is not an empty folder (an export is never mixed with other files): choose a new folder",
      place.string());
  fs::remove_all(beside, error);  // left over from an export that was killed
  if (!error) fs::create_directories(beside, error);
  GPUPS_REQUIRE(!error, "{} cannot be created ({}): choose another folder", beside.string(), error.message());
  try {
    write(beside);
    fs::rename(beside, place, error);
    GPUPS_REQUIRE(!error, "{} cannot be renamed ({}): choose another folder", beside.string(), error.message());
  } catch (...) {
    fs::remove_all(beside, error);
    throw;
  }
}

void write_file(fs::path const& path, std::string const& bytes) {
  fs::path const beside = fs::path(path).concat(".new");
  std::ofstream out(beside, std::ios::binary);
  out << bytes;
  out.close();
  std::error_code error;
  std::string why = std::strerror(errno);
  if (out.good()) fs::rename(beside, path, error);
  if (out.good() && !error) return;
  if (error) why = error.message();
  fs::remove(beside, error);
  throw Error(
      fmt::format("{} cannot be written ({}): free some disk space, or choose another folder", path.string(), why));
}

}  // namespace gpups::trainer
