// Perfetto's files read back, by the reader of the library that writes them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace shardsim {

// What a Perfetto file says, with its references followed.
struct ReadTrace {
  struct Track {
    std::string name;
    std::uint64_t parent = 0;
    bool counts = false;
  };
  struct Slice {
    std::uint64_t track = 0;
    std::int64_t start = 0;  // nanoseconds
    std::int64_t end = 0;
    std::string name;
    std::string category;
    std::vector<std::uint64_t> flows_from;
    std::vector<std::uint64_t> flows_to;
    std::map<std::string, double> numbers;
    std::map<std::string, std::string> texts;
  };
  std::map<std::uint64_t, Track> tracks;
  std::vector<Slice> slices;
  std::map<std::uint64_t, std::vector<double>> counters;

  // "all (2 devices)/memory/total"
  std::string path(std::uint64_t track) const {
    const Track& one = tracks.at(track);
    return one.parent == 0 ? one.name : path(one.parent) + "/" + one.name;
  }
};

// Checks that slices of a track come in order, end and never overlap.
[[nodiscard]] ReadTrace read_perfetto(const std::string& bytes);

}  // namespace shardsim
