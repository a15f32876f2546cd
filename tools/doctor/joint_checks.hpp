// SPDX-License-Identifier: Apache-2.0
// Checks for which all ranks of a job are needed.
#pragma once

#include "trainer/doctor/checks.hpp"
#include "trainer/doctor/facts.hpp"

namespace gpups::tools {

// Joins the other ranks, compares their settings, data and folders, and measures the links between them. Rank 0 prints
// the findings of all ranks. mine: findings that are not printed yet. worst_before: the highest level of those
// that rank 0 has printed already. Returns the exit status, the same on all ranks. Throws Error if ranks do not join,
// or are lost.
int wait_joint_checks(trainer::Facts facts, trainer::Findings mine, trainer::Finding::Level worst_before);

}  // namespace gpups::tools
