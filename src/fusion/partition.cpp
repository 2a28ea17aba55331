#include "fusion/partition.h"

#include <algorithm>
#include <iterator>

#include "base/error.h"

namespace fusewise::fusion {

namespace {

// Edges that a search for a cycle follows, in each direction. What lies between two clusters of one layer are a few
// others; a search that takes longer than this is between distant ones.
constexpr int64_t most_steps = 4096;
// Edges that are looked at before a search begins.
constexpr size_t most_neighbours = 8;

}  // namespace

Partition::Partition(const PlanContext& context)
    : context_(context), leaf_of_(context.graph->size(), -1), order_(0) {
  for (NodeId id = 0; id < context.graph->size(); ++id) {
    if (!context.is_work(id)) continue;
    leaf_of_[id] = static_cast<int>(leaves_.size());
    forward_.push_back(leaf_of_[id]);
    leaves_.push_back(id);
  }
  order_ = OrderList(static_cast<int>(leaves_.size()));
  build_tree();
}

void Partition::build_tree() {
  const size_t count = leaf_of_.size();
  std::vector<uint32_t> depth(count, 0);
  std::vector<NodeId> parent(count, graph::no_node);
  tree_size_.assign(count, 1);
  tree_place_.assign(count, 0);
  for (NodeId id : leaves_)
    for (NodeId input : context_.inputs[id]) {
      if (leaf_of_[input] < 0 || depth[input] < depth[id]) continue;
      depth[id] = depth[input] + 1;
      parent[id] = input;
    }
  for (size_t i = leaves_.size(); i-- > 0;)
    if (const NodeId above = parent[leaves_[i]]; above != graph::no_node)
      tree_size_[above] += tree_size_[leaves_[i]];
  // Behind a node's place those of its first child and what is below that, then the next child's.
  std::vector<uint32_t> next(count, 0);
  uint32_t roots = 0;
  for (NodeId id : leaves_) {
    uint32_t& place = parent[id] == graph::no_node ? roots : next[parent[id]];
    tree_place_[id] = place;
    place += tree_size_[id];
    next[id] = tree_place_[id] + 1;
  }
}

int Partition::find(int cluster) const {
  while (forward_[static_cast<size_t>(cluster)] != cluster) {
    int& next = forward_[static_cast<size_t>(cluster)];
    next = forward_[static_cast<size_t>(next)];
    cluster = next;
  }
  return cluster;
}

std::span<const NodeId> Partition::nodes(int cluster) const {
  if (static_cast<size_t>(cluster) < leaves_.size()) return {&leaves_[static_cast<size_t>(cluster)], 1};
  return merged(cluster).nodes;
}

std::span<const NodeId> Partition::readers(int cluster) const {
  return static_cast<size_t>(cluster) < leaves_.size() ? nodes(cluster) : merged(cluster).readers;
}

std::span<const NodeId> Partition::writers(int cluster) const {
  return static_cast<size_t>(cluster) < leaves_.size() ? nodes(cluster) : merged(cluster).writers;
}

std::vector<NodeId> Partition::nodes_of_part(int cluster) const {
  std::vector<NodeId> result;
  std::vector<int> work = {cluster};
  while (!work.empty()) {
    const int c = work.back();
    work.pop_back();
    if (static_cast<size_t>(c) < leaves_.size() || alive(c)) {
      result.insert(result.end(), nodes(c).begin(), nodes(c).end());
    } else {
      work.push_back(merged(c).first);
      work.push_back(merged(c).second);
    }
  }
  std::sort(result.begin(), result.end());
  return result;
}

std::vector<int> Partition::adjacent(int cluster, const NodeLists& lists, size_t most) const {
  stamp_.resize(forward_.size(), 0);
  const int mark = ++stamps_;
  std::vector<int> result;
  for (NodeId node : border(cluster, lists))
    for (NodeId other : lists[node]) {
      const int c = cluster_of(other);
      if (c < 0 || c == cluster || stamp_[static_cast<size_t>(c)] == mark) continue;
      if (result.size() == most) break;
      stamp_[static_cast<size_t>(c)] = mark;
      result.push_back(c);
    }
  std::sort(result.begin(), result.end());
  return result;
}

std::vector<int> Partition::successors(int cluster, size_t most) const {
  return adjacent(cluster, context_.readers, most);
}
std::vector<int> Partition::predecessors(int cluster, size_t most) const {
  return adjacent(cluster, context_.inputs, most);
}

// From one cluster along edges in one direction, an edge at a time, as far as the other cluster's place in the order.
class Partition::Walk {
 public:
  Walk(const Partition& partition, const NodeLists& lists, int start, int target, int own, int others)
      : partition_(partition),
        lists_(lists),
        start_(start),
        target_(target),
        own_(own),
        others_(others),
        forward_(partition.order_.before(start, target)) {
    open(start);
  }

  std::vector<int> reached;
  bool met = false;  // the target through a third cluster, or what the other walk has reached

  // False when there is no edge left.
  bool step() {
    while (edge_ == edges_.size()) {
      if (node_ < nodes_.size()) {
        edges_ = lists_[nodes_[node_++]];
        edge_ = 0;
      } else if (work_.empty()) {
        return false;
      } else {
        open(work_.back());
        work_.pop_back();
      }
    }
    follow(partition_.cluster_of(edges_[edge_++]));
    return true;
  }

