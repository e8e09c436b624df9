// Each rule on small invented trees: it passes what is right, and names the file and line of what is wrong.
#include "tests/arch/house_rules.h"

#include <gtest/gtest.h>

#include <fstream>

namespace stacklab::arch {
namespace {

std::string engine_list() {
  std::string text = "set(STACKLAB_ENGINE_ROOMS";
  for (const std::string& room : engine_rooms()) text += " " + room;
  return text + ")\n";
}

// A file whose only line includes `what`.
Tree including(const std::string& file, const std::string& what) { return {{file, "#include \"" + what + "\"\n"}}; }

TEST(HouseRules, LayersIncludeDownwardsOnly) {
  EXPECT_TRUE(check_include_order(including("engine/base/a.cpp", "kernels/ops.h")).empty());
  EXPECT_TRUE(check_include_order(including("ui/shell/a.cpp", "engine/service/job_service.h")).empty());
  EXPECT_TRUE(check_include_order(including("app/workbench/main.cpp", "ui/shell/main_window.h")).empty());
  EXPECT_TRUE(check_include_order(including("tests/engine/a.cpp", "ui/shell/main_window.h")).empty());
  for (const auto& [from, to] :
       std::vector<std::pair<std::string, std::string>>{{"kernels/ops.h", "engine/base/result.h"},
                                                        {"engine/service/a.cpp", "ui/plots/curve.h"},
                                                        {"engine/train/a.cpp", "app/cli/commands.h"},
                                                        {"ui/shell/a.cpp", "app/workbench/main.h"},
                                                        {"kernels/cpu/gemm.cpp", "ui/plots/curve.h"}}) {
    EXPECT_EQ(check_include_order(including(from, to)).size(), 1u) << from << " -> " << to;
  }
}

TEST(HouseRules, RoomsOfTheEngineIncludeRoomsBeforeThemOnly) {
  for (std::size_t from = 0; from < engine_rooms().size(); ++from) {
    for (std::size_t to = 0; to < engine_rooms().size(); ++to) {
      const Tree tree = including("engine/" + engine_rooms()[from] + "/a.cpp", "engine/" + engine_rooms()[to] + "/b.h");
      EXPECT_EQ(check_include_order(tree).empty(), to <= from) << engine_rooms()[from] << " -> " << engine_rooms()[to];
    }
  }
  EXPECT_FALSE(check_include_order({{"engine/attic/a.cpp", ""}}).empty());
  EXPECT_FALSE(check_include_order(including("engine/service/a.cpp", "engine/attic/b.h")).empty());
}

TEST(HouseRules, TheWindowSeesTheEngineThroughItsDoors) {
  for (const std::string& room : engine_rooms()) {
    const bool door = room == "service" || room == "run" || room == "config" || room == "base";
    EXPECT_EQ(check_include_order(including("ui/models/a.cpp", "engine/" + room + "/b.h")).empty(), door) << room;
    EXPECT_EQ(check_include_order(including("app/cli/main.cpp", "engine/" + room + "/b.h")).empty(), door) << room;
    EXPECT_FALSE(check_include_order(including("ui/plots/a.cpp", "engine/" + room + "/b.h")).empty()) << room;
  }
}

TEST(HouseRules, RoomsOfTheWindowHaveAnOrder) {
  EXPECT_TRUE(check_include_order(including("ui/pages/monitor/a.cpp", "ui/plots/b.h")).empty());
  EXPECT_TRUE(check_include_order(including("ui/pages/monitor/a.cpp", "ui/pages/monitor/b.h")).empty());
  EXPECT_FALSE(check_include_order(including("ui/plots/a.cpp", "ui/pages/monitor/b.h")).empty());
  EXPECT_FALSE(check_include_order(including("ui/pages/monitor/a.cpp", "ui/shell/b.h")).empty());
  EXPECT_FALSE(check_include_order(including("ui/pages/monitor/a.cpp", "ui/pages/chat/b.h")).empty());
  EXPECT_FALSE(check_include_order(including("app/cli/a.cpp", "ui/plots/b.h")).empty());
  EXPECT_FALSE(check_include_order(including("app/cli/a.cpp", "app/workbench/b.h")).empty());
  EXPECT_FALSE(check_include_order(including("engine/base/a.cpp", "tests/arch/house_rules.h")).empty());
}

TEST(HouseRules, ViolationsNameFileAndLine) {
  const Violations found =
      check_include_order({{"kernels/ops.h", "#pragma once\n\n  #  include <engine/base/result.h>\n"}});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].file, "kernels/ops.h");
  EXPECT_EQ(found[0].line, 3);
  EXPECT_EQ(to_string(found).rfind("kernels/ops.h:3: includes engine/base/result.h", 0), 0u);
}

