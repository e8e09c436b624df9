#include "ui/pages/runs/saved_views.h"

#include <QJsonArray>
#include <QJsonDocument>
#include <algorithm>

#include "ui/models/run_columns.h"

namespace stacklab::ui {
namespace {

constexpr qsizetype most_views = 100, longest_name = 200, widest = 2000;

}  // namespace

QJsonObject RunsViewState::to_json() const {
  QJsonObject object{{QStringLiteral("filter"), filter},
                     {QStringLiteral("sort"), sort},
                     {QStringLiteral("descending"), descending},
                     {QStringLiteral("group"), group},
                     {QStringLiteral("columns"), QJsonArray::fromStringList(columns)}};
  QJsonObject sizes;
  for (auto it = widths.begin(); it != widths.end(); ++it) sizes[it.key()] = it.value();
  object[QStringLiteral("widths")] = sizes;
  return object;
}

RunsViewState RunsViewState::from_json(const QJsonObject& from) {
  RunsViewState state;
  state.filter = from[QStringLiteral("filter")].toString();
  state.sort = from[QStringLiteral("sort")].toString(state.sort);
  state.descending = from[QStringLiteral("descending")].toBool(true);
  state.group = from[QStringLiteral("group")].toString();
  const QJsonArray columns = from[QStringLiteral("columns")].toArray();
  for (const QJsonValue& id : columns)
    if (!run_column(id.toString()).id.isEmpty() && !state.columns.contains(id.toString()))
      state.columns << id.toString();
  if (!state.columns.contains(QStringLiteral("name"))) state.columns = default_run_columns();
  const QJsonObject sizes = from[QStringLiteral("widths")].toObject();
  for (auto it = sizes.begin(); it != sizes.end(); ++it)
    if (const int width = it.value().toInt(); width >= 20 && width <= widest) state.widths[it.key()] = width;
  return state;
}

bool RunsViewState::same_list(const RunsViewState& other) const {
  return filter == other.filter && columns == other.columns && sort == other.sort && descending == other.descending &&
         group == other.group;
}

QByteArray SavedViews::to_bytes() const {
  QJsonArray views;
  for (const auto& [name, state] : named) {
    QJsonObject view = state.to_json();
    view[QStringLiteral("name")] = name;
    views << view;
  }
  return QJsonDocument(QJsonObject{{QStringLiteral("version"), version},
                                   {QStringLiteral("last"), last.to_json()},
                                   {QStringLiteral("views"), views},
                                   {QStringLiteral("marks"), marks}})
      .toJson();
}

SavedViews SavedViews::from_bytes(const QByteArray& bytes) {
  SavedViews views;
  const QJsonObject root = QJsonDocument::fromJson(bytes).object();
  if (root[QStringLiteral("version")].toInt() != version) {
    views.last.columns = default_run_columns();
    return views;
  }
  views.last = RunsViewState::from_json(root[QStringLiteral("last")].toObject());
  views.marks = root[QStringLiteral("marks")].toObject();
  const QJsonArray named = root[QStringLiteral("views")].toArray();
  for (const QJsonValue& view : named) {
    const QString name = view.toObject()[QStringLiteral("name")].toString().left(longest_name);
    if (!name.isEmpty() && static_cast<qsizetype>(views.named.size()) < most_views)
      views.named.emplace_back(name, RunsViewState::from_json(view.toObject()));
  }
  return views;
}

}  // namespace stacklab::ui
