// SPDX-License-Identifier: Apache-2.0
// Marks the functions of kernels, which the C++ compiler compiles for the host and nvcc for a GPU. GPUPS_FN marks a
// function of the space that is being compiled; GPUPS_ANY_FN one that a GPU's code and its host code call.
#pragma once

#ifdef __CUDACC__
#define GPUPS_FN __device__
#define GPUPS_ANY_FN __host__ __device__
#else
#define GPUPS_FN
#define GPUPS_ANY_FN
#endif
// GPUPS_INLINED_FN is for functions that take closures, and for functions that only prefetch, which g++ drops if they
// are not inlined. A function that is not inlined reads its closure from memory, and a closure that was just written
// reaches the cache only after the rows that are being loaded. GPUPS_INLINED_BODY is for the closures themselves. With
// sanitizers neither forces inlining, because that would take the compiler minutes.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define GPUPS_INLINED_FN GPUPS_FN inline
#define GPUPS_INLINED_BODY
#elif defined(__CUDACC__)
#define GPUPS_INLINED_FN __attribute__((always_inline)) GPUPS_FN inline
#define GPUPS_INLINED_BODY
#else
#define GPUPS_INLINED_FN __attribute__((always_inline)) GPUPS_FN inline
#define GPUPS_INLINED_BODY __attribute__((always_inline))
#endif