 private:
  const Partition& partition_;
  const NodeLists& lists_;
  int start_, target_, own_, others_;
  bool forward_;
  int from_ = -1;
  std::vector<int> work_;
  std::span<const NodeId> nodes_, edges_;
  size_t node_ = 0, edge_ = 0;

  void open(int cluster) {
    from_ = cluster;
    nodes_ = partition_.border(cluster, lists_);
    edges_ = {};
    node_ = edge_ = 0;
  }

  void follow(int cluster) {
    if (cluster < 0 || cluster == from_) return;
    if (cluster == target_) {
      met = met || from_ != start_;
      return;
    }
    int& stamp = partition_.stamp_[static_cast<size_t>(cluster)];
    met = met || stamp == others_;
    const OrderList& order = partition_.order_;
    const bool inside = forward_ ? order.before(cluster, target_) : order.before(target_, cluster);
    if (stamp == own_ || !inside) return;
    stamp = own_;
    reached.push_back(cluster);
    work_.push_back(cluster);
  }
};

// Members of other clusters that the cluster's lists name first.
std::vector<NodeId> Partition::neighbours(int cluster, int other, const NodeLists& lists) const {
  std::vector<NodeId> result;
  size_t seen = 0;
  for (NodeId node : border(cluster, lists))
    for (NodeId next : lists[node]) {
      if (++seen > most_neighbours * most_neighbours || result.size() == most_neighbours) return result;
      const int c = cluster_of(next);
      if (c >= 0 && c != cluster && c != other) result.push_back(next);
    }
  return result;
}

// Whether the tree shows a way that leaves one and comes to the other: for connections across many layers it does.
bool Partition::plainly_cycles(int low, int high) const {
  const std::vector<NodeId> behind = neighbours(low, high, context_.readers);
  if (behind.empty()) return false;
  const std::vector<NodeId> before = neighbours(high, low, context_.inputs);
  for (NodeId from : behind)
    for (NodeId to : before)
      if (leads_down(from, to)) return true;
  return false;
}

// From both ends at once, until one of the searches has seen everything or they meet.
std::optional<Partition::Between> Partition::between(int low, int high) const {
  stamp_.resize(forward_.size(), 0);
  const int forward_mark = ++stamps_, backward_mark = ++stamps_;
  Walk forward(*this, context_.readers, low, high, forward_mark, backward_mark);
  Walk backward(*this, context_.inputs, high, low, backward_mark, forward_mark);
  for (int64_t step = 0; step < most_steps; ++step, steps_ += 2) {
    if (!forward.step()) return Between{true, std::move(forward.reached)};
    if (!backward.step()) return Between{false, std::move(backward.reached)};
    if (forward.met || backward.met) return std::nullopt;
  }
  return std::nullopt;
}

bool Partition::would_cycle(int a, int b) const {
  if (order_.before(b, a)) std::swap(a, b);
  return plainly_cycles(a, b) || !between(a, b);
}

// Of two that are one now: members of its border were at the border of one of them.
std::vector<NodeId> Partition::joint_border(int merged, int a, int b, const NodeLists& lists) const {
  std::vector<NodeId> result;
  const std::span<const NodeId> first = border(a, lists), second = border(b, lists);
  std::merge(first.begin(), first.end(), second.begin(), second.end(), std::back_inserter(result));
  std::erase_if(result, [&](NodeId node) {
    return std::ranges::all_of(
        lists[node], [&](NodeId other) { return leaf_of_[other] < 0 || cluster_of(other) == merged; });
  });
  return result;
}

int Partition::merge(int a, int b) {
  if (order_.before(b, a)) std::swap(a, b);
  std::optional<Between> found = between(a, b);
  check(found.has_value(), "a merge would close a cycle");
  std::sort(found->clusters.begin(), found->clusters.end(),
            [&](int c, int d) { return order_.before(c, d); });
  const int index = static_cast<int>(forward_.size());
  // In the place of the second one, with what the first one reaches behind it; or in the place of the first one, with
  // what reaches the second one before it. What else lies between them has to do with neither.
  order_.replace(found->from_first ? b : a);
  order_.remove(found->from_first ? a : b);
  int last = index;
  for (int c : found->clusters) {
    order_.remove(c);
    if (found->from_first)
      order_.insert_behind(last, c);
    else
      order_.insert_before(index, c);
    last = c;
  }
  Merged both{a, b, {}, {}, {}};
  const std::span<const NodeId> first = nodes(a), second = nodes(b);
  both.nodes.reserve(first.size() + second.size());
  std::merge(first.begin(), first.end(), second.begin(), second.end(), std::back_inserter(both.nodes));
  for (int part : {a, b}) forward_[static_cast<size_t>(part)] = index;
  forward_.push_back(index);
  both.readers = joint_border(index, a, b, context_.inputs);
  both.writers = joint_border(index, a, b, context_.readers);
  for (int part : {a, b})
    if (static_cast<size_t>(part) >= leaves_.size())
      merged(part) = {merged(part).first, merged(part).second, {}, {}, {}};
  merged_.push_back(std::move(both));
  return index;
}

std::pair<int, int> Partition::parts(int cluster) const {
  if (static_cast<size_t>(cluster) < leaves_.size()) return {-1, -1};
  return {merged(cluster).first, merged(cluster).second};
}

}  // namespace fusewise::fusion