TEST(HouseRules, QtIsForTheWindow) {
  for (const std::string header : {"QString", "QtCore/QString", "QtWidgets", "qglobal.h"}) {
    for (const std::string file : {"kernels/a.h", "engine/store/a.cpp", "app/cli/main.cpp"}) {
      EXPECT_EQ(check_qt({{file, "#include <" + header + ">\n"}}).size(), 1u) << file << " " << header;
    }
  }
  EXPECT_TRUE(check_qt({{"ui/shell/a.cpp", "#include <QString>\n#include <QtMath>\n"},
                        {"app/workbench/main.cpp", "#include <QApplication>\n"}})
                  .empty());
  EXPECT_TRUE(check_qt({{"engine/base/a.cpp", "#include <queue>\n#include \"engine/base/quantise.h\"\n"}}).empty());
  EXPECT_EQ(check_qt({{"ui/shell/a.cpp", "#include <QtWidgets>\n#include <QtCharts/QtCharts>\n"}}).size(), 2u);
  EXPECT_EQ(check_qt({{"engine/store/CMakeLists.txt", "# Qt6 is for ui\nfind_package(Qt6 REQUIRED)\n"}}).size(), 1u);
  EXPECT_TRUE(check_qt({{"ui/CMakeLists.txt", "find_package(Qt6 REQUIRED COMPONENTS Widgets)\n"}}).empty());
}

TEST(HouseRules, HeavyHeadersAreForSourceFiles) {
  for (const std::string header : {"nlohmann/json.hpp", "spdlog/spdlog.h", "CLI/CLI.hpp"}) {
    EXPECT_EQ(check_heavy_headers({{"engine/config/a.h", "#include <" + header + ">\n"}}).size(), 1u) << header;
    EXPECT_TRUE(check_heavy_headers({{"engine/config/a.cpp", "#include <" + header + ">\n"}}).empty()) << header;
  }
  EXPECT_TRUE(check_heavy_headers({{"engine/config/a.h", "#include <nlohmann/json_fwd.hpp>\n#include <fmt/core.h>\n"}})
                  .empty());
  const std::string cli = "#include <CLI/CLI.hpp>\n";
  EXPECT_EQ(check_heavy_headers({{"app/cli/a.cpp", cli}, {"app/workbench/b.cpp", cli}}).size(), 1u);
}

TEST(HouseRules, IncludesNameFilesFromTheRoot) {
  const Tree tree = {{"engine/base/a.h", ""}, {"engine/base/version.h.in", ""}};
  const auto with = [&](const std::string& line) {
    Tree more = tree;
    more["engine/base/a.cpp"] = line + "\n";
    return check_include_paths(more);
  };
  EXPECT_TRUE(with("#include \"engine/base/a.h\"").empty());
  EXPECT_TRUE(with("#include \"engine/base/version.h\"").empty());
  EXPECT_TRUE(with("#include \"a.moc\"").empty());
  EXPECT_TRUE(with("#include \"moc_a.cpp\"").empty());
  EXPECT_TRUE(with("#include <vector>").empty());
  EXPECT_EQ(with("#include \"a.h\"").size(), 1u);
  EXPECT_EQ(with("#include \"../base/a.h\"").size(), 1u);
}

TEST(HouseRules, LinksFollowTheSameOrder) {
  const auto list = [](const std::string& depends) {
    return "stacklab_room(data SOURCES a.cpp DEPENDS " + depends + ")\n";
  };
  EXPECT_TRUE(check_links({{"engine/data/CMakeLists.txt", list("stacklab::base stacklab::kernels")}}).empty());
  EXPECT_EQ(check_links({{"engine/data/CMakeLists.txt", list("stacklab::train")}}).size(), 1u);
  EXPECT_EQ(check_links({{"engine/data/CMakeLists.txt", list("stacklab_store")}}).size(), 1u);
  EXPECT_TRUE(check_links({{"engine/data/CMakeLists.txt", list("base # not stacklab::train")}}).empty());
  EXPECT_EQ(
      check_links({{"kernels/CMakeLists.txt", "target_link_libraries(stacklab_kernels stacklab::base)\n"}}).size(), 1u);
  EXPECT_EQ(check_links({{"ui/models/CMakeLists.txt", "target_link_libraries(m stacklab::store)\n"}}).size(), 1u);
  EXPECT_TRUE(check_links({{"ui/models/CMakeLists.txt", "target_link_libraries(m stacklab::service)\n"}}).empty());
  EXPECT_TRUE(check_links({{"ui/CMakeLists.txt", "function(stacklab_ui_room)\nlink(m stacklab_ui_theme)\n"}}).empty());
  EXPECT_EQ(
      check_links({{"ui/plots/CMakeLists.txt", "stacklab_ui_room(ui_plots DEPENDS stacklab::ui_models)\n"}}).size(),
      1u);
  EXPECT_TRUE(
      check_links({{"ui/plots/CMakeLists.txt", "stacklab_ui_room(ui_plots DEPENDS stacklab::ui_theme)\n"}}).empty());
  EXPECT_EQ(check_links({{"app/cli/CMakeLists.txt", "target_link_libraries(stacklab stacklab::ui_shell)\n"}}).size(),
            1u);
}

