#include "ui/frame/action_set.h"

#include <QJsonArray>
#include <QWidget>
#include <algorithm>

namespace stacklab::ui {
namespace {

bool clash(const QKeySequence& a, const QKeySequence& b) {
  if (a.isEmpty() || b.isEmpty()) return false;
  return a.matches(b) != QKeySequence::NoMatch || b.matches(a) != QKeySequence::NoMatch;
}

QJsonArray to_json(const QList<QKeySequence>& keys) {
  QJsonArray array;
  for (const QKeySequence& one : keys) array.append(one.toString(QKeySequence::PortableText));
  return array;
}

}  // namespace

QString plain_text(QString text) {
  text.replace(QLatin1String("&&"), QString(QChar(1)));
  text.remove(QLatin1Char('&'));
  text.replace(QChar(1), QLatin1Char('&'));
  if (text.endsWith(QChar(0x2026))) text.chop(1);
  return text;
}

QString menu_text(const QString& menu) {
  QStringList parts;
  for (const QString& part : menu.split(QLatin1Char('|'))) parts << plain_text(part);
  return parts.join(QStringLiteral(", "));
}

QString keys_text(const QAction* action) { return action->shortcut().toString(QKeySequence::NativeText); }

QList<QKeySequence> keys_from(const QString& portable) {
  QList<QKeySequence> keys;
  for (const QString& one : portable.split(QLatin1Char(' '), Qt::SkipEmptyParts))
    keys.append(QKeySequence::fromString(one, QKeySequence::PortableText));
  return keys;
}

ActionSet::ActionSet(QWidget* window) : QObject(window), window_(window) {}

QAction* ActionSet::add(const QString& id, const QString& menu, const QString& text, const QString& keys,
                        std::function<void()> call) {
  auto* action = new QAction(text, this);
  if (call) connect(action, &QAction::triggered, this, [call = std::move(call)] { call(); });
  adopt(id, menu, action, keys_from(keys));
  return action;
}

void ActionSet::adopt(const QString& id, const QString& menu, QAction* action, const QList<QKeySequence>& defaults) {
  Q_ASSERT(!find(id));
  action->setObjectName(id);
  entries_.push_back({id, menu, action, defaults, gaps_.removeAll(menu) > 0});
  window_->addAction(action);
  apply(entries_.back());
}

void ActionSet::add_gap(const QString& menu) {
  const bool begun = std::any_of(entries_.begin(), entries_.end(), [&](const Entry& e) { return e.menu == menu; });
  if (begun && !gaps_.contains(menu)) gaps_.append(menu);
}

const ActionSet::Entry* ActionSet::find(const QString& id) const {
  const auto it = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) { return e.id == id; });
  return it == entries_.end() ? nullptr : &*it;
}

QAction* ActionSet::action(const QString& id) const {
  const Entry* entry = find(id);
  return entry ? entry->action : nullptr;
}

const ActionSet::Entry* ActionSet::holder(const QKeySequence& keys, const QString& except) const {
  for (const Entry& entry : entries_) {
    if (entry.id == except) continue;
    for (const QKeySequence& own : entry.action->shortcuts())
      if (clash(own, keys)) return &entry;
  }
  return nullptr;
}

void ActionSet::put(const Entry& entry, const QList<QKeySequence>& keys) {
  entry.action->setShortcuts(keys);
  const QString shown = keys_text(entry.action);
  const QString name = plain_text(entry.action->text());
  entry.action->setToolTip(shown.isEmpty() ? name : tr("%1 (%2)").arg(name, shown));
}

void ActionSet::apply(const Entry& entry) {
  if (!overrides_.contains(entry.id)) return put(entry, entry.defaults);
  QList<QKeySequence> keys;
  for (const QJsonValue& one : overrides_[entry.id].toArray()) {
    const auto parsed = QKeySequence::fromString(one.toString(), QKeySequence::PortableText);
    if (!parsed.isEmpty() && parsed[0].key() != Qt::Key_unknown) keys.append(parsed);
  }
  put(entry, keys);
}

void ActionSet::note(const Entry& entry) {
  if (entry.action->shortcuts() == entry.defaults)
    overrides_.remove(entry.id);
  else
    overrides_[entry.id] = to_json(entry.action->shortcuts());
  emit keys_changed(entry.id);
}

void ActionSet::set_keys(const QString& id, const QList<QKeySequence>& keys) {
  const Entry* entry = find(id);
  if (!entry) return;
  for (const QKeySequence& one : keys) {
    while (const Entry* other = holder(one, id)) {
      QList<QKeySequence> left = other->action->shortcuts();
      left.removeIf([&](const QKeySequence& own) { return clash(own, one); });
      put(*other, left);
      note(*other);
    }
  }
  put(*entry, keys);
  note(*entry);
  emit edited();
}

void ActionSet::reset(const QString& id) {
  if (const Entry* entry = find(id)) set_keys(id, entry->defaults);
}

void ActionSet::reset_all() {
  overrides_ = {};
  for (const Entry& entry : entries_) apply(entry);
  emit keys_changed({});
  emit edited();
}

bool ActionSet::is_default(const QString& id) const { return !overrides_.contains(id); }

void ActionSet::restore(const QJsonObject& overrides) {
  overrides_ = overrides;
  for (const Entry& entry : entries_) apply(entry);
  emit keys_changed({});
}

}  // namespace stacklab::ui

#include <moc_action_set.cpp>
