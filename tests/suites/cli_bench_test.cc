// oxbow bench as a measuring tool on devices: what it says about the machine, its limits, and its marks
// in the kernel's trace. The machine is a folder of files that the test writes.

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/cli.h"
#include "tests/support/files.h"
#include "tests/support/tiny_checkpoint.h"

namespace oxbow::testing {
namespace {

using nlohmann::json;

class CliBench : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    directory_ = new TemporaryDirectory;
    TinyCheckpoint().write(*directory_ / "checkpoint");
    model_ = oxbow::testing::convert(*directory_ / "checkpoint", *directory_ / "model.oxb", {});
  }
  static void TearDownTestSuite() { delete directory_; }

  void SetUp() override { ::setenv("OXB_DEVICE_ROOT", machine_.path().c_str(), 1); }
  void TearDown() override { ::unsetenv("OXB_DEVICE_ROOT"); }

  /// A file of the machine, with the folders above it.
  void file(const std::string& name, const std::string& content) const {
    const std::filesystem::path path = machine_.path().string() + name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << content;
  }

  std::string text_of(const std::string& path) const {
    const std::vector<std::byte> bytes = read_bytes(path);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  static json bench(const Words& options) {
    Words words = {"bench", model_, "--json"};
    words.insert(words.end(), options.begin(), options.end());
    const CommandResult result = oxbow(words);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return json::parse(result.out);
  }

  static inline TemporaryDirectory* directory_ = nullptr;
  static inline std::string model_;
  TemporaryDirectory machine_;
};

// ---- The device ---------------------------------------------------------------------------------

TEST_F(CliBench, ABoardTellsItsModelCoresHeatAndBattery) {
  file("/proc/device-tree/model", std::string("Example Board 4\0", 16));
  file("/proc/cpuinfo", "processor\t: 0\nmodel name\t: Example Core rev 1\n");
  file("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "schedutil\n");
  file("/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "1800000\n");
  file("/sys/devices/system/cpu/cpu4/cpufreq/cpuinfo_max_freq", "2800000\n");
  file("/sys/class/thermal/thermal_zone10/temp", "41500\n");
  file("/sys/class/thermal/thermal_zone9/temp", "-500\n");
  file("/sys/class/thermal/thermal_zone9/type", "outside\n");
  file("/sys/class/thermal/cooling_device0/type", "fan\n");
  file("/sys/class/power_supply/battery/type", "Battery\n");
  file("/sys/class/power_supply/battery/status", "Discharging\n");
  file("/sys/class/power_supply/battery/current_now", "-350000\n");
  file("/sys/class/power_supply/battery/voltage_now", "3900000\n");
  file("/sys/class/power_supply/battery/temp", "305\n");
  file("/sys/class/power_supply/usb/type", "USB\n");
  file("/proc/self/status", "Name:\toxbow\nVmPeak:\t 9 kB\nVmHWM:\t    1234 kB\n");

  const json report = bench({"--decode", "3"});
  EXPECT_EQ(report["device"]["model"], "Example Board 4");
  EXPECT_EQ(report["device"]["cpu"], "Example Core rev 1");
  utsname system = {};
  ASSERT_EQ(::uname(&system), 0);
  EXPECT_EQ(report["device"]["kernel"], std::string(system.sysname) + " " + system.release);
  EXPECT_EQ(report["peak_memory"], 1234 * 1024);
  for (const char* when : {"before", "after"}) {
    const json& state = report[when];
    ASSERT_EQ(state["cores"].size(), 2u);
    EXPECT_EQ(state["cores"][0], json({{"core", 0}, {"governor", "schedutil"}, {"khz", 1800000}}));
    EXPECT_EQ(state["cores"][1], json({{"core", 4}, {"max_khz", 2800000}}));
    ASSERT_EQ(state["temperatures"].size(), 2u);
    EXPECT_EQ(state["temperatures"][0]["zone"], "thermal_zone9");
    EXPECT_EQ(state["temperatures"][0]["type"], "outside");
    EXPECT_DOUBLE_EQ(state["temperatures"][0]["celsius"], -0.5);
    EXPECT_DOUBLE_EQ(state["temperatures"][1]["celsius"], 41.5);
    ASSERT_EQ(state["batteries"].size(), 1u);
    EXPECT_EQ(state["batteries"][0]["status"], "Discharging");
    EXPECT_EQ(state["batteries"][0]["current_microamperes"], -350000);
    EXPECT_EQ(state["batteries"][0]["voltage_microvolts"], 3900000);
    EXPECT_DOUBLE_EQ(state["batteries"][0]["celsius"], 30.5);
    EXPECT_FALSE(state["batteries"][0].contains("percent"));
  }
  const CommandResult text = oxbow({"bench", model_, "--decode", "3"});
  EXPECT_NE(text.out.find("Example Board 4, Example Core rev 1, "), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("41.5 degrees"), std::string::npos) << text.out;
}

TEST_F(CliBench, SeveralBackendsAreMeasuredOneAfterTheOther) {
  for (const Words& words :
       {Words{"--backend", "reference,cpu"}, Words{"--backend=reference,cpu"}}) {
    Words all = {"bench", model_, "--decode", "2"};
    all.insert(all.end(), words.begin(), words.end());
    const CommandResult result = oxbow(all);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    const size_t first = result.out.find("backend reference,"),
                 second = result.out.find("backend cpu,");
    EXPECT_LT(first, second) << result.out;
    EXPECT_NE(second, std::string::npos) << result.out;
  }
  EXPECT_EQ(oxbow({"bench", model_, "--backend", "cpu,", "--decode", "1"}).exit_code, 2);
  EXPECT_EQ(oxbow({"bench", model_, "--threads", "1,x", "--decode", "1"}).exit_code, 2);
}

TEST_F(CliBench, ModelsBackendsAndThreadsStandSideBySide) {
  const std::string other = (*directory_ / "other.oxb").string(),
                    page = (*directory_ / "several.html").string();
  std::filesystem::copy_file(model_, other, std::filesystem::copy_options::overwrite_existing);
  const Words words = {"bench", model_,      other, "--threads", "1,2", "--decode",
                       "3",     "--prefill", "4",   "--html",    page,  "--backend=cpu"};
  Words as_json = words, as_table = words;
  as_json.push_back("--json");
  const CommandResult result = oxbow(as_json);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const json all = json::parse(result.out);
  EXPECT_EQ(all["format"], 1);
  ASSERT_EQ(all["bench"].size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    const json& one = all["bench"][i];
    EXPECT_EQ(one["model"], i < 2 ? model_ : other);
    EXPECT_EQ(one["threads"], i % 2 + 1);
    EXPECT_EQ(one["backend"], "cpu");
    EXPECT_EQ(one["architecture"], all["bench"][0]["architecture"]);
    EXPECT_EQ(one["decode"]["tokens"], 3);
    EXPECT_NE(std::string(one["made"]["command"]).find("--threads 1,2"), std::string::npos);
  }
  EXPECT_NE(text_of(page).find("\"bench\":[{"), std::string::npos);

  as_table.push_back("--markdown");
  std::istringstream lines(oxbow(as_table).out);
  std::string line;
  std::vector<std::string> rows;
  while (std::getline(lines, line)) rows.push_back(line);
  ASSERT_EQ(rows.size(), 6u);
  const auto cells = [](const std::string& row) { return std::count(row.begin(), row.end(), '|'); };
  for (const std::string& row : rows) EXPECT_EQ(cells(row), cells(rows[0])) << row;
  EXPECT_TRUE(rows[2].starts_with("| model.oxb | cpu | 1 | ")) << rows[2];
  EXPECT_TRUE(rows[5].starts_with("| other.oxb | cpu | 2 | ")) << rows[5];

  // All are opened before the first is measured, and what is about one run is for one only.
  EXPECT_EQ(oxbow({"bench", model_, "/nonexistent.oxb", "--decode", "10000000"}).exit_code, 3);
  EXPECT_EQ(oxbow({"bench", model_, other, "--decode", "1", "--perfetto", page}).exit_code, 2);
  EXPECT_EQ(oxbow({"bench", model_, "--json", "--markdown"}).exit_code, 2);
  EXPECT_EQ(oxbow({"bench", model_, other, "--decode", "1", "--html", other}).exit_code, 2);
}

TEST_F(CliBench, APcTellsWhatItsFirmwareSays) {
  file("/sys/class/dmi/id/sys_vendor", "Maker\n");
  file("/sys/class/dmi/id/product_name", "  Machine 7  \n");
  EXPECT_EQ(bench({"--decode", "1"})["device"]["model"], "Maker Machine 7");
}

TEST_F(CliBench, WhatTheKernelDoesNotTellIsLeftOut) {
  const json report = bench({"--decode", "1"});
  for (const char* key : {"model", "cpu", "soc", "android_version"}) {
    EXPECT_FALSE(report["device"].contains(key)) << key;
  }
  EXPECT_TRUE(report["device"].contains("kernel"));
  for (const char* when : {"before", "after"}) EXPECT_EQ(report[when], json::object());
  for (const char* key : {"peak_memory", "energy", "cpu_mask"}) {
    EXPECT_FALSE(report.contains(key)) << key;
  }
  EXPECT_EQ(report["decode"]["tokens"], 1);
  EXPECT_EQ(oxbow({"bench", model_, "--decode", "1"}).exit_code, 0);
}

TEST_F(CliBench, HostileFilesOfTheKernelAreHarmless) {
  const std::string huge(3 << 20, 'x');
  std::string binary;
  for (int i = 255; i >= 0; --i) binary += static_cast<char>(i);
  file("/proc/device-tree/model", binary);
  file("/proc/cpuinfo", "model name\nmodel name" + huge + ": a\nmodel name : " + huge);
  file("/proc/self/status", "VmHWM:\t99999999999999999999 kB\n");
  file("/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", huge);
  file("/sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq", "18e5\n");
  file("/sys/devices/system/cpu/cpu2/cpufreq/scaling_cur_freq", "");
  file("/sys/devices/system/cpu/cpu3/cpufreq/scaling_governor", huge);
  file("/sys/class/thermal/thermal_zone0/temp", "99999999999999999999\n");
  file("/sys/class/thermal/thermal_zone1/temp", binary);
  file("/sys/class/thermal/thermal_zone2/type", binary);
  file("/sys/class/thermal/thermal_zone2/temp", "1000\n");
  file("/sys/class/thermal/thermal_zone\xff/temp", "1000\n");
  file("/sys/class/power_supply/a/type", "Battery" + huge);
  file("/sys/class/power_supply/b/type", "Battery");
  file("/sys/class/power_supply/b/capacity", "0x10");
  file("/sys/class/powercap/intel-rapl:0/energy_uj", "-1\n");
  // Folders and pipes in the place of files.
  file("/sys/class/power_supply/c/type/file", "Battery");
  std::filesystem::create_directories(machine_ / "sys/class/power_supply/d");
  ASSERT_EQ(::mkfifo((machine_ / "sys/class/power_supply/d/type").c_str(), 0600), 0);
  // More zones than anybody has.
  for (int i = 3; i < 400; ++i) {
    file("/sys/class/thermal/thermal_zone" + std::to_string(i) + "/temp", "20000");
  }

  const json report = bench({"--decode", "1"});
  // Up to the byte before the end of the line, which none of the printable ones is.
  const std::string model = report["device"]["model"];
  EXPECT_EQ(model.size(), 128u);
  EXPECT_EQ(model.find_first_not_of('?'), std::string::npos);
  EXPECT_FALSE(report["device"].contains("cpu"));
  EXPECT_FALSE(report.contains("peak_memory"));
  EXPECT_FALSE(report.contains("energy"));
  const json& state = report["before"];
  ASSERT_EQ(state["cores"].size(), 1u);
  EXPECT_EQ(state["cores"][0]["governor"], std::string(128, 'x'));
  EXPECT_GT(state["temperatures"].size(), 200u);
  EXPECT_LE(state["temperatures"].size(), 256u);
  for (const json& zone : state["temperatures"]) {
    EXPECT_NE(zone["zone"], "thermal_zone0");
    EXPECT_NE(zone["zone"], "thermal_zone1");
  }
  EXPECT_EQ(state["batteries"], json::array({json{{"name", "b"}}}));
}

TEST_F(CliBench, EnergyIsWhatTheCountersCounted) {
  const auto counter = [&](const char* zone, const char* energy) {
    file(std::string("/sys/class/powercap/") + zone + "/energy_uj", energy);
  };
  file("/sys/class/powercap/intel-rapl:0/name", "package-0\n");
  counter("intel-rapl:0", "1000000\n");
  counter("intel-rapl:0:0", "5\n");
  // This one begins anew, and so does the last, of which nobody knows where.
  counter("intel-rapl:1", "9000000\n");
  file("/sys/class/powercap/intel-rapl:1/max_energy_range_uj", "10000000\n");
  counter("intel-rapl:2", "7\n");
  file("/sys/kernel/tracing/trace_marker", "");
  // The first mark tells that the counters were read and measuring has begun.
  std::thread kernel([&] {
    while (std::filesystem::file_size(machine_ / "sys/kernel/tracing/trace_marker") == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    counter("intel-rapl:0", "3500000\n");
    counter("intel-rapl:1", "250000\n");
    counter("intel-rapl:2", "6\n");
  });
  const json report =
      bench({"--decode", "10000000", "--warmup", "3", "--max-seconds", "1", "--trace"});
  kernel.join();
  EXPECT_EQ(report["energy"], json::array({json{{"name", "package-0"}, {"joules", 2.5}},
                                           json{{"name", "intel-rapl:1"}, {"joules", 1.25}},
                                           json{{"name", "intel-rapl:0:0"}, {"joules", 0.0}}}));
  EXPECT_GE(report["tokens_fed"], 4);
  EXPECT_GE(report["seconds"], 1.0);
}

// ---- Limits -------------------------------------------------------------------------------------

TEST_F(CliBench, WarmUpAndRepeatAreCounted) {
  json report = bench({"--prefill", "10", "--repeat", "3", "--warmup", "2"});
  EXPECT_EQ(report["prefill"]["runs"], 3);
  EXPECT_EQ(report["tokens_fed"], 50);
  EXPECT_FALSE(report["prefill"]["stopped_early"]);
  report = bench({"--prefill", "10", "--repeat", "3", "--warmup", "0"});
  EXPECT_EQ(report["tokens_fed"], 30);
  const uint64_t none = bench({"--decode", "7", "--warmup", "0"})["tokens_fed"];
  const uint64_t usual = bench({"--decode", "7"})["tokens_fed"];
  const uint64_t many = bench({"--decode", "7", "--warmup", "100"})["tokens_fed"];
  EXPECT_EQ(usual, none + 16);
  EXPECT_EQ(many, none + 100);
}

TEST_F(CliBench, TheTimeEndsEachMeasurement) {
  const json report = bench({"--prefill", "10000", "--repeat", "1000", "--decode", "10000000",
                             "--stream", "1000000000000", "--max-seconds", "0.05"});
  EXPECT_TRUE(report["prefill"]["stopped_early"]);
  EXPECT_LT(report["prefill"]["runs"], 1000);
  EXPECT_TRUE(report["decode"]["stopped_early"]);
  EXPECT_GT(report["decode"]["tokens"], 0);
  EXPECT_LT(report["decode"]["tokens"], 10000000);
  EXPECT_EQ(report["decode"]["tokens"], report["decode"]["runs"]);
  EXPECT_TRUE(report["stream"]["stopped_early"]);
  uint64_t tokens = 0;
  for (const json& block : report["stream"]["blocks"]) tokens += uint64_t{block["tokens"]};
  EXPECT_EQ(report["stream"]["tokens"], tokens);
  EXPECT_GT(tokens, 0u);
  EXPECT_LT(tokens, 1000000000000u);
}

TEST_F(CliBench, NoTimeIsOneRunOfEach) {
  const json report =
      bench({"--prefill", "10", "--decode", "10", "--stream", "500", "--max-seconds", "0"});
  EXPECT_EQ(report["prefill"]["runs"], 1);
  EXPECT_EQ(report["decode"]["tokens"], 1);
  EXPECT_FALSE(report["decode"]["memories_full"]);
  EXPECT_EQ(report["stream"]["tokens"], 1);
  EXPECT_FALSE(report["stream"]["memories_full"]);
  const json whole = bench({"--decode", "10", "--stream", "500"});
  EXPECT_TRUE(whole["decode"]["memories_full"]);
  EXPECT_FALSE(whole["decode"]["stopped_early"]);
  EXPECT_EQ(whole["stream"]["tokens"], 500);
  EXPECT_FALSE(whole["stream"]["stopped_early"]);
}

TEST_F(CliBench, CoresAreChosenAndReported) {
  cpu_set_t cores;
  ASSERT_EQ(::sched_getaffinity(0, sizeof(cores), &cores), 0);
  int core = 0;
  while (core < 64 && !CPU_ISSET(core, &cores)) ++core;
  ASSERT_LT(core, 64);
  std::ostringstream mask;
  mask << std::hex << (uint64_t{1} << core);
  EXPECT_EQ(bench({"--decode", "2", "--threads", "2", "--cpu-mask", mask.str()})["cpu_mask"],
            mask.str());
  const CommandResult text = oxbow({"bench", model_, "--decode", "2", "--cpu-mask", mask.str()});
  EXPECT_NE(text.out.find(", cores " + mask.str() + "\n"), std::string::npos) << text.out;
}

// ---- Profile and trace --------------------------------------------------------------------------

TEST_F(CliBench, TheProfileIsATableToo) {
  const std::string table = (*directory_ / "steps.csv").string();
  const json report = bench({"--decode", "2", "--profile-csv", table});
  std::istringstream lines(text_of(table));
  std::string line;
  ASSERT_TRUE(std::getline(lines, line));
  EXPECT_EQ(line, "step,op,output,prefill_seconds,decode_seconds");
  size_t count = 0;
  while (std::getline(lines, line)) {
    const json& step = report["profile"]["steps"].at(count);
    EXPECT_TRUE(line.starts_with(std::to_string(count) + ",\"" + std::string(step["op"]) + "\",\"" +
                                 std::string(step["output"]) + "\","))
        << line;
    ++count;
  }
  EXPECT_EQ(count, report["profile"]["steps"].size());
  EXPECT_GT(count, 4u);
  EXPECT_EQ(oxbow({"bench", model_, "--decode", "1", "--profile-csv", model_}).exit_code, 2);
}

TEST_F(CliBench, TheRooflineHoldsStepsAgainstTheMachine) {
  const std::string floats = oxbow::testing::convert(
      *directory_ / "checkpoint", *directory_ / "floats.oxb", {"--weights", "f32"});
  for (const std::string& model : {model_, floats}) {
    const CommandResult result = oxbow({"bench", model, "--prefill", "24", "--decode", "2",
                                        "--roofline", "--threads", "2", "--json"});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const json report = json::parse(result.out);
    EXPECT_FALSE(report.contains("profile")) << "not asked for";
    const json &roofline = report["roofline"], &limits = roofline["limits"];
    EXPECT_EQ(limits["threads"], 2);
    EXPECT_GT(limits["read_bytes_per_second"], 0.0);
    EXPECT_GE(limits["block_bytes"], 1 << 16);
    EXPECT_LE(limits["block_bytes"], 128 << 20);
    const bool known = limits["instructions"] != "none";
    for (const char* rate : {"int8_macs_per_second", "float_macs_per_second"}) {
      EXPECT_EQ(limits.value(rate, 0.0) > 0.0, known) << rate;
    }

    // The graph tells the products of each step of a token.
    const json inspected = json::parse(oxbow({"inspect", model, "--json"}).out);
    const json& graph = inspected["entry_points"][0]["steps"];
    uint64_t decoded = 0, all = 0;
    for (const json& step : graph) all += uint64_t{step["macs_per_token"]};
    for (const auto& [way, tokens] : {std::pair("prefill", 24), {"decode", 1}}) {
      const json& run = roofline[way];
      EXPECT_EQ(run["tokens"], tokens);
      double last = 1e30, sum = 0.0, judged = 0.0, least = 0.0;
      size_t matrices = 0;
      for (const json& step : run["steps"]) {
        const json& told = graph.at(size_t{step["step"]});
        const double seconds = step["seconds"];
        EXPECT_EQ(step["op"], told["op"]);
        EXPECT_EQ(step["output"], told["outputs"][0]);
        EXPECT_GT(seconds, 0.0);
        EXPECT_LE(seconds, last) << "the slowest first";
        last = seconds;
        sum += seconds;
        const bool attention = told["category"] == "attention";
        EXPECT_FALSE(attention && tokens > 1 && step.contains("macs")) << "of empty memories";
        if (!step.contains("macs")) continue;
        EXPECT_GT(uint64_t{told["macs_per_token"]}, 0u) << step;
        if (tokens == 1) decoded += uint64_t{step["macs"]};
        // The logits are of one row, whatever the prompt.
        const double once = told["macs_per_token"], macs = step["macs"];
        EXPECT_TRUE(macs == once * tokens || macs == once) << step;
        EXPECT_DOUBLE_EQ(step["macs_per_second"], macs / seconds);
        EXPECT_DOUBLE_EQ(step["bytes_per_second"], double{step["bytes"]} / seconds);
        EXPECT_GT(step["bytes"], 0.0) << step;
        if (told["category"] == "matrix") {
          ++matrices;
          EXPECT_EQ(step["products"], model == floats ? "float" : "int8") << step;
        }
        EXPECT_EQ(step.contains("of_limit"), known);
        if (!known) continue;
        const double multiply =
                         macs / double{limits[std::string(step["products"]) + "_macs_per_second"]},
                     read = double{step["bytes"]} / double{limits["read_bytes_per_second"]};
        EXPECT_DOUBLE_EQ(step["least_seconds"], std::max(multiply, read));
        EXPECT_DOUBLE_EQ(step["of_limit"], std::max(multiply, read) / seconds);
        EXPECT_EQ(step["limited_by"], read > multiply ? "reading" : "products");
        EXPECT_GT(step["of_limit"], 0.0);
        judged += seconds;
        least += std::max(multiply, read);
      }
      EXPECT_GT(matrices, 4u) << way;
      EXPECT_NEAR(run["seconds"], sum, 1e-9);
      EXPECT_NEAR(run["judged_seconds"], judged, 1e-9);
      EXPECT_NEAR(run["least_seconds"], least, 1e-9);
    }
    EXPECT_GT(decoded, all / 2) << "most products of a token are held against the machine";
    EXPECT_LE(decoded, all);
  }
}

TEST_F(CliBench, TheRooflineIsATable) {
  const CommandResult result = oxbow({"bench", model_, "--decode", "2", "--roofline"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  for (const char* part : {"roofline         1 thread tried for ", "GB/s", "of the limit",
                           " Linear ", "prefill of 128", "decode, per token", "  at the limit"}) {
    EXPECT_NE(result.out.find(part), std::string::npos) << part << "\n" << result.out;
  }
}

/// Sections of a trace in the order they began, each with its depth; fails when they do not nest.
std::vector<std::pair<int, std::string>> sections(const std::string& trace) {
  std::vector<std::pair<int, std::string>> out;
  std::istringstream lines(trace);
  std::string line, process;
  int depth = 0;
  while (std::getline(lines, line)) {
    const size_t bar = line.find('|', 2);
    const std::string pid = line.substr(2, bar - 2);
    if (process.empty()) process = pid;
    EXPECT_EQ(pid, process);
    if (line.starts_with("B|")) {
      out.emplace_back(depth++, line.substr(bar + 1));
    } else {
      EXPECT_EQ(line, "E|" + pid);
      EXPECT_GE(--depth, 0);
    }
  }
  EXPECT_EQ(depth, 0);
  return out;
}

TEST_F(CliBench, EveryStepIsMarkedInTheTrace) {
  for (const char* folder : {"/sys/kernel/debug/tracing", "/sys/kernel/tracing"}) {
    const std::string marker = std::string(folder) + "/trace_marker";
    file(marker, "");
    const json report =
        bench({"--stream", "2000", "--warmup", "0", "--max-seconds", "60", "--trace", "--profile"});
    const auto marked = sections(text_of(machine_.path().string() + marker));
    const json& steps = report["profile"]["steps"];
    uint64_t runs = 0;
    size_t step = steps.size();
    for (const auto& [depth, name] : marked) {
      if (depth == 0) {
        EXPECT_EQ(name, "step");
        ASSERT_EQ(step, steps.size());
        step = 0;
        ++runs;
      } else {
        ASSERT_LT(step, steps.size());
        ASSERT_EQ(depth, 1);
        ASSERT_EQ(name, std::string(steps[step]["op"]) + " " + std::string(steps[step]["output"]));
        ++step;
      }
    }
    EXPECT_EQ(step, steps.size());
    EXPECT_GT(runs, 2000u);
    EXPECT_EQ(report["stream"].value("heap_growth", 0), 0) << "marking takes memory";
  }
}

TEST_F(CliBench, StepsOfAFewRunsAreWrittenForPerfetto) {
  const std::string path = (*directory_ / "trace.json").string();
  const json report = bench({"--prefill", "4", "--decode", "2", "--profile", "--perfetto", path});
  const json trace = json::parse(text_of(path));
  const size_t steps = report["profile"]["steps"].size();
  size_t runs = 0, step = steps;
  double run_start = 0.0, run_end = 0.0, last = 0.0;
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] == "M") {
      EXPECT_FALSE(std::string(event["args"]["name"]).empty());
      continue;
    }
    ASSERT_EQ(event["ph"], "X");
    const double start = event["ts"], end = start + double{event["dur"]};
    if (event["cat"] == "run") {
      EXPECT_EQ(step, steps) << "a run without all of its steps";
      EXPECT_GE(start, run_end);
      run_start = last = start;
      run_end = end;
      step = 0;
      ++runs;
    } else {
      // Steps lie within their run, one behind the other; clocks are rounded to nanoseconds.
      EXPECT_GE(start, last - 1.0);
      EXPECT_GE(start, run_start);
      EXPECT_LE(end, run_end + 0.01);
      EXPECT_EQ(event["args"]["step"], step);
      EXPECT_EQ(event["name"], report["profile"]["steps"].at(step)["op"]);
      EXPECT_EQ(event["args"]["output"], report["profile"]["steps"].at(step)["output"]);
      last = end;
      ++step;
    }
  }
  EXPECT_EQ(step, steps);
  EXPECT_GE(runs, 17u);
  EXPECT_EQ(oxbow({"bench", model_, "--decode", "1", "--perfetto", model_}).exit_code, 2);
}

TEST_F(CliBench, NothingIsMarkedUnlessAskedFor) {
  file("/sys/kernel/tracing/trace_marker", "");
  bench({"--decode", "2"});
  EXPECT_EQ(text_of(machine_ / "sys/kernel/tracing/trace_marker"), "");
}

TEST_F(CliBench, ATraceThatCannotBeWrittenIsSaid) {
  const CommandResult result = oxbow({"bench", model_, "--decode", "2", "--trace"});
  EXPECT_EQ(result.exit_code, 3);
  expect_one_line(result, "/sys/kernel/tracing/trace_marker: No such file");
}

}  // namespace
}  // namespace oxbow::testing
