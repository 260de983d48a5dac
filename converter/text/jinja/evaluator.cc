#include "converter/text/jinja/evaluator.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "converter/text/jinja/builtins.h"

namespace oxbow::convert::jinja {
namespace {

constexpr std::string_view kFunctions[] = {"range", "namespace", "raise_exception", "strftime_now"};
// Names that the original defines and that are not here: not to be taken for undefined.
constexpr std::string_view kUnsupportedNames[] = {"dict",    "lipsum", "cycler", "joiner", "self",
                                                  "varargs", "kwargs", "caller", "super"};

/// A loop's body, a macro's and the template itself each have one.
struct Scope {
  std::map<std::string, Value> names;
  const Scope* outer = nullptr;
};

/// How a body ended.
enum class Flow { kOn, kBreak, kContinue };

class Evaluator {
 public:
  Evaluator(std::map<std::string, Value> names, Meter& meter) : meter_(meter) {
    root_.names = std::move(names);
  }

  std::string run(const Body& body) {
    std::string out;
    execute(body, root_, out);
    return out;
  }

 private:
  /// Macros call macros; the C++ stack must not be what ends that.
  class Level {
   public:
    explicit Level(Evaluator& evaluator) : depth_(evaluator.depth_) {
      if (++depth_ > kMaxRunDepth) {
        --depth_;
        evaluator.meter_.refuse("macros call each other too deeply");
      }
    }
    ~Level() { --depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    int& depth_;
  };

  void print(std::string_view text, std::string& out) {
    meter_.bytes(text.size());
    if (text.size() > kMaxTextBytes - out.size()) meter_.refuse("the output is longer than 1 MiB");
    out += text;
  }

  Flow execute(const Body& body, Scope& scope, std::string& out) {
    const Level level(*this);
    for (const Statement& statement : body) {
      meter_.line = statement.line;
      meter_.step();
      const Flow flow = execute(statement, scope, out);
      if (flow != Flow::kOn) return flow;
    }
    return Flow::kOn;
  }

  Flow execute(const Statement& statement, Scope& scope, std::string& out) {
    switch (statement.kind) {
      case Statement::Kind::kText:
        print(statement.text, out);
        return Flow::kOn;
      case Statement::Kind::kOutput:
        print(to_text(meter_, evaluate(*statement.expressions[0], scope)), out);
        return Flow::kOn;
      case Statement::Kind::kIf:
        return execute_if(statement, scope, out);
      case Statement::Kind::kFor:
        return execute_for(statement, scope, out);
      case Statement::Kind::kSet:
        execute_set(statement, scope);
        return Flow::kOn;
      case Statement::Kind::kMacro:
        if (&scope != &root_) meter_.refuse("a macro inside a loop or a macro is not supported");
        scope.names[statement.text] = &statement;
        return Flow::kOn;
      case Statement::Kind::kGeneration: {
        Scope inner{{}, &scope};
        return execute(statement.bodies[0], inner, out);
      }
      case Statement::Kind::kBreak:
        return Flow::kBreak;
      case Statement::Kind::kContinue:
        return Flow::kContinue;
    }
    return Flow::kOn;
  }

  Flow execute_if(const Statement& statement, Scope& scope, std::string& out) {
    const size_t conditions = statement.expressions.size();
    for (size_t i = 0; i < conditions; ++i) {
      if (is_true(evaluate(*statement.expressions[i], scope))) {
        return execute(statement.bodies[i], scope, out);
      }
    }
    const bool has_else = statement.bodies.size() > conditions;
    return has_else ? execute(statement.bodies[conditions], scope, out) : Flow::kOn;
  }

  void bind(const std::vector<std::string>& names, const Value& value, Scope& scope) {
    if (names.size() == 1) {
      scope.names[names[0]] = value;
      return;
    }
    const auto* list = std::get_if<ListPtr>(&value);
    if (list == nullptr || (*list)->items.size() != names.size()) {
      meter_.refuse("a loop with " + std::to_string(names.size()) + " names over " +
                    kind_of(value) + " that has another number of elements");
    }
    for (size_t i = 0; i < names.size(); ++i) {
      meter_.step();
      scope.names[names[i]] = (*list)->items[i];
    }
  }

