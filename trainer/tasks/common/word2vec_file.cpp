// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/common/word2vec_file.hpp"

#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <string>

#include "kernels/base/check.hpp"

namespace gpups::trainer {

void write_word2vec(std::filesystem::path const& path, Dictionary const& names, MatrixView<float const> rows,
                    bool binary) {
  constexpr std::size_t kBlockBytes = std::size_t{1} << 20;
  std::size_t const dim = rows.columns();
  std::ofstream file(path, std::ios::binary);
  std::string text = fmt::format("{} {}\n", rows.rows(), dim);
  for (std::uint32_t i = 0; i < rows.rows(); ++i) {
    text += names.name(i);
    if (binary) {
      text += ' ';
      text.append(reinterpret_cast<char const*>(rows.row(i)), dim * sizeof(float));
    } else {
      for (std::size_t k = 0; k < dim; ++k) fmt::format_to(std::back_inserter(text), " {}", rows.row(i)[k]);
    }
    text += '\n';
    if (text.size() < kBlockBytes) continue;
    file << text;
    text.clear();
  }
  file << text;
  file.close();
  GPUPS_REQUIRE(file.good(), "{} cannot be written (the disk may be full): free space, or export to another folder",
                path.string());
}

}  // namespace gpups::trainer
