// SPDX-License-Identifier: Apache-2.0
#include "cache/protocol/schema_check.hpp"

#include <fmt/format.h>

#include <array>

#include "comm/base/peer_error.hpp"
#include "comm/base/serialization.hpp"
#include "gpups/error.hpp"

namespace gpups::cache {
namespace {

// An option as text. Ranks compare the texts, and errors show them.
struct Field {
  std::string name;
  std::string value;
};
using Fields = std::vector<Field>;

std::string text(RowCodec codec) {
  constexpr std::array kNames{"kLossless", "kHalf", "kBFloat16", "kInt8", "kInt4"};
  return kNames.at(static_cast<std::size_t>(codec));
}

std::string text(DataType type) {
  constexpr std::array kNames{"kFloat", "kHalf", "kBFloat16"};
  return kNames.at(static_cast<std::size_t>(type));
}

std::string text(Initializer::Kind kind) {
  constexpr std::array kNames{"kConstant", "kUniform", "kNormal"};
  return kNames.at(static_cast<std::size_t>(kind));
}

std::string text(Optimizer::Kind kind) {
  constexpr std::array kNames{"kSgd", "kAdagrad", "kRowwiseAdagrad", "kAdam", "kLamb", "kFtrl"};
  return kNames.at(static_cast<std::size_t>(kind));
}

std::string text(Schedule::Kind kind) {
  constexpr std::array kNames{"kConstant", "kLinear", "kCosine"};
  return kNames.at(static_cast<std::size_t>(kind));
}

void append_compression(Fields& fields, char const* of, RowCompression const& transfer) {
  fields.push_back({fmt::format("{}.codec", of), text(transfer.codec)});
  fields.push_back({fmt::format("{}.top_k", of), fmt::to_string(transfer.top_k)});
  fields.push_back({fmt::format("{}.filter.age_max", of), fmt::to_string(transfer.filter.age_max)});
  fields.push_back({fmt::format("{}.filter.density", of), fmt::to_string(transfer.filter.density)});
  fields.push_back({fmt::format("{}.filter.threshold_max", of), fmt::to_string(transfer.filter.threshold_max)});
  fields.push_back({fmt::format("{}.capacity_rows", of), fmt::to_string(transfer.capacity_rows)});
}

// Returns all options of a table except its name and expected_rows, which only reserves memory. The order is part of
// the format.
Fields fields_of(TableOptions const& o) {
  Fields fields{
      {"dim", fmt::to_string(o.dim)},
      {"value_type", text(o.value_type)},
      {"dictionary_keys", fmt::to_string(o.dictionary_keys)},
      {"admission_count", fmt::to_string(o.admission_count)},
      {"grid_log2", fmt::to_string(o.grid_log2)},
      {"initializer.kind", text(o.initializer.kind)},
      {"initializer.scale", fmt::to_string(o.initializer.scale)},
      {"schedule.kind", text(o.schedule.kind)},
      {"schedule.warmup_steps", fmt::to_string(o.schedule.warmup_steps)},
      {"schedule.total_steps", fmt::to_string(o.schedule.total_steps)},
      {"schedule.min_factor", fmt::to_string(o.schedule.min_factor)},
      {"optimizer.kind", text(o.optimizer.kind)},
      {"optimizer.learning_rate", fmt::to_string(o.optimizer.learning_rate)},
      {"optimizer.epsilon", fmt::to_string(o.optimizer.epsilon)},
      {"optimizer.initial_accumulator", fmt::to_string(o.optimizer.initial_accumulator)},
      {"optimizer.l2", fmt::to_string(o.optimizer.l2)},
      {"optimizer.clip_norm", fmt::to_string(o.optimizer.clip_norm)},
      {"optimizer.beta1", fmt::to_string(o.optimizer.beta1)},
      {"optimizer.beta2", fmt::to_string(o.optimizer.beta2)},
      {"optimizer.l1", fmt::to_string(o.optimizer.l1)},
      {"optimizer.beta", fmt::to_string(o.optimizer.beta)},
  };
  append_compression(fields, "gradient_compression", o.gradient_compression);
  append_compression(fields, "refresh_compression", o.refresh_compression);
  return fields;
}

// Throws PeerError if `its` differs from `mine`. which: the name of the value, such as "a seed".
void compare(Rank me, Rank from, std::string const& which, std::string_view mine, std::string_view its) {
  if (its == mine) return;
  throw PeerError(from,
                  fmt::format("rank {} has {} of {}, and rank {} of {} (the ranks keep parts of the same tables): give "
                              "all ranks the same tables, with the same options, and the same seed",
                              number(from), which, comm::peer_text(its), number(me), comm::peer_text(mine)));
}

}  // namespace

std::string encode_schema(StoreSchema const& store, TableShards const& tables, bool plain_keys) {
  comm::Writer writer;
  writer.put_text(fmt::to_string(store.seed));
  writer.put_text(name_of(store.policy));
  writer.put_text(fmt::to_string(store.staleness));
  writer.put_text(fmt::to_string(store.placement_window));
  writer.put_text(fmt::to_string(store.placement_bytes_min));
  writer.put_text(fmt::to_string(store.ranks_per_host));
  writer.put_text(fmt::to_string(tables.size()));
  for (auto const& table : tables) {
    writer.put_text(table->options().name);
    for (auto const& field : fields_of(table->options())) writer.put_text(field.value);
  }
  writer.put<std::uint8_t>(plain_keys ? 1 : 0);
  return writer.take();
}

bool check_schema(Rank me, StoreSchema const& store, TableShards const& tables, Rank from,
                  std::string const& schema) try {
  comm::Reader reader(schema);
  compare(me, from, "a seed", fmt::to_string(store.seed), reader.get_text());
  compare(me, from, "a placement policy", name_of(store.policy), reader.get_text());
  compare(me, from, "a staleness", fmt::to_string(store.staleness), reader.get_text());
  compare(me, from, "a placement_window", fmt::to_string(store.placement_window), reader.get_text());
  compare(me, from, "a placement_bytes_min", fmt::to_string(store.placement_bytes_min), reader.get_text());
  compare(me, from, "a number of ranks_per_host", fmt::to_string(store.ranks_per_host), reader.get_text());
  compare(me, from, "a number of tables", fmt::to_string(tables.size()), reader.get_text());
  for (std::size_t t = 0; t < tables.size(); ++t) {
    auto const& options = tables[t]->options();
    compare(me, from, fmt::format("a table {} with the name", t), options.name, reader.get_text());
    for (auto const& field : fields_of(options)) {
      compare(me, from, fmt::format("table '{}' with {}", options.name, field.name), field.value, reader.get_text());
    }
  }
  bool const plain_keys = reader.get<std::uint8_t>() != 0;
  reader.end();
  return plain_keys;
} catch (comm::SerializationError const& error) {
  throw PeerError(from, fmt::format("rank {} sent an invalid list of its table options: {} (options cannot be "
                                    "compared): check that all ranks run the same program",
                                    number(from), error.what()));
}

}  // namespace gpups::cache
