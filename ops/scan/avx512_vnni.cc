// Sixteen channels in a vector, and exponentials by sixteen.

#include "ops/scan/generic.h"
#include "ops/scan/scan.h"

namespace oxbow {

void scan_f32_f32_avx512_vnni(const ScanArgs& args, size_t begin, size_t end) {
  scan_vectors(args, begin, end);
}

}  // namespace oxbow
