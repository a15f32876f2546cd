// SPDX-License-Identifier: Apache-2.0
#include <exception>
#include <mutex>
#include <thread>

#include "comm/group_impl.hpp"
#include "gpups/error.hpp"
#include "kernels/check.hpp"

namespace gpups {
namespace {

// What the ranks threw, the first cause before what followed from it.
class Failures {
 public:
  void add(std::exception_ptr failure, bool of_peer) {
    std::lock_guard lock(mutex_);
    auto& first = of_peer ? first_of_peer_ : first_;
    if (first == nullptr) first = std::move(failure);
  }
  void rethrow() const {
    if (first_ != nullptr) std::rethrow_exception(first_);
    if (first_of_peer_ != nullptr) std::rethrow_exception(first_of_peer_);
  }

 private:
  std::mutex mutex_;
  std::exception_ptr first_, first_of_peer_;
};

void run_rank(Group const& member, std::function<void(Group)> const& body, Failures& failures) {
  auto const failed = [&](std::string const& what, bool of_peer) {
    failures.add(std::current_exception(), of_peer);
    member.impl().transport->leave(fmt::format("rank {} failed: {}", number(member.rank()), what));
  };
  try {
    body(member);
  } catch (PeerError const& error) {
    failed(error.what(), true);
  } catch (std::exception const& error) {
    failed(error.what(), false);
  } catch (...) {
    failed("it threw something that is no std::exception", false);
  }
}

}  // namespace

void run_ranks(std::vector<Group> const& group, std::function<void(Group)> const& body) {
  GPUPS_REQUIRE(!group.empty() && group.size() == static_cast<std::size_t>(group.front().size()),
                "{} memberships were given to run_ranks (the ranks wait for all of their group): give the whole group",
                group.size());
  Failures failures;
  std::vector<std::thread> threads;
  for (Group const& member : group) {
    threads.emplace_back([&] { member.impl().run([&] { run_rank(member, body, failures); }); });
  }
  for (std::thread& thread : threads) thread.join();
  failures.rethrow();
}

}  // namespace gpups
