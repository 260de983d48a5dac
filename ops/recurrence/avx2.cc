#include "ops/recurrence/generic.h"
#include "ops/recurrence/recurrence.h"

namespace oxbow {

void recurrence_f32_f32_avx2(const RecurrenceTile& tile) { recurrence(tile); }

}  // namespace oxbow
