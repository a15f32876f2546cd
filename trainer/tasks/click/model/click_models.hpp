// SPDX-License-Identifier: Apache-2.0
// The click-through models by name: the terms of each, and the features that it needs. A new model is a line in
// click_models.cpp, and a class for each new term.
#pragma once

#include <string>
#include <vector>

#include "trainer/tasks/click/model/click_model.hpp"

namespace gpups::trainer {

using MakeTerm = std::unique_ptr<ClickTerm> (*)(TermContext const& context);

// A kind of model.
struct ClickModelEntry {
  char const* name;
  FeatureNeeds needs;
  std::vector<MakeTerm> terms;
  bool even;  // its terms multiply pairs of rows, so all rows must have one dim
};

std::vector<std::string> click_model_names();
// Returns the kind of model with this name. REQUIRES: it is one of click_model_names().
ClickModelEntry const& click_model(std::string const& name);

// Each makes a term, or returns null if the features have no input for the term.
std::unique_ptr<ClickTerm> make_wide_term(TermContext const& context);           // weights of categories
std::unique_ptr<ClickTerm> make_numbers_term(TermContext const& context);        // weights of numbers, and a bias
std::unique_ptr<ClickTerm> make_factorization_term(TermContext const& context);  // all pairs of rows
std::unique_ptr<ClickTerm> make_deep_term(TermContext const& context);           // layers on the block
std::unique_ptr<ClickTerm> make_interaction_term(TermContext const& context);    // DLRM
std::unique_ptr<ClickTerm> make_cross_term(TermContext const& context);          // DCN-v2

}  // namespace gpups::trainer
