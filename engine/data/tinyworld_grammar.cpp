#include "engine/data/tinyworld_grammar.h"

#include <utility>

namespace stacklab {
namespace {

using Node = Phrase::Node;

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
char upper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; }

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<std::vector<Node>> parse() {
    std::vector<Node> nodes = sequence(0);
    if (error_.empty() && at_ != text_.size()) fail("a ']' without its '['");
    if (!error_.empty()) return failed("phrase \"" + std::string(text_) + "\": " + error_);
    return nodes;
  }

 private:
  static constexpr int deepest = 16;

  void fail(std::string why) {
    if (error_.empty()) error_ = std::move(why);
    at_ = text_.size();
  }

  std::vector<Node> sequence(int depth) {
    std::vector<Node> nodes;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == ']' || (c == '|' && depth > 0)) break;
      if (c == '[') {
        nodes.push_back(choice(depth));
      } else if (c == '{') {
        const std::size_t end = text_.find('}', at_);
        if (end == std::string_view::npos || end == at_ + 1) {
          fail("a '{' without a name and its '}'");
          break;
        }
        nodes.push_back({Node::Kind::slot, std::string(text_.substr(at_ + 1, end - at_ - 1)), {}});
        at_ = end + 1;
      } else {
        const std::size_t end = std::min(text_.find_first_of(depth > 0 ? "[]{|" : "[]{", at_), text_.size());
        nodes.push_back({Node::Kind::text, std::string(text_.substr(at_, end - at_)), {}});
        at_ = end;
      }
    }
    return nodes;
  }

  Node choice(int depth) {
    Node node{Node::Kind::choice, {}, {}};
    if (depth == deepest) return fail("choices within choices, too deep"), node;
    do {
      ++at_;  // '[' or '|'
      node.choices.push_back(sequence(depth + 1));
    } while (at_ < text_.size() && text_[at_] == '|');
    if (at_ >= text_.size()) return fail("a '[' without its ']'"), node;
    ++at_;
    return node;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::string error_;
};

void expand_into(const std::vector<Node>& nodes, Dice& dice, const Phrase::Slot& slot, std::string& out) {
  for (const Node& node : nodes) {
    switch (node.kind) {
      case Node::Kind::text:
        out += node.text;
        break;
      case Node::Kind::slot:
        out += slot ? slot(node.text) : std::string();
        break;
      case Node::Kind::choice:
        expand_into(dice.pick(node.choices), dice, slot, out);
        break;
    }
  }
}

std::int64_t variants_of(const std::vector<Node>& nodes) {
  std::int64_t product = 1;
  for (const Node& node : nodes) {
    if (node.kind != Node::Kind::choice) continue;
    std::int64_t sum = 0;
    for (const auto& choice : node.choices) sum += variants_of(choice);
    product *= sum;
  }
  return product;
}

template <class Visit>
void visit_nodes(const std::vector<Node>& nodes, const Visit& visit) {
  for (const Node& node : nodes) {
    visit(node);
    for (const auto& choice : node.choices) visit_nodes(choice, visit);
  }
}

}  // namespace

Result<Phrase> Phrase::parse(std::string_view text) {
  Result<std::vector<Node>> nodes = Parser(text).parse();
  if (!nodes) return tl::unexpected(nodes.error());
  Phrase phrase;
  phrase.nodes_ = std::move(*nodes);
  return phrase;
}

std::string Phrase::expand(Dice& dice, const Slot& slot) const {
  std::string out;
  expand_into(nodes_, dice, slot, out);
  return out;
}

std::int64_t Phrase::variants() const { return variants_of(nodes_); }

void Phrase::collect_words(std::set<std::string>& lower_case) const {
  visit_nodes(nodes_, [&](const Node& node) {
    if (node.kind == Node::Kind::text) stacklab::collect_words(node.text, lower_case);
  });
}

void Phrase::collect_slots(std::set<std::string>& names) const {
  visit_nodes(nodes_, [&](const Node& node) {
    if (node.kind == Node::Kind::slot) names.insert(node.text);
  });
}

void collect_words(std::string_view text, std::set<std::string>& lower_case) {
  std::string word;
  for (const char c : text) {
    if (is_letter(c)) {
      word.push_back(lower(c));
    } else if (!word.empty()) {
      lower_case.insert(std::exchange(word, {}));
    }
  }
  if (!word.empty()) lower_case.insert(word);
}

std::string sentence_case(std::string text) {
  bool start = true;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (start && (is_letter(c) || (c >= '0' && c <= '9'))) {
      text[i] = upper(c);
      start = false;
    } else if ((c == '.' || c == '?' || c == '!') && i + 1 < text.size() &&
               (text[i + 1] == ' ' || text[i + 1] == '\n')) {
      start = true;
    }
  }
  return text;
}

std::string with_article(std::string_view noun) {
  constexpr std::string_view vowels = "aeiouAEIOU";
  const bool vowel = !noun.empty() && vowels.find(noun.front()) != std::string_view::npos;
  return (vowel ? "an " : "a ") + std::string(noun);
}

}  // namespace stacklab
