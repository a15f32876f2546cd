// SPDX-License-Identifier: Apache-2.0
// Makes progress for a rank of a simulated group: a thread that waits does so for all ranks.
#pragma once

#include <memory>
#include <utility>

#include "comm/progress/progress_driver.hpp"
#include "comm/sim/simulator.hpp"

namespace gpups::comm {

// The progress driver of one rank; forwards to the simulator.
class SimProgressDriver final : public ProgressDriver {
 public:
  SimProgressDriver(Rank rank, std::shared_ptr<Simulator> simulator) : rank_(rank), simulator_(std::move(simulator)) {}
  ~SimProgressDriver() override { SimProgressDriver::stop(); }

  void start(std::function<bool()> progress) override { simulator_->start(rank_, std::move(progress)); }
  void wake() override { simulator_->wake(rank_); }
  bool wait(std::function<bool()> const& done, double) override { return simulator_->wait(rank_, done); }
  void stop() override { simulator_->stop(rank_); }

 private:
  Rank const rank_;
  std::shared_ptr<Simulator> const simulator_;
};

}  // namespace gpups::comm
