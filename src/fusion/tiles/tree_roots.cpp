#include "fusion/tiles/tree_roots.h"

#include <algorithm>
#include <bit>

#include "fusion/tiles/stored_nodes.h"
#include "fusion/tiles/usual_sizes.h"
#include "schedule/footprint.h"

namespace fusewise::fusion {

using graph::Form;
using graph::NodeId;
using schedule::RegionForms;
using schedule::Value;

namespace {

class RootFinder : UsualSizes {
 public:
  RootFinder(const RegionForms& forms, const SymbolValues& usual, const std::set<NodeId>& separate)
      : UsualSizes(forms, usual), forms_(forms), separate_(separate) {}

  // The outputs, later ones first: one that can be a stage of a tree already there is no root of its own. Then what
  // every block of a tree would compute again in full becomes a root of an earlier phase.
  std::map<NodeId, int> find() {
    std::vector<NodeId> outputs;
    for (Value v : forms_.region.outputs) outputs.push_back(v.node);
    std::sort(outputs.rbegin(), outputs.rend());
    outputs.erase(std::unique(outputs.begin(), outputs.end()), outputs.end());
    std::set<NodeId> roots = separate_;
    for (NodeId node : outputs) {
      if (separate_.count(node)) continue;
      const bool attached =
          std::any_of(roots.begin(), roots.end(), [&](NodeId root) { return owned_in(root, node, roots); });
      if (!attached) roots.insert(node);
    }
    for (NodeId node : shared_work(roots)) roots.insert(node);
    // A root that another root's tree reads runs in an earlier phase.
    std::map<NodeId, int> phases;
    for (NodeId root : roots) {
      int phase = 0;
      for (NodeId read : boundary_roots(root, roots)) phase = std::max(phase, phases.at(read) + 1);
      phases[root] = phase;
    }
    return phases;
  }

 private:
  const RegionForms& forms_;
  const std::set<NodeId>& separate_;

  std::set<NodeId> boundary_roots(NodeId root, const std::set<NodeId>& roots) const {
    std::set<NodeId> read_roots;
    for (NodeId node : tree_cone(forms_, root, roots))
      for (const graph::Read& read : forms_.form(node).reads) {
        const NodeId producer = forms_.operand(node, read).node;
        if (producer != root && roots.count(producer)) read_roots.insert(producer);
      }
    return read_roots;
  }

  // True if `node` can be stored from inside the tree of `root`: it lies upstream and its dimensions that move with
  // the root's axes are those axes themselves.
  bool owned_in(NodeId root, NodeId node, const std::set<NodeId>& roots) const {
    std::set<NodeId> others = roots;
    others.erase(root);
    const std::vector<NodeId> cone = tree_cone(forms_, root, others);
    if (!std::binary_search(cone.begin(), cone.end(), node, std::greater<>())) return false;
    return owned_axes(forms_, cone, node);
  }

  // Reductions (and what hangs on them) that no grid axis of their tree cuts: each block would do all of it.
  std::vector<NodeId> shared_work(const std::set<NodeId>& roots) const {
    std::vector<NodeId> result;
    for (NodeId root : roots) {
      const std::vector<NodeId> cone = tree_cone(forms_, root, roots);
      if (element_count(root) <= 64) continue;
      const auto depends = schedule::root_dependences(forms_, cone);
      for (NodeId node : cone) {
        const Form& form = forms_.form(node);
        if (node == root || !form.accumulation) continue;
        uint64_t bits = 0;
        for (uint64_t b : depends.at(node)) bits |= b;
        uint64_t large = 0;
        for (int a = 0; a < forms_.form(root).parallel_axes(); ++a)
          if (extent(root, a) > 1) large |= uint64_t{1} << std::min(a, 63);
        if (std::popcount(large) == 1) continue;  // that one stays whole: a single block
        if ((bits & large) == 0 && reduction_elements(node) * element_count(node) > 4096)
          result.push_back(node);
      }
    }
    return result;
  }
};

}  // namespace

std::vector<NodeId> tree_cone(const RegionForms& forms, NodeId root, const std::set<NodeId>& others) {
  std::set<NodeId> seen = {root};
  std::vector<NodeId> work = {root};
  while (!work.empty()) {
    const NodeId node = work.back();
    work.pop_back();
    for (const graph::Read& read : forms.form(node).reads) {
      const NodeId producer = forms.operand(node, read).node;
      if (forms.is_member(producer) && !others.count(producer) && seen.insert(producer).second)
        work.push_back(producer);
    }
  }
  return {seen.rbegin(), seen.rend()};
}

std::map<NodeId, int> tree_roots(const RegionForms& forms, const SymbolValues& usual,
                                 const std::set<NodeId>& separate) {
  return RootFinder(forms, usual, separate).find();
}

}  // namespace fusewise::fusion
