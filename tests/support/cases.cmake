# SPDX-License-Identifier: Apache-2.0
# The kernel cases and their oracle, for tests and benchmarks.
if(NOT TARGET gpups_cases)
  set(here ${PROJECT_SOURCE_DIR}/tests/support)
  add_library(gpups_cases STATIC ${here}/cases.cpp ${here}/cases_candidates.cpp ${here}/cases_dense.cpp
    ${here}/cases_dense_optimizers.cpp ${here}/cases_finding.cpp ${here}/cases_residuals.cpp ${here}/cases_packing.cpp
    ${here}/cases_pooling.cpp ${here}/cases_reading.cpp ${here}/cases_recommenders.cpp ${here}/cases_rounding.cpp
    ${here}/cases_scoring.cpp ${here}/cases_sending.cpp ${here}/cases_sparse.cpp ${here}/cases_summing.cpp
    ${here}/cases_wire.cpp ${here}/cases_words.cpp ${here}/cases_writing.cpp ${here}/oracle.cpp)
  target_include_directories(gpups_cases PUBLIC ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
  target_link_libraries(gpups_cases PUBLIC gpups fmt::fmt PRIVATE gpups::flags)
  if(GPUPS_UNITY)
    gpups_paths(paths gpups_cases)
    gpups_unite(gpups_cases ${GPUPS_UNITY_TESTS} PATHS ${paths})
  endif()
endif()
