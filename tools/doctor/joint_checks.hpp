// SPDX-License-Identifier: Apache-2.0
// What only all ranks of a job can find out.
#pragma once

#include "trainer/doctor/facts.hpp"
#include "trainer/doctor/finding.hpp"

namespace gpups::tools {

// Joins the other ranks; looks whether they see the same data and folder, and how fast they reach each other. Rank 0
// prints what all have found. mine: what is not yet printed; problem_before: a problem of rank 0's is. Returns the
// status to exit with, the same on all ranks. Throws Error where ranks do not come together, or lose each other.
int wait_joint_checks(trainer::Facts facts, trainer::Findings mine, bool problem_before);

}  // namespace gpups::tools
