// Every action of a window by its name: where it stands in the menus, its shortcuts as they come and as the user has
// set them. Menus, palette, shortcut editor and cheat sheet are all read off this one list.
#pragma once

#include <QAction>
#include <QJsonObject>
#include <QKeySequence>
#include <QObject>
#include <functional>
#include <vector>

namespace stacklab::ui {

class ActionSet : public QObject {
  Q_OBJECT
 public:
  struct Entry {
    QString id;    // "view.larger_text": the same from version to version
    QString menu;  // "&View", or "&View|&Theme" below it
    QAction* action = nullptr;
    QList<QKeySequence> defaults;
    bool gap = false;  // a separator stands before it
  };

  // Shortcuts work wherever the window has the focus, in a menu or not.
  explicit ActionSet(QWidget* window);

  // keys in portable text, several separated by a space: "Ctrl++ Ctrl+=". The id must be new.
  QAction* add(const QString& id, const QString& menu, const QString& text, const QString& keys = {},
               std::function<void()> call = {});
  // One that exists already (a page's, a dock's).
  void adopt(const QString& id, const QString& menu, QAction* action, const QList<QKeySequence>& defaults);
  // The next action of this menu is set off by a separator.
  void add_gap(const QString& menu);

  const std::vector<Entry>& entries() const { return entries_; }
  const Entry* find(const QString& id) const;
  QAction* action(const QString& id) const;

  // Who has these keys, or keys that begin with them or with which they begin; null: nobody but `except`.
  const Entry* holder(const QKeySequence& keys, const QString& except = {}) const;
  // Takes the keys away from whoever has them.
  void set_keys(const QString& id, const QList<QKeySequence>& keys);
  void reset(const QString& id);
  void reset_all();
  bool is_default(const QString& id) const;

  // What the user has changed: id -> list of keys. Ids that are not known here are kept.
  QJsonObject overrides() const { return overrides_; }
  void restore(const QJsonObject& overrides);

 signals:
  void keys_changed(const QString& id);  // of this action; empty: of many
  void edited();                         // by the user: overrides() is to be kept

 private:
  void put(const Entry& entry, const QList<QKeySequence>& keys);
  void note(const Entry& entry);
  void apply(const Entry& entry);

  QWidget* window_;
  std::vector<Entry> entries_;
  QStringList gaps_;
  QJsonObject overrides_;
};

// The text of a menu or an action as a sentence has it: without "&" and "…".
QString plain_text(QString text);
QString menu_text(const QString& menu);    // "View, Theme"
QString keys_text(const QAction* action);  // of its first shortcut, as the user's desktop writes it
QList<QKeySequence> keys_from(const QString& portable);

}  // namespace stacklab::ui
