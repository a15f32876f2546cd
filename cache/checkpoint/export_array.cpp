// SPDX-License-Identifier: Apache-2.0
// export_array(): writes an array of the application in the format of Store::export_rows().
#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>

#include "cache/files/checksummed_file.hpp"
#include "cache/files/export_file.hpp"
#include "gpups/store.hpp"
#include "kernels/base/check.hpp"
#include "kernels/runtime/require_memory.hpp"

namespace gpups {

void export_array(std::filesystem::path const& path, ExportFormat format, std::span<std::uint64_t const> shape,
                  std::span<float const> values) {
  std::vector<std::uint64_t> const sizes(shape.begin(), shape.end());
  cache::require_format(format);
  // A product that overflows 64 bits becomes 2^64 - 1, which is the size of no array.
  std::uint64_t const count =
      std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{1}, [](std::uint64_t product, std::uint64_t size) {
        std::uint64_t next = 0;
        return __builtin_mul_overflow(product, size, &next) ? ~std::uint64_t{0} : next;
      });
  GPUPS_REQUIRE(count == values.size(),
                "export_array() was called with {} numbers and a shape of {} numbers ('{}' would have a wrong header): "
                "give the sizes of the array's axes",
                values.size(), count, path.string());
  kernels::require_memory(View<float const>(values.data(), values.size()), "export_array", "numbers");
  bool const npy = format == ExportFormat::kNpy;
  auto const file = std::filesystem::path(path).concat(npy ? ".npy" : ".bin");
  std::string const header = npy ? cache::npy_header("<f4", sizes) : "";
  cache::create_array(file, header, values.size_bytes());
  cache::PartWriter writer(file, header.size());
  writer.write(values.data(), values.size_bytes());
  writer.finish();
  if (npy) return;
  nlohmann::ordered_json const json{{"byte_order", "little"},
                                    {"values", {{"file", file.filename()}, {"dtype", "float32"}, {"shape", sizes}}}};
  std::string const text = json.dump(1) + "\n";
  cache::replace_whole(std::filesystem::path(path).concat(".json"), text);
}

}  // namespace gpups
