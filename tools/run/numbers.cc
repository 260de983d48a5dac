// Runs a model that takes numbers from a file: an image is classified, a recording written down, and of all others the
// rows that come out are printed.

#include <algorithm>
#include <cstdio>

#include "tools/inputs.h"
#include "tools/run/run.h"

namespace oxbow::tools {
namespace {

void print_rows(const std::vector<float>& values, size_t width) {
  for (size_t i = 0; i < values.size(); ++i) {
    std::printf("%.6g%c", static_cast<double>(values[i]), (i + 1) % width == 0 ? '\n' : ' ');
  }
}

/// What the file has for one input.
struct Given {
  oxb_input_info input = {};
  FloatRows rows;
};

/// Of all inputs that must be given.
std::vector<Given> read_inputs(const Request& request, const oxb_entry_info& entry) {
  const std::string path = *request.args.text("input");
  const PictureOptions picture = read_picture_options(request.args, request.path);
  std::vector<Given> all;
  for (size_t i = 0; i < entry.input_count; ++i) {
    const oxb::Expected<oxb_input_info> input = request.model.input_info(0, i);
    check(input.status(), request.path);
    if (i > 0 && input->required == 0) continue;
    if (input->type != OXB_TYPE_F32) {
      throw InputError(request.path +
                       ": the model takes numbers and tokens; call "
                       "oxb_session_run_entry, or compare with oxbow verify");
    }
    all.push_back({*input, read_input(path, *input, picture)});
    if (all.back().input.own_rows == 0 && all.back().rows.rows != all[0].rows.rows) {
      throw InputError(format("%s: '%s' has %zu rows, '%s' %zu", path.c_str(), input->name,
                              all.back().rows.rows, all[0].input.name, all[0].rows.rows));
    }
  }
  return all;
}

}  // namespace

std::vector<float> run_numbers(const Request& request, oxb::Session& session, bool print) {
  const oxb::Expected<oxb_entry_info> entry = request.model.entry_info(0);
  check(entry.status(), request.path);
  const std::vector<Given> given = read_inputs(request, *entry);
  const size_t all = given[0].rows.rows;
  // An image or a recording is one run, what streams comes in pieces.
  if (entry->starts != 0 && all > entry->max_rows) {
    throw InputError(format("%s has %zu rows, expected at most %u",
                            request.args.text("input")->c_str(), all, entry->max_rows));
  }
  std::vector<float> output;
  for (size_t begin = 0; begin < all;) {
    const size_t rows = std::min<size_t>(all - begin, entry->max_rows);
    std::vector<oxb_input> inputs;
    for (const auto& [input, numbers] : given) {
      const bool own = input.own_rows != 0;
      const std::span<const float> values = numbers.values;
      inputs.push_back(oxb::input(input.name, values.subspan(own ? 0 : begin * input.width),
                                  own ? numbers.rows : rows));
    }
    const size_t wanted = entry->output_rows != 0 ? entry->output_rows : rows;
    output.resize(wanted * entry->output_width);
    check(session.run_entry(0, inputs, output, wanted), request.path);
    if (print) print_rows(output, entry->output_width);
    begin += rows;
  }
  return output;
}

}  // namespace oxbow::tools
