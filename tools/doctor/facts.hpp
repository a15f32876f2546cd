// SPDX-License-Identifier: Apache-2.0
// Reads facts about this process and its machine for the doctor. Problems are among the facts, and not thrown.
#pragma once

#include "trainer/doctor/facts.hpp"

namespace gpups::tools {

trainer::ProgramFacts read_program();
trainer::MachineFacts read_machine();
trainer::GpuFacts read_gpus(int own);  // own: the device of this rank; memory of others is not read
trainer::RendezvousFacts read_rendezvous();
trainer::TransportFacts read_transports();

}  // namespace gpups::tools