  ListPtr elements(const Statement& statement, Scope& scope) {
    const ListPtr all = iterate(meter_, evaluate(*statement.expressions[0], scope));
    if (statement.expressions.size() == 1) return all;
    std::vector<Value> chosen;
    for (const Value& element : all->items) {
      meter_.step();
      Scope inner{{}, &scope};
      bind(statement.names, element, inner);
      if (is_true(evaluate(*statement.expressions[1], inner))) chosen.push_back(element);
    }
    return std::get<ListPtr>(make_list(meter_, std::move(chosen)));
  }

  Flow execute_for(const Statement& statement, Scope& scope, std::string& out) {
    const ListPtr list = elements(statement, scope);
    if (list->items.empty()) {
      if (statement.bodies.size() == 1) return Flow::kOn;
      Scope inner{{}, &scope};
      return execute(statement.bodies[1], inner, out);
    }
    Loop& loop = loops_.emplace_back(Loop{list});
    for (size_t i = 0; i < list->items.size(); ++i) {
      meter_.step();
      loop.index = i;
      Scope inner{{}, &scope};
      inner.names["loop"] = &std::as_const(loop);
      bind(statement.names, list->items[i], inner);
      if (execute(statement.bodies[0], inner, out) == Flow::kBreak) break;
    }
    return Flow::kOn;
  }

  void execute_set(const Statement& statement, Scope& scope) {
    Value value;
    if (statement.bodies.empty()) {
      value = evaluate(*statement.expressions[0], scope);
    } else {
      std::string text;
      Scope inner{{}, &scope};
      execute(statement.bodies[0], inner, text);
      value = make_text(meter_, std::move(text));
    }
    if (statement.attribute.empty()) {
      scope.names[statement.text] = std::move(value);
      return;
    }
    const Value target = look_up(statement.text, scope);
    const auto* space = std::get_if<Namespace*>(&target);
    if (space == nullptr) {
      meter_.refuse("only a namespace can be written to, " + quoted(statement.text) + " is " +
                    kind_of(target));
    }
    (*space)->names[statement.attribute] = std::move(value);
  }

  Value look_up(const std::string& name, const Scope& scope) {
    for (const Scope* at = &scope; at != nullptr; at = at->outer) {
      meter_.step();
      const auto found = at->names.find(name);
      if (found != at->names.end()) return found->second;
    }
    for (const std::string_view function : kFunctions) {
      if (name == function) return Function{function};
    }
    for (const std::string_view other : kUnsupportedNames) {
      if (name == other) meter_.refuse(quoted(name) + " is not supported");
    }
    return Undefined{name};
  }

  Value evaluate(const Expression& expression, Scope& scope) {
    const Level level(*this);
    meter_.step();
    meter_.line = expression.line;
    const std::vector<ExpressionPtr>& parts = expression.parts;
    switch (expression.kind) {
      case Expression::Kind::kConstant:
        return expression.constant;
      case Expression::Kind::kName:
        return look_up(expression.name, scope);
      case Expression::Kind::kList:
      case Expression::Kind::kTuple:
        return evaluate_list(expression, scope);
      case Expression::Kind::kDict:
        return evaluate_dict(expression, scope);
      case Expression::Kind::kNot:
        return !is_true(evaluate(*parts[0], scope));
      case Expression::Kind::kNegative:
        return negative(evaluate(*parts[0], scope));
      case Expression::Kind::kAnd:
      case Expression::Kind::kOr:
        return evaluate_logic(expression, scope);
      case Expression::Kind::kCompare:
        return evaluate_comparison(expression, scope);
      case Expression::Kind::kArithmetic:
        return evaluate_arithmetic(expression, scope);
      case Expression::Kind::kConcatenation: {
        std::string text;
        for (const ExpressionPtr& part : parts) {
          print(to_text(meter_, evaluate(*part, scope)), text);
        }
        return make_text(meter_, std::move(text));
      }
      case Expression::Kind::kChoice:
        if (is_true(evaluate(*parts[1], scope))) return evaluate(*parts[0], scope);
        return parts.size() == 3 ? evaluate(*parts[2], scope) : Value(Undefined{"else"});
      case Expression::Kind::kAccess:
        return evaluate_access(expression, scope);
    }
    return None{};
  }

  Value negative(const Value& value) {
    int64_t storage = 0;
    if (as_integer(value, storage) == nullptr) {
      meter_.refuse("the operator \"-\" of " + kind_of(value) + " is not supported");
    }
    return calculate(meter_, "-", int64_t{0}, value);
  }

  Value evaluate_list(const Expression& expression, Scope& scope) {
    std::vector<Value> items;
    for (const ExpressionPtr& part : expression.parts) items.push_back(evaluate(*part, scope));
    return make_list(meter_, std::move(items), expression.kind == Expression::Kind::kTuple);
  }

