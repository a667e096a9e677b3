// Writes the fixture as run.html, run.csv, compare.html and compare.csv into a directory.
#include <cstdio>
#include <string>

#include "base/file.hpp"
#include "fixture.hpp"

int main(int argc, char** argv) {
  using namespace shardsim;
  if (argc != 2) {
    std::fputs("usage: reports_pages DIRECTORY\n", stderr);
    return 2;
  }
  const std::string directory = argv[1];
  // Names that would break a page which takes them as they are.
  Prediction hostile = fixture::fsdp();
  hostile.experiment.name = "</script><script>console.error(\"run\")</script> & {{css}}";
  hostile.result.communication[0].what = "<img src=x onerror=console.error(1)>";
  const std::vector<Prediction> all = {fixture::dp(), fixture::fsdp(), hostile};
  write_file(directory + "/run.html", report_run(all[1], Format::html));
  write_file(directory + "/run.csv", report_run(all[1], Format::csv));
  write_file(directory + "/compare.html", report_comparison(all, Format::html));
  write_file(directory + "/compare.csv", report_comparison(all, Format::csv));
  return 0;
}
