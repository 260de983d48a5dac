// For ops that compute each element of a float tensor alone: one thread for each, see ops/common/vulkan_rows.h.
// Values: the number of elements.

layout(local_size_x = 64) in;

// May be beyond the last.
uint element_index() { return group_index() * 64u + gl_LocalInvocationID.x; }
