#pragma once

// Where count_plugin.c begins and ends to count: it knows these functions by name, so they must be functions of the
// main program and must be called.

extern "C" {

[[gnu::noinline, gnu::noclone]] inline void oxbow_count_begin() { asm volatile("" ::: "memory"); }
[[gnu::noinline, gnu::noclone]] inline void oxbow_count_end() { asm volatile("" ::: "memory"); }
}
