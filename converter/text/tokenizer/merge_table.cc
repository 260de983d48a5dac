#include "converter/text/tokenizer/merge_table.h"

#include "runtime/text/tables/merges.h"

namespace oxbow::convert {

std::vector<schema::Merge> build_merge_table(std::span<const schema::Merge> merges) {
  std::vector<schema::Merge> places(2 * merges.size(),
                                    schema::Merge(kNoPiece, kNoPiece, kNoPiece, kNoPiece));
  for (const schema::Merge& merge : merges) {
    size_t at = merge_place(merge.left(), merge.right(), places.size());
    while (places[at].left() != kNoPiece) at = (at + 1) % places.size();
    places[at] = merge;
  }
  return places;
}

}  // namespace oxbow::convert
