// SPDX-License-Identifier: Apache-2.0
#include "trainer/placement/trace_format.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "kernels/base/check.hpp"
#include "kernels/base/hash.hpp"

namespace gpups::trainer {
namespace {

// Changes if the hash of keys changes, which selects homes.
std::string home_hash() { return fmt::format("{:016x}", kernels::hash_of(Key{1})); }

void put_varint(std::uint64_t value, std::string& bytes) {
  for (; value >= 128; value >>= 7) bytes.push_back(static_cast<char>(value | 128));
  bytes.push_back(static_cast<char>(value));
}

std::uint64_t take_varint(std::string_view& bytes) {
  std::uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (bytes.empty()) break;
    auto const byte = static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    if (shift == 63 && byte > 1) break;
    value |= std::uint64_t{byte & 127U} << shift;
    if (byte < 128) return value;
  }
  throw Error("a number of a step has no end (the bytes are not a trace): record the trace again");
}

// What determines the bytes of a row.
nlohmann::json described(RowCompression const& sent) {
  return {{"codec", static_cast<int>(sent.codec)},
          {"top_k", sent.top_k},
          {"age_max", sent.filter.age_max},
          {"density", sent.filter.density}};
}

// Traces of earlier versions describe no compression.
RowCompression compression_from(nlohmann::json const& table, char const* which) {
  RowCompression sent;
  if (!table.contains(which)) return sent;
  auto const& json = table.at(which);
  sent.codec = static_cast<RowCodec>(std::clamp(json.at("codec").get<int>(), 0, static_cast<int>(RowCodec::kInt4)));
  sent.top_k = json.at("top_k");
  sent.filter.age_max = json.at("age_max");
  sent.filter.density = json.at("density");
  return sent;
}

}  // namespace

std::string TraceDescription::to_json() const {
  auto all = nlohmann::json::array();
  for (TableOptions const& table : tables) {
    all.push_back({{"name", table.name},
                   {"dim", table.dim},
                   {"value_type", static_cast<int>(table.value_type)},
                   {"optimizer", static_cast<int>(table.optimizer.kind)},
                   {"gradients", described(table.gradient_compression)},
                   {"refreshes", described(table.refresh_compression)}});
  }
  return nlohmann::json{{"ranks", ranks},         {"first_step", first_step}, {"lookahead", lookahead},
                        {"window", window},       {"bytes_min", bytes_min},   {"ranks_of_host", ranks_of_host},
                        {"staleness", staleness}, {"batch_size", batch_size}, {"home_hash", home_hash()},
                        {"tables", all}}
      .dump();
}

TraceDescription TraceDescription::from_json(std::string const& text) {
  try {
    auto const json = nlohmann::json::parse(text);
    GPUPS_REQUIRE(json.at("home_hash") == home_hash(),
                  "it was recorded with another hash of keys (rows had other homes): record the trace again");
    TraceDescription trace{.ranks = json.at("ranks"),
                           .first_step = json.at("first_step"),
                           .lookahead = json.at("lookahead"),
                           .window = json.value("window", std::int64_t{16}),
                           .bytes_min = json.value("bytes_min", std::int64_t{-1}),
                           .ranks_of_host = json.value("ranks_of_host", 0),
                           .staleness = json.at("staleness"),
                           .batch_size = json.at("batch_size")};
    for (auto const& table : json.at("tables")) {
      TableOptions options{.name = table.at("name"), .dim = table.at("dim")};
      options.value_type = static_cast<DataType>(table.at("value_type").get<int>());
      options.optimizer.kind = static_cast<Optimizer::Kind>(table.at("optimizer").get<int>());
      options.gradient_compression = compression_from(table, "gradients");
      options.refresh_compression = compression_from(table, "refreshes");
      trace.tables.push_back(options);
    }
    return trace;
  } catch (nlohmann::json::exception const& error) {
    throw Error(fmt::format("its description is not valid ({}): record the trace again", error.what()));
  }
}

std::filesystem::path trace_file(std::filesystem::path const& folder, int rank) {
  return folder / fmt::format("rank-{}.trace", rank);
}

void encode_traced_part(TracedPart const& part, std::string& bytes) {
  put_varint(part.table, bytes);
  put_varint(part.keys.size(), bytes);
  std::uint64_t before = 0;
  for (Key const key : part.keys) {
    put_varint(number(key) - before, bytes);
    before = number(key);
  }
}

std::vector<TracedPart> decode_traced_parts(std::string const& bytes, std::size_t tables) {
  std::vector<TracedPart> parts;
  for (std::string_view left = bytes; !left.empty();) {
    auto const table = take_varint(left), keys = take_varint(left);
    GPUPS_REQUIRE(
        table < tables && keys <= left.size(),
        "a part of a step has table {} of {} and {} keys in {} bytes (they are not a trace): record the trace "
        "again",
        table, tables, keys, left.size());
    auto& part = parts.emplace_back(TracedPart{static_cast<std::uint32_t>(table), {}});
    for (std::uint64_t key = 0, i = 0; i < keys; ++i) {
      key += take_varint(left);
      part.keys.push_back(Key{key});
    }
  }
  return parts;
}

}  // namespace gpups::trainer
