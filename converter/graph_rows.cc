// GraphBuilder: which rows and columns go where.

#include <memory>

#include "converter/graph.h"

namespace oxbow::convert {

uint32_t GraphBuilder::positions(const std::string& name, uint32_t limit,
                                 const schema::PositionsOptionsT& options, uint32_t tokens) {
  if (tokens == kNone) tokens = tokens_;
  const uint32_t y = like(name, tokens, 1);
  set_ids(y, limit);
  step(schema::OpCode::Positions, {tokens}, {y}).options.Set(schema::PositionsOptionsT(options));
  return y;
}

uint32_t GraphBuilder::token_mask(const std::string& name, uint32_t pad_token) {
  const uint32_t y = ids(name, 2);
  schema::TokenMaskOptionsT options;
  options.pad_token = pad_token;
  step(schema::OpCode::TokenMask, {tokens_}, {y}).options.Set(std::move(options));
  return y;
}

uint32_t GraphBuilder::mask_rows(const std::string& name, uint32_t x, uint32_t mask) {
  const uint32_t y = like(name, x, graph_.tensor(x).width);
  step(schema::OpCode::MaskRows, {x, mask}, {y});
  return y;
}

uint32_t GraphBuilder::select_rows(const std::string& name, uint32_t x, uint32_t mask,
                                   uint32_t rows_symbol) {
  const uint32_t y = activation(name, rows_symbol, graph_.tensor(x).width);
  step(schema::OpCode::SelectRows, {x, mask}, {y});
  return y;
}

uint32_t GraphBuilder::merge_rows(const std::string& name, uint32_t x, uint32_t rows,
                                  uint32_t mask) {
  const uint32_t y = like(name, x, graph_.tensor(x).width);
  step(schema::OpCode::MergeRows, {x, rows, mask}, {y});
  return y;
}

uint32_t GraphBuilder::pad_rows(const std::string& name, uint32_t x, uint32_t rows_symbol,
                                const schema::PadRowsOptionsT& options) {
  const uint32_t y = activation(name, rows_symbol, 1);
  set_ids(y, graph_.tensor(x).limit);
  step(schema::OpCode::PadRows, {x}, {y}).options.Set(schema::PadRowsOptionsT(options));
  return y;
}

uint32_t GraphBuilder::hash_buckets(const std::string& name, uint32_t x, uint32_t rotations,
                                    uint32_t mask, uint32_t rows_symbol,
                                    const schema::HashBucketsOptionsT& from) {
  schema::HashBucketsOptionsT options = from;
  options.has_mask = mask != kNone;
  uint32_t limit = 1;
  for (const uint32_t factor : options.buckets) limit *= factor;
  const uint32_t y = activation(name, rows_symbol, 1);
  set_ids(y, (limit + 1) * options.rounds);
  std::vector<uint32_t> inputs = {x, rotations};
  if (mask != kNone) inputs.push_back(mask);
  step(schema::OpCode::HashBuckets, std::move(inputs), {y}).options.Set(std::move(options));
  return y;
}

uint32_t GraphBuilder::sort_rows(const std::string& name, uint32_t keys, uint32_t given,
                                 uint32_t rows_symbol, uint32_t lists) {
  const uint32_t y = activation(name, rows_symbol, 1);
  set_ids(y, graph_.tensor(keys).rows / lists);
  schema::SortRowsOptionsT options;
  options.lists = lists;
  std::vector<uint32_t> inputs = {keys};
  if (given != kNone) inputs.push_back(given);
  step(schema::OpCode::SortRows, std::move(inputs), {y}).options.Set(std::move(options));
  return y;
}

uint32_t GraphBuilder::slice_columns(const std::string& name, uint32_t x, uint32_t first,
                                     uint32_t width) {
  const uint32_t y = like(name, x, width);
  schema::SliceColumnsOptionsT options;
  options.first = first;
  step(schema::OpCode::SliceColumns, {x}, {y}).options.Set(std::move(options));
  return y;
}

uint32_t GraphBuilder::concat_columns(const std::string& name, const std::vector<uint32_t>& parts) {
  uint32_t width = 0;
  for (const uint32_t part : parts) width += graph_.tensor(part).width;
  const uint32_t y = like(name, parts.at(0), width);
  step(schema::OpCode::ConcatColumns, parts, {y});
  return y;
}

uint32_t GraphBuilder::pool(const std::string& name, uint32_t x, uint32_t group,
                            schema::Pooling pooling, bool neighbours) {
  require(graph_.tensor(x).width % group == 0, name + " pools a width that is no multiple");
  const uint32_t y = like(name, x, graph_.tensor(x).width / group);
  schema::PoolOptionsT options;
  options.pooling = pooling;
  options.group = group;
  options.neighbours = neighbours;
  step(schema::OpCode::Pool, {x}, {y}).options.Set(std::move(options));
  return y;
}

uint32_t GraphBuilder::pool_rows(const std::string& name, const PoolRows& from,
                                 uint32_t rows_symbol) {
  const uint32_t width = graph_.tensor(from.x.at(0)).width;
  const uint32_t y = rows_symbol == kNone ? tensor(name, schema::TensorKind::Activation, 1, width)
                                          : activation(name, rows_symbol, width);
  schema::PoolRowsOptionsT options;
  options.group = from.group;
  options.front = from.front;
  options.mean = from.mean;
  options.joins = from.joins;
  options.two = from.x.size() == 2;
  std::vector<uint32_t> inputs = from.x;
  const auto optional_input = [&](uint32_t tensor) {
    if (tensor != kNone) inputs.push_back(tensor);
    return tensor != kNone;
  };
  options.has_factors = optional_input(from.factors);
  options.has_mask = optional_input(from.mask);
  options.has_shape = optional_input(from.shape);
  step(schema::OpCode::PoolRows, std::move(inputs), {y}).options.Set(std::move(options));
  return y;
}

uint32_t GraphBuilder::repeat_rows(const std::string& name, uint32_t x, uint32_t like_rows,
                                   uint32_t group, int32_t offset) {
  const uint32_t y = like(name, like_rows, graph_.tensor(x).width);
  schema::RepeatRowsOptionsT options;
  options.group = group;
  options.offset = offset;
  step(schema::OpCode::RepeatRows, {x}, {y}).options.Set(std::move(options));
  return y;
}

uint32_t GraphBuilder::shaped_rows(const std::string& name, uint32_t x, int32_t offset,
                                   uint32_t shape, uint32_t length, uint32_t rows_symbol) {
  const uint32_t y = activation(name, rows_symbol, graph_.tensor(x).width);
  schema::RepeatRowsOptionsT options;
  options.offset = offset;
  options.has_shape = true;
  options.length = length;
  step(schema::OpCode::RepeatRows, {x, shape}, {y}).options.Set(std::move(options));
  return y;
}

uint32_t GraphBuilder::first_rows(const std::string& name, uint32_t x, uint32_t like_rows) {
  const uint32_t y = like(name, like_rows, graph_.tensor(x).width);
  schema::TakeRowsOptionsT options;
  options.from_start = true;
  step(schema::OpCode::TakeRows, {x}, {y}).options.Set(std::move(options));
  return y;
}

GraphBuilder::Halted GraphBuilder::halt(const std::string& name, uint32_t p, uint32_t x,
                                        const Halted& before, float threshold,
                                        uint32_t rows_symbol) {
  const bool first = before.counts == kNone;
  const uint32_t rows = first ? x : before.counts, width = graph_.tensor(x).width;
  const Halted after = {like(name + ".counts", rows, 3), like(name + ".mix", rows, width),
                        activation(name + ".x", rows_symbol, width)};
  schema::HaltOptionsT options;
  options.threshold = threshold;
  std::vector<uint32_t> inputs = {p, x};
  if (!first) inputs.insert(inputs.end(), {before.counts, before.mix});
  step(schema::OpCode::Halt, std::move(inputs), {after.counts, after.mix, after.x})
      .options.Set(std::move(options));
  return after;
}

GraphBuilder::Route GraphBuilder::route(const std::string& name, uint32_t scores,
                                        uint32_t capacity) {
  const Route route = {like(name + ".routes", scores, 1), like(name + ".chosen", scores, 2)};
  graph_.tensor(route.routes).type = schema::DataType::I32;
  graph_.tensor(route.routes).limit = graph_.tensor(scores).width;
  schema::StepT& made = step(schema::OpCode::Route, {scores}, {route.routes, route.chosen});
  if (capacity != 0) {
    schema::RouteOptionsT options;
    options.capacity = capacity;
    made.options.Set(std::move(options));
  }
  return route;
}

uint32_t GraphBuilder::routed_linear(const std::string& name, uint32_t x, uint32_t routes,
                                     uint32_t weight, uint32_t bias, uint32_t experts,
                                     uint32_t width) {
  const uint32_t y = like(name, x, width);
  schema::RoutedLinearOptionsT options;
  options.experts = experts;
  options.has_bias = bias != kNone;
  std::vector<uint32_t> inputs = {x, routes, weight};
  if (bias != kNone) inputs.push_back(bias);
  step(schema::OpCode::RoutedLinear, std::move(inputs), {y}).options.Set(std::move(options));
  return y;
}

uint32_t GraphBuilder::patches(const std::string& name, uint32_t x,
                               const schema::PatchesOptionsT& options) {
  const uint32_t across =
      (options.width + 2 * options.pad_x - options.patch_width) / options.stride_x + 1;
  const uint32_t down =
      (options.height + 2 * options.pad_y - options.patch_height) / options.stride_y + 1;
  const uint32_t y = tensor(name, schema::TensorKind::Activation, across * down,
                            options.channels * options.patch_height * options.patch_width);
  step(schema::OpCode::Patches, {x}, {y}).options.Set(schema::PatchesOptionsT(options));
  return y;
}

uint32_t GraphBuilder::concat_rows(const std::string& name, const std::vector<uint32_t>& parts) {
  uint32_t rows = 0;
  for (const uint32_t part : parts) rows += graph_.tensor(part).rows;
  const uint32_t y =
      tensor(name, schema::TensorKind::Activation, rows, graph_.tensor(parts.at(0)).width);
  step(schema::OpCode::ConcatRows, parts, {y});
  return y;
}

uint32_t GraphBuilder::mean_rows(const std::string& name, uint32_t x, uint32_t count,
                                 uint32_t group) {
  schema::PatchesOptionsT options;
  options.channels = graph_.tensor(x).width;
  options.height = options.patch_height = options.stride_y = 1;
  options.width = count * group;
  options.patch_width = options.stride_x = group;
  return pool(name, patches(name + ".groups", x, options), group, schema::Pooling::Mean);
}

uint32_t GraphBuilder::take_rows(const std::string& name, uint32_t x) {
  const uint32_t y = activation(name, output_symbol_, graph_.tensor(x).width);
  step(schema::OpCode::TakeRows, {x}, {y}).options.Set(schema::TakeRowsOptionsT());
  return y;
}

uint32_t GraphBuilder::token_rows(const std::string& name, uint32_t x) {
  const uint32_t y = activation(name, tokens_symbol_, graph_.tensor(x).width);
  schema::TakeRowsOptionsT options;
  options.from_start = true;
  step(schema::OpCode::TakeRows, {x}, {y}).options.Set(std::move(options));
  return y;
}

uint32_t GraphBuilder::first_row(const std::string& name, uint32_t x) {
  const uint32_t y = tensor(name, schema::TensorKind::Activation, 1, graph_.tensor(x).width);
  schema::TakeRowsOptionsT options;
  options.from_start = true;
  step(schema::OpCode::TakeRows, {x}, {y}).options.Set(std::move(options));
  return y;
}

}  // namespace oxbow::convert
