// SPDX-License-Identifier: Apache-2.0
// Reads what the doctor needs to know of this process and its machine. Nothing here throws for what it finds.
#pragma once

#include "trainer/doctor/facts.hpp"

namespace gpups::tools {

trainer::ProgramFacts read_program();
trainer::MachineFacts read_machine();
trainer::GpuFacts read_gpus(int own);  // own: the device that this rank would use; others' memory is not asked for
trainer::RendezvousFacts read_rendezvous();
trainer::TransportFacts read_transports();

}  // namespace gpups::tools
