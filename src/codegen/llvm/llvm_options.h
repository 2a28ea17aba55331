// Settings of LLVM's code generation that only its command line has. The linker resets them, so it is given them too.
//   -disable-lsr             loop strength reduction undoes the addresses that hoist_addresses and join_rows chose
//                            (95 becomes 66 GFLOP/s)
//   -pre-RA-sched=list-burr  the default scheduler starts loads so early that the accumulators of large tiles spill
//                            (4 x 24 on AVX2: 46 % against 95 % of the peak)
#pragma once

namespace fusewise::codegen {

inline constexpr const char* llvm_options[] = {"-disable-lsr", "-pre-RA-sched=list-burr"};

}  // namespace fusewise::codegen
