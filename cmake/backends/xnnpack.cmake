oxbow_backend(
  XNNPACK "libxnnpack-dev libpthreadpool-dev" xnnpack.h
  "#include <xnnpack.h>
int main() { return xnn_setup_fully_connected_nc_f32(nullptr, 1, nullptr, nullptr, nullptr); }" XNNPACK)
