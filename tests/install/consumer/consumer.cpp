// Runs a model of one image, twice with the same result. usage: consumer MODEL
#include <algorithm>
#include <cstdio>
#include <exception>
#include <vector>

#include "session/session.h"

int main(int argument_count, char** arguments) {
  if (argument_count != 2) return 2;
  try {
    const fusewise::Model model = fusewise::Model::load(arguments[1]);
    const fusewise::Session session(model, {.threads = 1, .use_cache = false});
    const std::vector<float> image(3 * 32 * 32, 0.5F);
    const std::vector<fusewise::graph::Tensor> inputs = {
        fusewise::graph::Tensor::from(fusewise::DataType::float32, {1, 3, 32, 32}, image)};
    const auto first = session.run(inputs), second = session.run(inputs);
    const auto a = first.at(0).as<float>(), b = second.at(0).as<float>();
    std::printf("%zu results, the first is %g\n", a.size(), static_cast<double>(a[0]));
    return std::equal(a.begin(), a.end(), b.begin(), b.end()) ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
