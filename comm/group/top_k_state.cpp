// SPDX-License-Identifier: Apache-2.0
#include "comm/group/top_k_state.hpp"

#include <bit>
#include <cstring>
#include <vector>

#include "comm/base/serialization.hpp"
#include "kernels/base/check.hpp"

namespace gpups::comm {
namespace {

using kernels::TopKFeedback;

constexpr std::uint32_t kVersion = 0x314B5447;  // "GTK1"

struct SavedState {
  TopKFeedback::SelectionState selection_state;
  std::vector<std::int64_t> residual;
  std::vector<std::uint32_t> velocity;  // bits
};

SavedState read(std::string const& bytes) {
  try {
    Reader reader(bytes);
    GPUPS_REQUIRE(reader.get<std::uint32_t>() == kVersion,
                  "the saved state of a TopKAllreduce is of another version: use what TopKAllreduce::save() returned");
    SavedState saved;
    saved.selection_state.steps = reader.get<std::uint64_t>();
    saved.selection_state.bound = reader.get<std::int64_t>();
    saved.selection_state.last = reader.get<std::int64_t>();
    saved.selection_state.trend = std::bit_cast<double>(reader.get<std::uint64_t>());
    saved.residual = reader.get_list<std::int64_t>();
    saved.velocity = reader.get_list<std::uint32_t>();
    reader.end();
    return saved;
  } catch (SerializationError const& error) {
    throw Error(
        fmt::format("the saved state of a TopKAllreduce cannot be read ({}): use what TopKAllreduce::save() "
                    "returned",
                    error.what()));
  }
}

void add(TopKFeedback& feedback, SavedState const& saved) {
  for (std::size_t i = 0; i < saved.residual.size(); ++i) feedback.residual()[i] += saved.residual[i];
  for (std::size_t i = 0; i < saved.velocity.size(); ++i) {
    feedback.velocity()[i] += std::bit_cast<float>(saved.velocity[i]);
  }
}

}  // namespace

std::string to_bytes(TopKFeedback const& feedback) {
  Writer writer;
  auto const& selection_state = feedback.selection_state();
  writer.put<std::uint32_t>(kVersion);
  writer.put<std::uint64_t>(selection_state.steps);
  writer.put<std::int64_t>(selection_state.bound);
  writer.put<std::int64_t>(selection_state.last);
  writer.put<std::uint64_t>(std::bit_cast<std::uint64_t>(selection_state.trend));
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
                "no saved state was given to restore a TopKAllreduce (its residual would be lost): give what "
                "TopKAllreduce::save() returned on each rank");
  std::vector<SavedState> mine;
  TopKFeedback::SelectionState selection_state;
  for (std::size_t r = 0; r < of_ranks.size(); ++r) {
    SavedState saved = read(of_ranks[r]);
    GPUPS_REQUIRE(
        saved.residual.size() == size && saved.velocity.size() == velocities,
        "the saved state of rank {} has {} residuals and {} velocities, but the gradient has {} and {} (it is another "
        "gradient, or momentum was on or off): restore with the options of the job that saved it",
        r, saved.residual.size(), saved.velocity.size(), size, velocities);
    if (r == 0 || r == number(me)) selection_state = saved.selection_state;
    if (r % static_cast<std::size_t>(ranks) == number(me)) mine.push_back(std::move(saved));
  }
  // The threshold fits the residual of one rank only.
  if (of_ranks.size() != static_cast<std::size_t>(ranks)) selection_state.bound = 0;
  if (size > 0) std::memset(feedback.residual().data(), 0, size * sizeof(std::int64_t));
  if (velocities > 0) std::memset(feedback.velocity().data(), 0, velocities * sizeof(float));
  for (SavedState const& saved : mine) add(feedback, saved);
  feedback.set_selection_state(selection_state);
}

}  // namespace gpups::comm
