# Ops that only some families of models use, in groups that a build can leave out: OXBOW_OPS is `all`, or a list of the groups
# beside what nearly every model uses (`core`, which is never left out). A model that needs what was left out is refused by
# name. Sets the list `left_out_groups`, and for each of them group_<name>.
#
# `low_bits` is no op but the products with weights of 16, 4 and 2 bits (ops/linear/kernels.inc).

# group      ops                                        families
set(op_group_table
    "recurrent | feature_map recurrence retention scan" # RetNet, Mamba, RWKV, xLSTM, fast weights, Infini, Griffin, AFT
    "gated     | gru_gate lerp most_used"               # GTrXL, gated memories, a memory of what was used most
    "routed    | route routed_linear"                   # Switch
    "hashed    | hash_buckets sort_rows"                # Reformer
    "mixing    | fourier landmark_inverse"              # FNet, Nystroemformer
    "dilated   | mix_attention"                         # LongNet
    "resampled | halt pool_rows repeat_rows"            # Hourglass, LongT5, Universal Transformer
    "patches   | patches"                               # images and sound
    "low_bits  |")

set(OXBOW_OPS all CACHE STRING "Groups of ops beside core: all, core, or a list of cmake/op_groups.cmake's names")
set(wanted_groups "${OXBOW_OPS}")
list(REMOVE_ITEM wanted_groups core)
set(left_out_groups "")
set(known_groups "")
foreach(row IN LISTS op_group_table)
  string(REGEX MATCH "^([a-z_]+) *\\| *(.*)$" _ "${row}")
  set(group "${CMAKE_MATCH_1}")
  separate_arguments(group_${group} UNIX_COMMAND "${CMAKE_MATCH_2}")
  list(APPEND known_groups ${group})
  if(NOT group IN_LIST wanted_groups AND NOT OXBOW_OPS STREQUAL "all")
    list(APPEND left_out_groups ${group})
  endif()
endforeach()
if(NOT OXBOW_OPS STREQUAL "all")
  list(REMOVE_ITEM wanted_groups ${known_groups})
  if(NOT wanted_groups STREQUAL "" OR OXBOW_OPS STREQUAL "")
    message(FATAL_ERROR "OXBOW_OPS is '${OXBOW_OPS}', expected all, core, or some of: ${known_groups}")
  endif()
  if(OXBOW_BUILD_TOOLS OR OXBOW_BUILD_TESTS)
    message(FATAL_ERROR "OXBOW_OPS leaves out ${left_out_groups}: converter, tools and tests need all ops "
                        "(OXBOW_BUILD_TOOLS=OFF, OXBOW_BUILD_TESTS=OFF)")
  endif()
endif()
