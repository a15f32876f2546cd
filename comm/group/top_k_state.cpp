// SPDX-License-Identifier: Apache-2.0
#include "comm/group/top_k_state.hpp"

#include <bit>
#include <cstring>
#include <vector>

#include "comm/wire.hpp"
#include "kernels/check.hpp"

namespace gpups::comm {
namespace {

using kernels::TopKFeedback;

constexpr std::uint32_t kVersion = 0x314B5447;  // "GTK1"

struct Kept {
  TopKFeedback::Course course;
  std::vector<std::int64_t> residual;
  std::vector<std::uint32_t> velocity;  // bits
};

Kept read(std::string const& bytes) {
  try {
    Reader reader(bytes);
    GPUPS_REQUIRE(reader.get<std::uint32_t>() == kVersion,
                  "what a rank kept back of a gradient is of another version: use what TopKAllreduce::save() gave");
    Kept kept;
    kept.course.steps = reader.get<std::uint64_t>();
    kept.course.bound = reader.get<std::int64_t>();
    kept.course.last = reader.get<std::int64_t>();
    kept.course.trend = std::bit_cast<double>(reader.get<std::uint64_t>());
    kept.residual = reader.get_list<std::int64_t>();
    kept.velocity = reader.get_list<std::uint32_t>();
    reader.end();
    return kept;
  } catch (WireError const& error) {
    throw Error(
        fmt::format("what a rank kept back of a gradient cannot be read ({}): use what TopKAllreduce::save() "
                    "gave",
                    error.what()));
  }
}

void add(TopKFeedback& feedback, Kept const& kept) {
  for (std::size_t i = 0; i < kept.residual.size(); ++i) feedback.residual()[i] += kept.residual[i];
  for (std::size_t i = 0; i < kept.velocity.size(); ++i) {
    feedback.velocity()[i] += std::bit_cast<float>(kept.velocity[i]);
  }
}

}  // namespace

std::string to_bytes(TopKFeedback const& feedback) {
  Writer writer;
  auto const& course = feedback.course();
  writer.put<std::uint32_t>(kVersion);
  writer.put<std::uint64_t>(course.steps);
  writer.put<std::int64_t>(course.bound);
  writer.put<std::int64_t>(course.last);
  writer.put<std::uint64_t>(std::bit_cast<std::uint64_t>(course.trend));
  View<std::int64_t> const residual = feedback.residual();
  writer.put_list<std::int64_t>(std::span(residual.data(), residual.size()));
  std::vector<std::uint32_t> velocity(feedback.velocity().size());
  for (std::size_t i = 0; i < velocity.size(); ++i) velocity[i] = std::bit_cast<std::uint32_t>(feedback.velocity()[i]);
  writer.put_list<std::uint32_t>(velocity);
  return writer.take();
}

void restore(TopKFeedback& feedback, std::span<std::string const> of_ranks, Rank me, int ranks) {
  std::size_t const size = feedback.residual().size(), velocities = feedback.velocity().size();
  GPUPS_REQUIRE(!of_ranks.empty(),
                "there is nothing of any rank to restore a gradient's residual from (it would be lost): give what "
                "TopKAllreduce::save() gave on each rank");
  std::vector<Kept> mine;
  TopKFeedback::Course course;
  for (std::size_t r = 0; r < of_ranks.size(); ++r) {
    Kept kept = read(of_ranks[r]);
    GPUPS_REQUIRE(kept.residual.size() == size && kept.velocity.size() == velocities,
                  "rank {} kept back {} elements with {} velocities of a gradient, where there are {} with {} (it is "
                  "another gradient, or momentum was on or off): restore with the options that it was saved with",
                  r, kept.residual.size(), kept.velocity.size(), size, velocities);
    if (r == 0 || r == number(me)) course = kept.course;
    if (r % static_cast<std::size_t>(ranks) == number(me)) mine.push_back(std::move(kept));
  }
  // The threshold is that of a residual of one rank.
  if (of_ranks.size() != static_cast<std::size_t>(ranks)) course.bound = 0;
  if (size > 0) std::memset(feedback.residual().data(), 0, size * sizeof(std::int64_t));
  if (velocities > 0) std::memset(feedback.velocity().data(), 0, velocities * sizeof(float));
  for (Kept const& kept : mine) add(feedback, kept);
  feedback.set_course(course);
}

}  // namespace gpups::comm
