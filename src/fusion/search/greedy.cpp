// Greedy: the merge that gains most by the model first. A queue holds every proposal under its tier 0 gain; what
// comes up is priced exactly where the closed form does not suffice, and goes back if others now gain more.
#include <algorithm>
#include <queue>

#include "fusion/candidates/candidates.h"
#include "fusion/search/cluster_price.h"
#include "fusion/search/search.h"

namespace fusewise::fusion {

namespace {

// Gains below this are within what the model cannot tell apart (microseconds).
constexpr double least_gain = 0.02;
// The same as a share of the time at stake, where the exact price decides: kernels are timed no better than this.
constexpr double least_share = 0.005;
// What changes the tiles of a contraction has to gain more: measured on chains of contractions, differences below
// this share went either way.
constexpr double least_contraction_share = 0.05;

struct Entry {
  double gain = 0;
  uint64_t tie = 0;              // by structure, so that the order of independent nodes does not matter
  NodeId first = 0, second = 0;  // by place, where even that is equal
  int a = -1, b = -1;
  bool plain = false;  // elementwise chains and epilogues first: they leave less to decide for others
  bool light =
      false;  // then without contractions: a softmax is complete before its product takes a part of it
  bool exact = false;
  bool operator<(const Entry& other) const {
    if (plain != other.plain) return !plain;
    if (light != other.light) return !light;
    if (gain != other.gain) return gain < other.gain;
    if (tie != other.tie) return tie > other.tie;
    if (first != other.first) return first > other.first;
    return second > other.second;
  }
};

class Greedy {
 public:
  Greedy(Partition& partition, const LegalityContext& context, const std::vector<bool>& fixed)
      : partition_(partition), context_(context), fixed_(fixed), price_(context.plan, context.evaluator) {}

  SearchResult run() {
    const std::vector<int> clusters = partition_.order();
    for (int c : clusters) prices_[c] = price_.closed_form(partition_.nodes(c));
    for (int c : clusters) propose(c, true);
    const std::optional<int64_t> most = context_.plan.options->constraints.most_merges;
    while (!queue_.empty()) {
      Entry entry = queue_.top();
      queue_.pop();
      if (!partition_.alive(entry.a) || !partition_.alive(entry.b)) continue;
      if (most && result_.merges >= *most) break;
      consider(entry);
    }
    return result_;
  }

 private:
  Partition& partition_;
  const LegalityContext& context_;
  const std::vector<bool>& fixed_;
  ClusterPrice price_;
  SearchResult result_;
  std::priority_queue<Entry> queue_;
  std::unordered_map<int, double> prices_;  // tier 0, per living cluster

  void propose(int cluster, bool only_forward) {
    if (fixed_[partition_.nodes(cluster).front()]) return;
    for (const Proposal& p : proposals_of(context_.plan, partition_, cluster)) {
      if (only_forward && p.b == cluster) continue;  // the other one proposes it
      const int other = p.a == cluster ? p.b : p.a;
      if (fixed_[partition_.nodes(other).front()]) continue;
      Candidate candidate = merged_nodes(p.a, p.b);
      const double gain = prices_.at(p.a) + prices_.at(p.b) - price_.closed_form(candidate.nodes);
      if (gain < least_gain) continue;
      queue_.push({gain, tie_of(candidate.nodes), candidate.nodes.front(), candidate.nodes.back(), p.a, p.b,
                   p.kind == CandidateKind::vertical &&
                       price_.plain_merge(partition_.nodes(p.a), partition_.nodes(p.b)),
                   !contracts(candidate.nodes)});
    }
  }

  bool contracts(const std::vector<NodeId>& nodes) const {
    return std::any_of(nodes.begin(), nodes.end(),
                       [&](NodeId n) { return context_.plan.facts.at(n).contracts; });
  }

  Candidate merged_nodes(int a, int b) const {
    Candidate candidate;
    const auto &first = partition_.nodes(a), &second = partition_.nodes(b);
    candidate.nodes.reserve(first.size() + second.size());
    std::merge(first.begin(), first.end(), second.begin(), second.end(), std::back_inserter(candidate.nodes));
    return candidate;
  }

  uint64_t tie_of(const std::vector<NodeId>& nodes) const {
    uint64_t sum = 0;
    for (NodeId n : nodes) sum += context_.plan.facts.at(n).signature;
    return sum;
  }

  void consider(Entry& entry) {
    ++result_.candidates;
    Candidate candidate = make_candidate(context_.plan, partition_, entry.a, entry.b);
    if (!is_legal(candidate, context_, false)) return;
    if (entry.plain && !epilogue_pays(entry, candidate)) return;
    if (!entry.plain && !entry.exact) {
      if (out_of_budget(candidate)) {
        result_.complete = false;
        return;
      }
      if (!is_legal(candidate, context_, true)) return;
      const double together = price_.tree(candidate.region);
      const double apart = tree_price(entry.a) + tree_price(entry.b);
      entry.exact = true;
      const double gain = apart - together;
      if (gain < least_gain + share_of(candidate.nodes) * apart) return;
      // Others may gain more than this one does by the exact price.
      if (!queue_.empty() && gain < entry.gain && others_first(entry, gain)) {
        entry.gain = gain;
        queue_.push(entry);
        return;
      }
    }
    const int merged = partition_.merge(entry.a, entry.b);
    ++result_.merges;
    prices_.erase(entry.a);
    prices_.erase(entry.b);
    prices_[merged] = price_.closed_form(partition_.nodes(merged));
    propose(merged, false);
  }

  bool others_first(const Entry& entry, double gain) const {
    const Entry& top = queue_.top();
    if (top.plain || top.light != entry.light) return top.plain || top.light;
    return gain < top.gain;
  }

  // An epilogue that a contraction's tiles do not suit (another layout, say) is dearer than a kernel of its own.
  bool epilogue_pays(const Entry& entry, const Candidate& candidate) {
    const auto& nodes = partition_.nodes(entry.a);
    const bool accumulates = std::any_of(nodes.begin(), nodes.end(),
                                         [&](NodeId n) { return context_.plan.facts.at(n).accumulates; });
    if (!accumulates || out_of_budget(candidate)) return true;
    const double together = price_.tree(candidate.region);
    return together >= 0 && together <= tree_price(entry.a) + tree_price(entry.b);
  }

  bool out_of_budget(const Candidate& candidate) const {
    return context_.evaluator.evaluations() >= context_.plan.options->budget &&
           !context_.evaluator.known(candidate.region);
  }

  double share_of(const std::vector<NodeId>& nodes) const {
    return contracts(nodes) ? least_contraction_share : least_share;
  }

  double tree_price(int cluster) {
    const double price = price_.tree(region_of(context_.plan, partition_.nodes(cluster)));
    return price < 0 ? prices_.at(cluster) : price;
  }
};

}  // namespace

SearchResult search_greedy(Partition& partition, const LegalityContext& context,
                           const std::vector<bool>& fixed_nodes) {
  return Greedy(partition, context, fixed_nodes).run();
}

}  // namespace fusewise::fusion
