// SPDX-License-Identifier: Apache-2.0
#include "comm/bootstrap/membership.hpp"

#include "comm/base/serialization.hpp"
#include "kernels/base/assert.hpp"

namespace gpups::comm {

std::string encode(MembershipUpdate const& update) {
  Writer writer;
  writer.put<Rank>(update.by);
  writer.put<Rank>(update.rank);
  writer.put_text(update.why);
  return writer.take();
}

MembershipUpdate decode_membership_update(std::string_view body) {
  Reader reader(body);
  MembershipUpdate update;
  update.by = reader.get<Rank>();
  update.rank = reader.get<Rank>();
  update.why = reader.get_text();
  reader.end();
  return update;
}

bool Membership::is_valid(MembershipUpdate const& update) const {
  return number(update.by) < states_.size() && number(update.rank) < states_.size() && update.by != mine_ &&
         (!update.why.empty() || update.by == update.rank);
}

void Membership::apply(MembershipUpdate const& update) {
  GPUPS_ASSERT(is_valid(update));
  State& state = states_[number(update.by)];
  if (update.why.empty()) {
    if (state != State::kAlive) return;
    state = State::kLeft;
    changes_.push_back({.rank = update.by});
  } else if (update.rank == mine_) {
    // It is unknown whether this rank or its link failed, but `by` has left.
    mark_failed(update.by, "it considers this rank lost: " + update.why);
  } else if (update.rank == update.by || states_[number(update.rank)] == State::kLeft) {
    mark_failed(update.by, update.why);  // a rank that has left cannot be lost, so `by` is wrong
  } else {
    mark_failed(update.rank, update.why);
    if (state == State::kAlive) state = State::kLeftAfterFailure;
  }
}

void Membership::mark_failed(Rank rank, std::string const& why) {
  State& state = states_[number(rank)];
  if (state == State::kFailed || state == State::kLeftAfterFailure) return;
  state = State::kFailed;
  changes_.push_back({.rank = rank, .why = why});
}

bool Membership::is_alone() const {
  for (std::uint32_t rank = 0; rank < states_.size(); ++rank) {
    if (Rank{rank} != mine_ && states_[rank] == State::kAlive) return false;
  }
  return true;
}

}  // namespace gpups::comm
