# cmake -DOUT=configs.cpp -DFILES=a.json;b.json -P embed_configs.cmake
# Writes the shipped model descriptions into a source file, so that they are wherever the program is.
set(code "#include \"workloads/shipped_configs.hpp\"\n\nnamespace shardsim {\n\n")
string(APPEND code "std::vector<ShippedConfig> shipped_configs() {\n  return {\n")
foreach(file IN LISTS FILES)
  get_filename_component(name ${file} NAME_WLE)
  file(READ ${file} text)
  string(APPEND code "      {\"${name}\", R\"json(${text})json\"},\n")
endforeach()
string(APPEND code "  };\n}\n\n}  // namespace shardsim\n")
file(WRITE ${OUT} "${code}")
