// SPDX-License-Identifier: Apache-2.0
// A simple implementation of graph models: complex numbers in double, one triple after the other.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <map>
#include <vector>

#include "trainer/tasks/graph/model.hpp"

namespace gpups::test {

using Row = std::vector<double>;
using Rows = std::map<std::uint64_t, Row>;

struct OracleTriple {
  std::uint64_t subject, relation, object;
  std::vector<std::uint64_t> objects, subjects;                    // negatives
  std::vector<std::uint64_t> object_answers{}, subject_answers{};  // of labelled losses
};

// Whether all entities are candidates with a target.
inline bool is_labelled(trainer::GraphModelOptions const& options) {
  return trainer::takes_all(options.sampling) && options.loss != "self_adversarial";
}

// Rows as complex numbers; in a real model the imaginary parts are 0.
inline bool is_real(trainer::GraphModelOptions const& options) {
  return options.name != "complex" && options.name != "rotate";
}
inline std::size_t numbers_in(bool real, Row const& row) { return real ? row.size() : row.size() / 2; }
inline std::complex<double> number_at(bool real, Row const& row, std::size_t k) {
  return real ? row[k] : std::complex<double>(row[k], row[row.size() / 2 + k]);
}

inline double oracle_score(trainer::GraphModelOptions const& options, Row const& s, Row const& r, Row const& o) {
  if (options.name == "rescal") {
    double sum = 0;
    for (std::size_t i = 0; i < s.size(); ++i) {
      for (std::size_t j = 0; j < o.size(); ++j) sum += s[i] * r[i * o.size() + j] * o[j];
    }
    return sum;
  }
  if (options.name == "transe") {
    double sum = 0;
    for (std::size_t k = 0; k < s.size(); ++k) sum += std::pow(std::abs(s[k] + r[k] - o[k]), options.norm);
    return options.margin - std::pow(sum, 1.0 / options.norm);
  }
  if (options.name == "rotate") {
    double sum = 0;
    for (std::size_t k = 0; k < r.size(); ++k) {
      sum += std::abs(number_at(false, s, k) * std::polar(1.0, r[k]) - number_at(false, o, k));
    }
    return options.margin - sum;
  }
  bool const real = is_real(options);
  std::complex<double> sum = 0;
  for (std::size_t k = 0, n = numbers_in(real, s); k < n; ++k) {
    sum += number_at(real, s, k) * number_at(real, r, k) * std::conj(number_at(real, o, k));
  }
  return sum.real();
}

inline double oracle_penalty(trainer::GraphModelOptions const& options, Row const& row) {
  bool const real = is_real(options);
  double sum = 0;
  for (std::size_t k = 0; k < numbers_in(real, row); ++k) {
    double const modulus = std::abs(number_at(real, row, k));
    sum += options.l2 * std::pow(modulus, 2) + options.n3 * std::pow(modulus, 3);
  }
  return sum;
}

// The tables of a model.
struct Tables {
  Rows const &entities, &relations;
};
inline double oracle_score(trainer::GraphModelOptions const& options, Tables const& at, std::uint64_t subject,
                           std::uint64_t relation, std::uint64_t object) {
  return oracle_score(options, at.entities.at(subject), at.relations.at(relation), at.entities.at(object));
}

// Returns the self-adversarial loss of one side of a triple, with weights of negatives computed from `weighing`.
inline double oracle_self_adversarial(trainer::GraphModelOptions const& options, Tables const& now,
                                      Tables const& weighing, OracleTriple const& t, bool of_objects) {
  auto const score = [&](Tables const& at, std::uint64_t negative) {
    return of_objects ? oracle_score(options, at, t.subject, t.relation, negative)
                      : oracle_score(options, at, negative, t.relation, t.object);
  };
  double weighted = 0, weights = 0;
  for (std::uint64_t negative : of_objects ? t.objects : t.subjects) {
    if (negative == (of_objects ? t.object : t.subject)) continue;
    double const weight = std::exp(options.temperature * score(weighing, negative));
    weighted += weight * std::log1p(std::exp(score(now, negative)));
    weights += weight;
  }
  double const positive = oracle_score(options, now, t.subject, t.relation, t.object);
  return std::log1p(std::exp(-positive)) + (weights > 0 ? weighted / weights : 0);
}

// Returns the labelled loss of one side of a triple.
inline double oracle_labelled(trainer::GraphModelOptions const& options, Tables const& at, OracleTriple const& t,
                              bool of_objects) {
  auto const& answers = of_objects ? t.object_answers : t.subject_answers;
  auto const& candidates = of_objects ? t.objects : t.subjects;
  bool const softmax = options.loss == "softmax";
  double loss = 0, total = 0;
  for (std::uint64_t candidate : candidates) {
    double const score = of_objects ? oracle_score(options, at, t.subject, t.relation, candidate)
                                    : oracle_score(options, at, candidate, t.relation, t.object);
    double const label = static_cast<double>(std::count(answers.begin(), answers.end(), candidate)) /
                         (softmax ? static_cast<double>(answers.size()) : 1);
    double const smoothing = options.label_smoothing;
    double const target = (1 - smoothing) * label + smoothing / static_cast<double>(candidates.size());
    total += std::exp(score);
    loss += (softmax ? 0 : std::log1p(std::exp(score))) - target * score;
  }
  return loss + (softmax ? std::log(total) : 0);
}

// Returns the loss of all triples for the tables `now`. If the loss weights negatives, weights are computed from
// `weighing`.
inline double oracle_loss(trainer::GraphModelOptions const& options, Tables const& now, Tables const& weighing,
                          std::vector<OracleTriple> const& triples) {
  auto const& [entities, relations] = now;
  double loss = 0;
  for (OracleTriple const& t : triples) {
    Row const &s = entities.at(t.subject), &r = relations.at(t.relation), &o = entities.at(t.object);
    if (is_labelled(options)) {
      loss += oracle_labelled(options, now, t, true);
      if (!options.objects_only) loss += oracle_labelled(options, now, t, false);
      loss += oracle_penalty(options, s) + oracle_penalty(options, o);
      if (options.name != "rotate") loss += oracle_penalty(options, r);  // angles
      continue;
    }
    double const positive = oracle_score(options, s, r, o);
    double of_objects = std::exp(positive), of_subjects = std::exp(positive);
    if (options.loss == "logistic") loss += std::log1p(std::exp(-positive));
    for (std::uint64_t negative : t.objects) {
      double const score = oracle_score(options, s, r, entities.at(negative));
      if (options.loss == "logistic") loss += std::log1p(std::exp(score));
      if (negative != t.object) of_objects += std::exp(score);
    }
    for (std::uint64_t negative : t.subjects) {
      double const score = oracle_score(options, entities.at(negative), r, o);
      if (options.loss == "logistic") loss += std::log1p(std::exp(score));
      if (negative != t.subject) of_subjects += std::exp(score);
    }
    if (options.loss == "softmax") {
      loss -= std::log(std::exp(positive) / of_objects) + std::log(std::exp(positive) / of_subjects);
    }
    if (options.loss == "self_adversarial") {
      loss += oracle_self_adversarial(options, now, weighing, t, true);
      if (!options.objects_only) loss += oracle_self_adversarial(options, now, weighing, t, false);
    }
    loss += oracle_penalty(options, s) + oracle_penalty(options, o);
    if (options.name != "rotate") loss += oracle_penalty(options, r);  // angles
  }
  return loss;
}

inline double oracle_loss(trainer::GraphModelOptions const& options, Rows const& entities, Rows const& relations,
                          std::vector<OracleTriple> const& triples) {
  return oracle_loss(options, Tables{entities, relations}, Tables{entities, relations}, triples);
}

// Returns the loss that a step reports: that of binary cross entropy is divided by the number of entities.
inline double oracle_reported_loss(trainer::GraphModelOptions const& options, Rows const& entities,
                                   Rows const& relations, std::vector<OracleTriple> const& triples) {
  double const loss = oracle_loss(options, entities, relations, triples);
  bool const is_mean = is_labelled(options) && options.loss == "logistic" && !triples.empty();
  return is_mean ? loss / static_cast<double>(triples[0].objects.size()) : loss;
}

// Returns derivatives of the loss by every element of one table, computed by central differences.
inline Rows oracle_gradients(trainer::GraphModelOptions const& options, Rows const& entities_at,
                             Rows const& relations_at, std::vector<OracleTriple> const& triples, bool of_relations) {
  Rows entities = entities_at, relations = relations_at;
  Tables const now{entities, relations}, start{entities_at, relations_at};
  double const step = 1e-6;  // so small that few differences of TransE change their sign
  Rows gradients;
  Rows& table = of_relations ? relations : entities;
  for (auto& [key, row] : table) {
    for (double& x : row) {
      double const before = x;
      x = before + step;
      double const above = oracle_loss(options, now, start, triples);
      x = before - step;
      double const below = oracle_loss(options, now, start, triples);
      x = before;
      gradients[key].push_back((above - below) / (2 * step));
    }
  }
  return gradients;
}

}  // namespace gpups::test