  Value evaluate_dict(const Expression& expression, Scope& scope) {
    std::vector<std::pair<std::string, Value>> entries;
    for (size_t i = 0; i + 1 < expression.parts.size(); i += 2) {
      const Value key = evaluate(*expression.parts[i], scope);
      const std::string* text = as_text(key);
      if (text == nullptr) meter_.refuse("a key that is " + kind_of(key) + " is not supported");
      meter_.bytes(text->size());
      entries.emplace_back(*text, evaluate(*expression.parts[i + 1], scope));
    }
    return make_dict(meter_, std::move(entries));
  }

  /// The operand that decides, as in Python.
  Value evaluate_logic(const Expression& expression, Scope& scope) {
    const bool stops_at = expression.kind == Expression::Kind::kOr;
    Value value;
    for (const ExpressionPtr& part : expression.parts) {
      value = evaluate(*part, scope);
      if (is_true(value) == stops_at) break;
    }
    return value;
  }

  /// a < b < c is a < b and b < c.
  Value evaluate_comparison(const Expression& expression, Scope& scope) {
    Value left = evaluate(*expression.parts[0], scope);
    for (size_t i = 0; i < expression.operators.size(); ++i) {
      Value right = evaluate(*expression.parts[i + 1], scope);
      if (!holds(expression.operators[i], left, right)) return false;
      left = std::move(right);
    }
    return true;
  }

  bool holds(const std::string& sign, const Value& left, const Value& right) {
    if (sign == "==") return equal(meter_, left, right);
    if (sign == "!=") return !equal(meter_, left, right);
    if (sign == "in") return contains(meter_, right, left);
    if (sign == "not in") return !contains(meter_, right, left);
    const int order = compare(meter_, left, right);
    if (sign == "<") return order < 0;
    if (sign == ">") return order > 0;
    return sign == "<=" ? order <= 0 : order >= 0;
  }

  Value evaluate_arithmetic(const Expression& expression, Scope& scope) {
    Value out = evaluate(*expression.parts[0], scope);
    for (size_t i = 0; i < expression.operators.size(); ++i) {
      const Value right = evaluate(*expression.parts[i + 1], scope);
      out = calculate(meter_, expression.operators[i], out, right);
    }
    return out;
  }

  Value evaluate_access(const Expression& expression, Scope& scope) {
    Value value = evaluate(*expression.parts[0], scope);
    const std::vector<Access>& accesses = expression.accesses;
    for (size_t i = 0; i < accesses.size(); ++i) {
      const Access& access = accesses[i];
      const bool is_called = i + 1 < accesses.size() && accesses[i + 1].kind == Access::Kind::kCall;
      if (access.kind == Access::Kind::kAttribute && is_called && has_methods(value)) {
        const Arguments arguments = evaluate_arguments(accesses[++i], scope);
        value = call_method(meter_, value, access.name, arguments);
      } else {
        value = evaluate_access(access, value, scope);
      }
    }
    return value;
  }

  static bool has_methods(const Value& value) {
    return as_text(value) != nullptr || std::holds_alternative<ListPtr>(value) ||
           std::holds_alternative<DictPtr>(value);
  }

  Value evaluate_access(const Access& access, const Value& value, Scope& scope) {
    meter_.step();
    if (access.kind == Access::Kind::kAttribute) return attribute(meter_, value, access.name);
    if (access.kind == Access::Kind::kSlice) {
      Value places[3];
      const Value* given[3] = {};
      for (size_t i = 0; i < 3; ++i) {
        if (access.arguments[i].value == nullptr) continue;
        places[i] = evaluate(*access.arguments[i].value, scope);
        given[i] = &places[i];
      }
      return slice(meter_, value, given[0], given[1], given[2]);
    }
    const Arguments arguments = evaluate_arguments(access, scope);
    switch (access.kind) {
      case Access::Kind::kItem:
        return item(meter_, value, arguments.places[0]);
      case Access::Kind::kFilter:
        return apply_filter(meter_, access.name, value, arguments);
      case Access::Kind::kTest:
        return apply_test(meter_, access.name, value, arguments) != access.is_negated;
      default:
        return call(value, arguments);
    }
  }

