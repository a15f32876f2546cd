// SPDX-License-Identifier: Apache-2.0
#include <exception>
#include <future>
#include <mutex>
#include <set>
#include <system_error>
#include <thread>

#include "comm/base/peer_error.hpp"
#include "comm/group/group_impl.hpp"
#include "gpups/error.hpp"
#include "kernels/base/check.hpp"

namespace gpups {
namespace {

// The exceptions of the ranks. The first cause is rethrown in preference to errors about other ranks.
class Failures {
 public:
  void add(std::exception_ptr failure, bool is_peer_error) {
    std::lock_guard lock(mutex_);
    auto& first = is_peer_error ? first_peer_error_ : first_;
    if (first == nullptr) first = std::move(failure);
  }
  void rethrow() const {
    if (first_ != nullptr) std::rethrow_exception(first_);
    if (first_peer_error_ != nullptr) std::rethrow_exception(first_peer_error_);
  }

 private:
  std::mutex mutex_;
  std::exception_ptr first_, first_peer_error_;
};

// Returns the error for a process that cannot create all threads.
Error no_thread(std::size_t ranks, std::system_error const& error) {
  return Error(
      fmt::format("the threads of {} ranks cannot be created ({}): use fewer ranks, or allow more threads and memory",
                  ranks, error.code().message()));
}

// Returns the exception that is being handled, nested in an Error, which programs catch and print.
std::exception_ptr error_around(Rank rank) {
  try {
    std::throw_with_nested(Error(fmt::format(
        "rank {} threw something that is no std::exception (its text is unknown): throw objects of classes that are "
        "derived from std::exception, or look at the object that is nested in this Error",
        number(rank))));
  } catch (...) {
    return std::current_exception();
  }
}

void run_rank(Group const& member, std::function<void(Group)> const& body, Failures& failures) {
  auto const leave = [&](Rank at_fault, std::string const& why) {
    member.impl().abandon();
    member.impl().transport->fail(at_fault, why);
  };
  auto const failed = [&](std::exception_ptr failure, std::string const& what, bool is_peer_error) {
    failures.add(std::move(failure), is_peer_error);
    leave(member.rank(), fmt::format("it failed: {}", what));
  };
  try {
    body(member);
    member.impl().end();
  } catch (comm::PeerLost const& error) {
    failures.add(std::current_exception(), true);
    leave(error.peer(), error.why().empty() ? fmt::format("rank {} has left", number(error.peer())) : error.why());
  } catch (PeerError const& error) {
    failed(std::current_exception(), error.what(), true);
  } catch (std::system_error const& error) {
    bool const of_threads = error.code() == std::errc::resource_unavailable_try_again;
    failed(of_threads ? std::make_exception_ptr(no_thread(static_cast<std::size_t>(member.size()), error))
                      : std::current_exception(),
           error.what(), false);
  } catch (std::exception const& error) {
    failed(std::current_exception(), error.what(), false);
  } catch (...) {
    failed(error_around(member.rank()), "it threw something that is no std::exception", false);
  }
}

}  // namespace

void run_ranks(std::vector<Group> const& group, std::function<void(Group)> const& body) {
  GPUPS_REQUIRE(
      !group.empty() && group.size() == static_cast<std::size_t>(group.front().impl().ranks_in_process),
      "run_ranks was given {} Group objects, not one for each rank (ranks wait for the whole group): give all that "
      "Group::threads() returned",
      group.size());
  std::set<Rank> ranks;
  for (Group const& member : group) {
    GPUPS_REQUIRE(
        member.impl().threads_of == group.front().impl().threads_of && ranks.insert(member.rank()).second,
        "run_ranks was given Group objects of different groups, or rank {} twice (ranks would wait for others "
        "that do not run): give all that one call of Group::threads() returned",
        number(member.rank()));
  }
  GPUPS_REQUIRE(body != nullptr, "run_ranks was given an empty function (the ranks have nothing to run): give one");
  Failures failures;
  std::promise<bool> begin;  // no rank starts before all threads exist
  std::shared_future<bool> const may_begin = begin.get_future().share();
  std::vector<std::thread> threads;
  threads.reserve(group.size());
  std::exception_ptr rejection;
  try {
    for (Group const& member : group) {
      threads.emplace_back([&, may_begin] {
        if (may_begin.get()) member.impl().run([&] { run_rank(member, body, failures); });
      });
    }
  } catch (std::system_error const& error) {
    rejection = std::make_exception_ptr(no_thread(group.size(), error));
  } catch (...) {
    rejection = std::current_exception();
  }
  begin.set_value(rejection == nullptr);
  for (std::thread& thread : threads) thread.join();
  if (rejection != nullptr) std::rethrow_exception(rejection);
  failures.rethrow();
}

}  // namespace gpups