TEST(HouseRules, WhatIsIncludedIsLinked) {
  Tree tree = {{"engine/base/CMakeLists.txt", "stacklab_room(base SOURCES a.cpp)\n"},
               {"engine/config/CMakeLists.txt", "stacklab_room(config SOURCES a.cpp DEPENDS stacklab::base)\n"},
               {"engine/data/CMakeLists.txt", "stacklab_room(data SOURCES a.cpp DEPENDS stacklab::config)\n"},
               {"engine/data/a.cpp", "#include \"engine/base/a.h\"\n"}};
  EXPECT_TRUE(check_links(tree).empty()) << "through config";
  tree["engine/data/CMakeLists.txt"] = "stacklab_room(data SOURCES a.cpp)\n";
  EXPECT_EQ(check_links(tree).size(), 1u);
}

TEST(HouseRules, TheListOfRoomsHasTheirOrder) {
  EXPECT_TRUE(check_links({{"engine/CMakeLists.txt", engine_list()}}).empty());
  EXPECT_EQ(check_links({{"engine/CMakeLists.txt", "set(STACKLAB_ENGINE_ROOMS tensor base)\n"}}).size(), 1u);
}

TEST(HouseRules, TopLevelNamesAreFixed) {
  EXPECT_TRUE(check_top_level({{"README.md", ""}, {"engine/base/a.h", ""}, {".ci/run", ""}}).empty());
  EXPECT_EQ(check_top_level({{"scripts/a.sh", ""}, {"notes.txt", ""}}).size(), 2u);
}

TEST(HouseRules, LongFilesAreNamed) {
  const auto lines = [](int n) {
    std::string text;
    for (int i = 0; i < n; ++i) text += "\n";
    return text;
  };
  EXPECT_TRUE(check_file_length({{"engine/base/a.cpp", lines(most_lines)}}).empty());
  EXPECT_EQ(check_file_length({{"engine/base/a.cpp", lines(most_lines + 1)}}).size(), 1u);
  EXPECT_TRUE(check_file_length({{"resources/hardware.json", lines(most_lines + 1)}}).empty());
}

TEST(HouseRules, NotesToSelfAreNamed) {
  const std::string note =
      "// TO"
      "DO: later\n";
  EXPECT_EQ(check_leftovers({{"engine/base/a.cpp", "int a;\n" + note}}).size(), 1u);
  EXPECT_TRUE(check_leftovers({{"engine/base/a.cpp",
                                "int TO"
                                "DOs;\n"}})
                  .empty());
}

TEST(HouseRules, HeadersAreGuarded) {
  EXPECT_EQ(check_header_guards({{"engine/base/a.h", "int a;\n"}}).size(), 1u);
  EXPECT_TRUE(check_header_guards({{"kernels/cpu/a-inl.h", "#if defined(A) == defined(HWY_TARGET_TOGGLE)\n"}}).empty());
  EXPECT_EQ(check_header_guards({{"kernels/cpu/a.h", "#if defined(A) == defined(HWY_TARGET_TOGGLE)\n"}}).size(), 1u);
  EXPECT_TRUE(check_header_guards({{"engine/base/a.h", "#pragma once\n"}, {"engine/base/a.cpp", ""}}).empty());
}

TEST(HouseRules, TheReadmeTellsOfEveryRoomInOrder) {
  Tree tree = {{"engine/base/CMakeLists.txt", ""}, {"engine/data/CMakeLists.txt", ""}};
  EXPECT_EQ(check_readme(tree).size(), 1u);
  tree["README.md"] = "| `engine/base/` | a |\n| `engine/data/` | b |\n";
  EXPECT_TRUE(check_readme(tree).empty());
  tree["README.md"] = "| `engine/data/` | b |\n| `engine/base/` | a |\n";
  EXPECT_EQ(check_readme(tree).size(), 1u);
  tree["README.md"] = "| `engine/data/` | b |\n";
  EXPECT_EQ(check_readme(tree).size(), 1u);
}

// Outside of git, build folders and dot folders are left out; odd names are no trouble.
TEST(HouseRules, ATreeWithoutGitIsRead) {
  namespace fs = std::filesystem;
  const fs::path root = fs::temp_directory_path() / ("stacklab arch's " + std::to_string(::getpid()));
  for (const char* name : {"engine/base/a.h", "build/x/b.h", ".idea/c.h", ".ci/run"}) {
    fs::create_directories((root / name).parent_path());
    std::ofstream(root / name) << "text\n";
  }
  std::ofstream(root / "picture.png", std::ios::binary) << std::string("a\0b", 3);
  const Tree tree = read_tree(root);
  fs::remove_all(root);
  EXPECT_EQ(tree, (Tree{{"engine/base/a.h", "text\n"}, {".ci/run", "text\n"}, {"picture.png", ""}}));
}

}  // namespace
}  // namespace stacklab::arch
