// Views of the runs: which runs, which columns, in which order and groups. The last one and those with a name are kept
// in the workspace.
#pragma once

#include <QHash>
#include <QJsonObject>
#include <QString>
#include <QStringList>
#include <vector>

namespace stacklab::ui {

struct RunsViewState {
  QString filter;
  QStringList columns;
  QHash<QString, int> widths;  // of columns that are not as wide as at first
  QString sort = QStringLiteral("number");
  bool descending = true;
  QString group;  // key; empty: none

  QJsonObject to_json() const;
  static RunsViewState from_json(const QJsonObject& from);
  bool same_list(const RunsViewState& other) const;  // widths do not matter
};

struct SavedViews {
  static constexpr int version = 1;
  static constexpr const char* file_name = "run-views.json";

  RunsViewState last;
  std::vector<std::pair<QString, RunsViewState>> named;
  QJsonObject marks;  // what the person has pinned, hidden and taken as baseline: ids

  QByteArray to_bytes() const;
  // What cannot be read is nothing: the defaults.
  static SavedViews from_bytes(const QByteArray& bytes);
};

}  // namespace stacklab::ui
