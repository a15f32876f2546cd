// SPDX-License-Identifier: Apache-2.0
// The kind of task for knowledge graphs: triples of a file, or of the WordNet database.
#pragma once

#include "trainer/config/task_kind.hpp"

namespace gpups::trainer {

TaskKind const& graph_kind();

}  // namespace gpups::trainer
