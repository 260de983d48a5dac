# oxbow_tested: what scripts/test builds of a release. The programs of ctest and what is installed; not benchmarks, which
# --thorough runs, nor fuzz targets, which the builds with sanitizers run, nor programs that only stages for those who ask need.

add_custom_target(oxbow_tested)
foreach(target oxbow oxbow_jni oxbow_jar oxbow_manual oxbow_cli oxbow_convert oxbow_compat_tests ${test_programs})
  if(TARGET ${target})
    add_dependencies(oxbow_tested ${target})
  endif()
endforeach()
