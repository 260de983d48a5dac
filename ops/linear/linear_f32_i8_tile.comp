#version 450
#extension GL_GOOGLE_include_directive : require
#include "ops/common/vulkan/common.glsl"
#include "ops/linear/linear.glsl"
#include "ops/linear/linear_float.glsl"
#include "ops/linear/linear_i8_weight.glsl"
#include "ops/linear/linear_float_tile.glsl"
