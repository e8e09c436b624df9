// The pages of the window, in the order of the rail.
#pragma once

#include <QString>
#include <vector>

namespace stacklab::ui {

class MainWindow;
class Page;

struct PageEntry {
  const char* id;     // name of its picture, and in layouts
  const char* title;  // to be translated
  const char* icon;
  const char* keys;
  int group;  // a line stands between groups; the last one is at the bottom
  Page* (*make)(MainWindow* window);
};
inline constexpr int bottom_group = 9;

const std::vector<PageEntry>& page_entries();

}  // namespace stacklab::ui
