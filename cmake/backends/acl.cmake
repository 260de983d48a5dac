oxbow_backend(ACL "libarm-compute-dev" arm_compute/runtime/NEON/NEFunctions.h "" arm_compute arm_compute_core)
# Its headers know C++17 at most, and it throws.
set(acl_flags -std=c++17 -fexceptions -frtti)
