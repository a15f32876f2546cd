// SPDX-License-Identifier: Apache-2.0
// Ends this process when a rank is lost and it does not end by itself: its own work may take long, or wait for a disk.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "gpups/group.hpp"

namespace gpups::tools {

class LastResort {
 public:
  // While the object lives: a while after a rank of the group is lost, `end` is called with what to say of it. It does
  // not return.
  LastResort(Group const& group, std::function<void(std::string const& text)> end);
  ~LastResort();

 private:
  void wait_and_end(std::string const& text);

  Group const group_;
  std::function<void(std::string const&)> const end_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace gpups::tools
