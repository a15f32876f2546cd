// SPDX-License-Identifier: Apache-2.0
#include "trainer/input/saved_columns.hpp"

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "kernels/base/check.hpp"

namespace gpups::trainer {
namespace {

constexpr char kColumnsBlob[] = "gpu_train/columns.json";

}  // namespace

Blob to_blob(SameColumns const& columns) {
  TableLayout const& first = columns.first();
  nlohmann::ordered_json const json{{"heading", first.heading},
                                    {"columns", first.columns},
                                    {"names", first.names},
                                    {"contradiction", first.contradiction}};
  return {kColumnsBlob, json.dump()};
}

SameColumns saved_columns(std::span<Blob const> blobs) {
  auto const blob = std::find_if(blobs.begin(), blobs.end(), [](Blob const& b) { return b.name == kColumnsBlob; });
  if (blob == blobs.end()) return {};
  try {
    auto const json = nlohmann::json::parse(blob->bytes);
    TableLayout layout;
    layout.heading = json.at("heading").get<bool>();
    layout.columns = json.at("columns").get<std::vector<std::size_t>>();
    layout.names = json.at("names").get<std::vector<std::string>>();
    layout.contradiction = json.at("contradiction").get<std::string>();
    return {"the training data", std::move(layout)};
  } catch (nlohmann::json::exception const& error) {
    throw Error(std::string(kColumnsBlob) + " of the checkpoint cannot be used (" + error.what() +
                "): choose another checkpoint");
  }
}

}  // namespace gpups::trainer
