// SPDX-License-Identifier: Apache-2.0
// Metrics of ranked answers, as sums that do not depend on the order of the answers.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "trainer/tasks/graph/model.hpp"

namespace gpups::trainer {

// The known answers of questions, which filtered ranking leaves out: the objects of (subject, relation), or the
// subjects of (object, relation). Takes 4 bytes per triple and 12 per question.

// The known answers of one direction.
class RankingFilter {
 public:
  // objects: true: answers are objects; false: answers are subjects.
  RankingFilter(std::initializer_list<std::span<Triple const>> splits, bool objects);

  // Returns the answers, sorted and distinct; empty if no triple answers the question. entity: the entity in the
  // question.
  std::span<std::uint32_t const> of(std::uint32_t entity, std::uint32_t relation) const;

 private:
  std::vector<std::uint64_t> questions_;  // entity << 32 | relation, sorted
  std::vector<std::uint32_t> offsets_;    // (questions + 1)
  std::vector<std::uint32_t> answers_;
};

// Metrics of a split.
struct RankingMetrics {
  std::int64_t ranked = 0;  // number of answers: two for each triple
  std::size_t triples = 0;  // number of triples in the split; eval.samples_max may rank fewer
  std::size_t unseen = 0;   // of the ranked triples, those with a name that is not in the training data
  double mrr = 0;           // mean of 1 / rank
  double mean_rank = 0;
  std::vector<std::pair<std::int64_t, double>> hits;  // k, and the share of answers with a rank up to k
};

// Returns {"ranked": 2, "triples": 1, "unseen": 0, "mrr": 0.5, "mean_rank": 2.0, "hits@1": 0.5}, for example.
nlohmann::json to_json(RankingMetrics const& metrics);
// Returns "mrr 0.3456  hits@1 0.2501  hits@10 0.5012", for example, and tells if triples were left out.
std::string to_text(RankingMetrics const& metrics);

// Sums over answers. The rank of an answer is 1 + better + equal / 2, the middle of the ranks that ties allow.
class RankingSums {
 public:
  // hits: the k of Hits@k.
  explicit RankingSums(std::vector<std::int64_t> hits);

  // Adds an answer. better, equal: number of other entities with a better or an equal score.
  void add(std::uint64_t better, std::uint64_t equal);
  // Returns the sums as integers, which the caller sums over the ranks of a group.
  std::span<std::int64_t> values() { return values_; }
  RankingMetrics metrics() const;

 private:
  std::vector<std::int64_t> hits_;
  std::vector<std::int64_t> values_;  // answers; sum of 1 / rank in units of 2^-32; twice the sum of ranks; hits
};

}  // namespace gpups::trainer
