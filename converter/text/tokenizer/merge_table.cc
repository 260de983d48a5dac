#include "converter/text/tokenizer/merge_table.h"

#include "host/errors.h"
#include "runtime/text/tables/merges.h"

namespace oxbow::convert {

std::vector<schema::Merge> build_merge_table(std::span<const schema::Merge> merges) {
  std::vector<schema::Merge> places(2 * merges.size(),
                                    schema::Merge(kNoPiece, kNoPiece, kNoPiece, kNoPiece));
  for (const schema::Merge& merge : merges) {
    size_t at = merge_place(merge.left(), merge.right(), places.size());
    for (size_t probes = 0; places[at].left() != kNoPiece; ++probes) {
      // The runtime would refuse it, and ids that were chosen for this take the square of their number here.
      if (probes == kMaxMergeProbes / 2) {
        throw InputError("the ids of the vocabulary's merges are all looked for in the same place");
      }
      at = (at + 1) % places.size();
    }
    places[at] = merge;
  }
  return places;
}

}  // namespace oxbow::convert