  Arguments evaluate_arguments(const Access& access, Scope& scope) {
    Arguments out;
    for (const Argument& argument : access.arguments) {
      Value value = evaluate(*argument.value, scope);
      if (argument.name.empty()) {
        out.places.push_back(std::move(value));
      } else if (out.find(out.places.size(), argument.name.c_str()) != nullptr) {
        meter_.refuse("the argument " + quoted(argument.name) + " is given twice");
      } else {
        meter_.step(1 + out.names.size());
        out.names.emplace_back(argument.name, std::move(value));
      }
    }
    meter_.line = access.line;
    return out;
  }

  Value call(const Value& value, const Arguments& arguments) {
    if (const auto* macro = std::get_if<const Statement*>(&value)) {
      return call_macro(**macro, arguments);
    }
    const auto* function = std::get_if<Function>(&value);
    if (function == nullptr) meter_.refuse(kind_of(value) + " cannot be called");
    if (function->name == "range") return range(arguments);
    if (function->name == "namespace") {
      Namespace& space = spaces_.emplace_back();
      check_positions(arguments, 0, "namespace");
      for (const auto& [name, given] : arguments.names) space.names[name] = given;
      return &space;
    }
    if (function->name == "raise_exception") {
      check_positions(arguments, 1, "raise_exception");
      const Value* text = arguments.find(0, "message");
      meter_.refuse("the template refuses the chat: " +
                    quoted(text == nullptr ? "" : to_text(meter_, *text)));
    }
    meter_.refuse(quoted(std::string(function->name)) +
                  " is not supported: the text would depend on the day of the conversion");
  }

  void check_positions(const Arguments& arguments, size_t most, const char* name) {
    if (arguments.places.size() > most) {
      meter_.refuse(quoted(name) + " with so many arguments is not supported");
    }
  }

  Value range(const Arguments& arguments) {
    check_arguments(meter_, "\"range\"", arguments, 3);
    int64_t numbers[3] = {0, 0, 1};
    for (size_t i = 0; i < arguments.places.size(); ++i) {
      int64_t storage = 0;
      const int64_t* number = as_integer(arguments.places[i], storage);
      if (number == nullptr) {
        meter_.refuse("\"range\" expects integers, not " + kind_of(arguments.places[i]));
      }
      numbers[i] = *number;
    }
    if (arguments.places.size() == 1) std::swap(numbers[0], numbers[1]);
    const auto [begin, end, step] = numbers;
    if (arguments.places.empty() || step == 0) meter_.refuse("\"range\" lacks an end or a step");
    std::vector<Value> items;
    // Wide enough that the last step cannot overflow.
    for (__int128 i = begin; step > 0 ? i < end : i > end; i += step) {
      if (items.size() == kMaxRange) {
        meter_.refuse("\"range\" of more than " + std::to_string(kMaxRange) + " numbers");
      }
      items.push_back(static_cast<int64_t>(i));
    }
    return make_list(meter_, std::move(items));
  }

  Value call_macro(const Statement& macro, const Arguments& arguments) {
    const std::string what = "the macro " + quoted(macro.text);
    if (arguments.places.size() > macro.names.size()) {
      meter_.refuse(what + " expects " + std::to_string(macro.names.size()) + " arguments, not " +
                    std::to_string(arguments.places.size()));
    }
    for (const auto& [name, value] : arguments.names) {
      meter_.step(1 + macro.names.size());
      const auto place = std::find(macro.names.begin(), macro.names.end(), name);
      if (place == macro.names.end() ||
          static_cast<size_t>(place - macro.names.begin()) < arguments.places.size()) {
        meter_.refuse(what + " with the argument " + quoted(name) + " is not supported");
      }
    }
    Scope scope{{}, &root_};
    for (size_t i = 0; i < macro.names.size(); ++i) {
      meter_.step(1 + arguments.names.size());
      const std::string& name = macro.names[i];
      if (const Value* given = arguments.find(i, name.c_str())) {
        scope.names[name] = *given;
      } else if (macro.expressions[i] != nullptr) {
        Value value = evaluate(*macro.expressions[i], scope);
        scope.names[name] = std::move(value);
      } else {
        scope.names[name] = Undefined{name};
      }
    }
    std::string text;
    execute(macro.bodies[0], scope, text);
    return make_text(meter_, std::move(text));
  }

  Meter& meter_;
  int depth_ = 0;
  Scope root_;
  // What values point to; never moved.
  std::deque<Namespace> spaces_;
  std::deque<Loop> loops_;
};

}  // namespace

std::string run(const Body& body, std::map<std::string, Value> names, Meter& meter) {
  return Evaluator(std::move(names), meter).run(body);
}

}  // namespace oxbow::convert::jinja
