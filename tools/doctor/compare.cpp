// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/compare.hpp"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <sstream>
#include <thread>
#include <utility>

#include "comm/bootstrap/core_affinity.hpp"

namespace gpups::tools {
namespace {

namespace fs = std::filesystem;
using trainer::Findings;

// Returns the ranks whose word differs from that of rank 0.
std::vector<int> others_than_first(std::vector<std::string> const& words) {
  std::vector<int> ranks;
  for (std::size_t rank = 1; rank < words.size(); ++rank) {
    if (words[rank] != words[0]) ranks.push_back(static_cast<int>(rank));
  }
  return ranks;
}

// A file of rank 0, which the destructor removes.
class Mark {
 public:
  explicit Mark(fs::path const& folder)
      : text_(fmt::format("{:08x}{:08x}", std::random_device{}(), std::random_device{}())),
        path_(folder / (".doctor-" + text_)) {
    std::ofstream(path_) << text_;
  }
  ~Mark() {
    std::error_code ignored;
    fs::remove(path_, ignored);
  }
  Mark(Mark const&) = delete;
  Mark& operator=(Mark const&) = delete;
  std::string path() const { return path_.string(); }

 private:
  std::string text_;
  fs::path path_;
};

// Waits up to 5 s for a file, since network file systems show new files late. Returns whether it was there.
bool wait_seen(std::string const& path) {
  for (int i = 0; i < 50; ++i) {
    std::ifstream in(path);
    std::string const text{std::istreambuf_iterator<char>(in), {}};
    if (!text.empty() && path.ends_with(text)) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  return false;
}

// Returns lines of the form "model.dim = 16"; empty if there is no usable configuration.
std::string settings_text(std::optional<trainer::RunFacts> const& run) {
  std::string text;
  if (run) {
    for (auto const& [key, value] : run->settings) text += fmt::format("{} = {}\n", key, value);
  }
  return text;
}

// Returns the first lines that differ in two texts.
std::pair<std::string, std::string> first_difference(std::string const& a, std::string const& b) {
  std::istringstream in_a(a), in_b(b);
  std::string line_a, line_b;
  while (line_a == line_b && (in_a || in_b)) {
    if (!std::getline(in_a, line_a)) line_a = "nothing";
    if (!std::getline(in_b, line_b)) line_b = "nothing";
    if (!in_a && !in_b) break;
  }
  return {line_a, line_b};
}

}  // namespace

void wait_compare_settings(comm::ControlChannel& channel, std::optional<trainer::RunFacts> const& run, Findings& mine) {
  auto const settings = channel.wait_gather_to_root(settings_text(run));
  if (channel.rank() != 0) return;
  for (int const rank : others_than_first(settings)) {
    std::string const& other = settings[static_cast<std::size_t>(rank)];
    if (other.empty() || settings[0].empty()) continue;  // that rank has a finding about it already
    auto const [here, there] = first_difference(settings[0], other);
    mine.push_back(
        trainer::problem(fmt::format("rank {} has {} where rank 0 has {} (they could not train together): "
                                     "give every rank the same configuration",
                                     rank, there, here)));
  }
}

void wait_compare_data(comm::ControlChannel& channel, std::optional<trainer::RunFacts> const& run, Findings& mine) {
  auto const digests =
      channel.wait_gather_to_root(run && !run->data.empty() ? fmt::format("{:016x}", run->data_digest) : "");
  if (channel.rank() != 0 || digests[0].empty()) return;
  std::vector<int> others = others_than_first(digests);
  // A rank that has read no data has a finding about it already.
  std::erase_if(others, [&](int rank) { return digests[static_cast<std::size_t>(rank)].empty(); });
  if (others.empty()) return;
  mine.push_back(
      trainer::problem(fmt::format("{} {} other data than rank 0 (they could not train together): give every "
                                   "rank the same files",
                                   ranks_text(others), others.size() == 1 ? "has" : "have")));
}

void wait_compare_folder(comm::ControlChannel& channel, std::string const& folder, Findings& mine) {
  std::optional<Mark> mark;
  if (channel.rank() == 0 && !folder.empty()) mark.emplace(folder);
  std::string const path = channel.wait_broadcast(mark ? mark->path() : "");
  if (path.empty()) return;
  auto const seen = channel.wait_gather_to_root(wait_seen(path) ? "yes" : "no");
  if (channel.rank() != 0) return;
  if (seen[0] != "yes") {
    mine.push_back(trainer::problem(
        fmt::format("the run's folder {} does not keep the files that are written to it (checkpoints are "
                    "written there): choose another folder with --run",
                    folder)));
    return;
  }
  auto const blind = others_than_first(seen);
  mine.push_back(blind.empty()
                     ? trainer::ok(fmt::format("all ranks have access to the run's folder {}", folder))
                     : trainer::problem(fmt::format("{} cannot read the run's folder {} of rank 0 (all ranks write to "
                                                    "it): choose a folder that all machines share with --run",
                                                    ranks_text(blind), folder)));
}

std::string ranks_text(std::vector<int> const& ranks) {
  return fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", comm::format_core_list(ranks));
}

}  // namespace gpups::tools
