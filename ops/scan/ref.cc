#include "ops/scan/generic.h"
#include "ops/scan/scan.h"

namespace oxbow {

void scan_f32_f32_ref(const ScanArgs& args, size_t begin, size_t end) {
  scan(args, begin, end - begin);
}

}  // namespace oxbow
