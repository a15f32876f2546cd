// SPDX-License-Identifier: Apache-2.0
// Turns the protocol of a rank of a simulated group: whoever waits does it for all.
#pragma once

#include <memory>
#include <utility>

#include "comm/sim/world.hpp"
#include "comm/turner.hpp"

namespace gpups::comm {

class SimTurner final : public Turner {
 public:
  SimTurner(Rank rank, std::shared_ptr<SimWorld> world) : rank_(rank), world_(std::move(world)) {}
  ~SimTurner() override { SimTurner::stop(); }

  void start(std::function<bool()> turn) override { world_->start(rank_, std::move(turn)); }
  void wake() override { world_->wake(rank_); }
  bool wait(std::function<bool()> const& done, double) override { return world_->wait(rank_, done); }
  void stop() override { world_->stop(rank_); }

  SimWorld const& world() const { return *world_; }

 private:
  Rank const rank_;
  std::shared_ptr<SimWorld> const world_;
};

}  // namespace gpups::comm
